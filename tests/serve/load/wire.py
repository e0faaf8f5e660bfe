"""A connection to the server, down to its bytes: what `http.client` would not send, and answers in the order of requests."""
import http.client
import json
import select
import socket
import struct
import time

from served import Answer
from sse import EventParser

ANSWER_S = 300   # without a byte of the server: it hangs
LATE_S = 4       # the server does not wait for ever: less than half of its shortest patience


class Late(Exception):
    """The server gave up on us, and had waited for long: our machine was too busy to send a request in time."""


class _Unclosed:
    """What arrives on a connection, which an answer that was read to its end leaves open for the next."""

    def __init__(self, file):
        self._file = file

    def __getattr__(self, name):
        return getattr(self._file, name)

    def close(self):
        pass


class Wire:
    def __init__(self, port, receive_bytes=None):
        self._socket = socket.socket()
        self._socket.settimeout(ANSWER_S)
        if receive_bytes:   # that the kernel keeps for us
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
        self._socket.connect(("127.0.0.1", port))
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._file = self._socket.makefile("rb")
        self._since = time.monotonic()   # when the server began to wait for a request
        self._waited_s = 0.0             # how long it had to

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def send(self, data):
        self._socket.sendall(data)
        self._waited_s = time.monotonic() - self._since

    def end_sending(self):
        self._socket.shutdown(socket.SHUT_WR)

    def has_answer(self, seconds):
        """Whether something arrives within that time: bytes, or the end of the connection. Not while an answer is read."""
        return bool(select.select([self._socket], [], [], seconds)[0])

    def is_ended(self):
        """Waits for bytes, or for the end of the connection; True: that was the end."""
        try:
            return not self._file.peek(1)
        except ConnectionResetError:
            return True

    def makefile(self, _mode):
        return _Unclosed(self._file)

    def head(self, method="POST"):
        """An answer whose body is not read yet."""
        response = http.client.HTTPResponse(self, method=method)
        try:
            response.begin()
        except ConnectionError:
            if self._waited_s > LATE_S:
                raise Late from None
            raise
        if response.status == 408 and self._waited_s > LATE_S:
            raise Late
        return response

    def answer(self, method="POST"):
        answer = Answer(self.head(method))
        self.note_end()
        return answer

    def note_end(self):
        """Of an answer that was read: the server waits for the next request."""
        self._since = time.monotonic()

    def close(self, resets=False):
        if resets:
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        # A file keeps its socket open.
        self._file.close()
        self._socket.close()


def pieces(response, n_bytes=1 << 16):
    while (piece := response.read1(n_bytes)):
        yield piece


def events(response, n_bytes=1 << 16):
    """The parsed data of a stream's events; "[DONE]" as it is."""
    parser = EventParser()
    for piece in pieces(response, n_bytes):
        for data in parser.feed(piece):
            yield data if data == "[DONE]" else json.loads(data)


def head_bytes(method, path, headers):
    """Headers as a dictionary, or as pairs where a name comes twice."""
    pairs = headers.items() if isinstance(headers, dict) else headers
    lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in pairs)]
    return "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n"


def json_headers(key, length=None):
    headers = {"Host": "localhost", "Authorization": f"Bearer {key}", "Content-Type": "application/json"}
    return headers if length is None else headers | {"Content-Length": length}


def post_bytes(path, body, key, **more):
    """A POST of an object, or of bytes as they are. `more` are further headers, `_` in their names for `-`."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    headers = json_headers(key, len(data)) | {name.replace("_", "-"): value for name, value in more.items()}
    return head_bytes("POST", path, headers) + data


def chunked_bytes(path, body, key, sizes):
    """The same in chunks of these sizes, repeated."""
    data = json.dumps(body).encode()
    parts = []
    while data:
        size = sizes[len(parts) % len(sizes)]
        parts.append(b"%x\r\n%s\r\n" % (len(data[:size]), data[:size]))
        data = data[size:]
    head = head_bytes("POST", path, json_headers(key) | {"Transfer-Encoding": "chunked"})
    return head + b"".join(parts) + b"0\r\n\r\n"
