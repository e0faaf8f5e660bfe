"""A reader of HTTP/1.1 answers and of the events in them, on asyncio's streams."""
import json


class HttpError(Exception):
    """The server answered with an error, or not as HTTP wants it."""


class EventParser:
    """Takes the bytes of an event stream in any pieces, and gives the data of each complete event."""

    def __init__(self):
        self._rest = b""   # an unfinished line
        self._data = []    # lines of the unfinished event

    def feed(self, piece):
        events = []
        *lines, self._rest = (self._rest + piece).split(b"\n")
        for line in lines:
            line = line.removesuffix(b"\r").decode()
            if line.startswith("data:"):
                self._data.append(line.removeprefix("data:").removeprefix(" "))
            elif not line and self._data:
                events.append("\n".join(self._data))
                self._data = []
        return events


async def read_head(reader):
    """Status and headers; names of headers in lower case."""
    line = (await reader.readline()).decode("latin-1")
    words = line.split(None, 2)
    if len(words) < 2 or not words[0].startswith("HTTP/1.") or not words[1].isdigit():
        raise HttpError(f"expected a status line, found {line!r}")
    headers = {}
    while (line := (await reader.readline()).decode("latin-1").strip()):
        name, _, value = line.partition(":")
        headers[name.strip().lower()] = value.strip()
    return int(words[1]), headers


async def body_pieces(reader, headers):
    """The pieces of a body as they arrive: in chunks, of a given length, or until the connection ends."""
    if headers.get("transfer-encoding", "").lower() == "chunked":
        while (size := int((await reader.readline()).split(b";")[0], 16)) > 0:
            yield await reader.readexactly(size)
            await reader.readexactly(2)
        while (await reader.readline()).strip():
            pass
    elif "content-length" in headers:
        left = int(headers["content-length"])
        while left > 0:
            piece = await reader.read(min(left, 1 << 16))
            if not piece:
                raise HttpError(f"the connection ended {left} bytes before the answer's end")
            left -= len(piece)
            yield piece
    else:
        while (piece := await reader.read(1 << 16)):
            yield piece


async def read_body(reader, headers):
    return b"".join([piece async for piece in body_pieces(reader, headers)])


def request_bytes(method, path, body=None, keeps_alive=False):
    text = b"" if body is None else json.dumps(body).encode()
    head = [f"{method} {path} HTTP/1.1", "Host: 127.0.0.1", f"Connection: {'keep-alive' if keeps_alive else 'close'}"]
    if body is not None:
        head += ["Content-Type: application/json", f"Content-Length: {len(text)}"]
    return "\r\n".join(head).encode() + b"\r\n\r\n" + text


async def events(reader):
    """The JSON objects of a streamed answer, up to [DONE]."""
    status, headers = await read_head(reader)
    if status != 200:
        raise HttpError(f"status {status}: {(await read_body(reader, headers)).decode()[:400]}")
    parser = EventParser()
    async for piece in body_pieces(reader, headers):
        for event in parser.feed(piece):
            if event == "[DONE]":
                return
            value = json.loads(event)
            if "error" in value:
                raise HttpError(f"error in the stream: {value['error']}")
            yield value
    raise HttpError("the stream ended without [DONE]")
