"""A `knap serve` process, and raw HTTP to it."""

import http.client
import json
import os
import queue
import signal
import socket
import subprocess
import threading
import time

KNAP = os.environ["KNAP_BINARY"]
READY_SECONDS = 120
KEYS = ("KNAP_API_KEY", "KNAP_HOST", "KNAP_PORT")


class Answer:
    """Status, headers (names in lower case) and body of a response."""

    def __init__(self, response):
        self.status = response.status
        self.headers = {name.lower(): value for name, value in response.getheaders()}
        self.body = response.read()

    def json(self):
        return json.loads(self.body)

    @property
    def error(self):
        return self.json()["error"]


class Served:
    """A server of the default model on a free port. `flags` are those of `knap serve`. In a session of its own it does not
    receive the signals of our terminal."""

    def __init__(self, *flags, environment=None, host="127.0.0.1", port=0, waits=True, own_session=False):
        self.key = flags[flags.index("--api-key") + 1] if "--api-key" in flags else None
        inherited = {name: value for name, value in os.environ.items() if name not in KEYS}
        self.process = subprocess.Popen(
            [KNAP, "serve", "--port", str(port), "--host", host, *flags],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True,
            start_new_session=own_session, env=inherited | (environment or {}))
        self.lines = []  # of both outputs
        self.port = port
        self._ready = queue.Queue()
        self._readers = [threading.Thread(target=self._read, args=(pipe,), daemon=True)
                         for pipe in (self.process.stdout, self.process.stderr)]
        for reader in self._readers:
            reader.start()
        if waits:
            self.wait_until_ready()

    def __enter__(self):
        return self

    def __exit__(self, *failure):
        """A test that fails leaves no process behind; one that passes has stopped it."""
        if failure[0] is not None and self.process.poll() is None:
            self.process.kill()
        self.process.wait(60)

    def _read(self, pipe):
        for line in pipe:
            self.lines.append(line)
            if "knap: serving " in line:
                self._ready.put(line)
        self._ready.put("")

    def wait_until_ready(self):
        line = self._ready.get(timeout=READY_SECONDS)
        if not line:
            for reader in self._readers:   # for the last words on the other output
                reader.join(10)
        assert line, "knap serve ended: " + "".join(self.lines)
        self.port = int(line.rsplit(":", 1)[1])

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}"

    @property
    def output(self):
        return "".join(self.lines)

    def connect(self, timeout=300):
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)

    def request(self, method, path, body=None, headers=None):
        headers = ({"Authorization": f"Bearer {self.key}"} if self.key else {}) | (headers or {})
        connection = self.connect()
        try:
            connection.request(method, path, body=body, headers=headers)
            return Answer(connection.getresponse())
        finally:
            connection.close()

    def get(self, path, **headers):
        return self.request("GET", path, headers=headers)

    def post(self, path, body, headers=None):
        """`body` is an object, or bytes as they are."""
        if not isinstance(body, bytes):
            body = json.dumps(body).encode()
        return self.request("POST", path, body, {"Content-Type": "application/json"} | (headers or {}))

    def chat(self, text="Say hello.", **fields):
        fields = {"max_tokens": 8, "temperature": 0} | fields
        return self.post("/v1/chat/completions", {"messages": [{"role": "user", "content": text}]} | fields)

    def complete(self, prompt="The first tools were", **fields):
        return self.post("/v1/completions", {"prompt": prompt, "max_tokens": 8, "temperature": 0} | fields)

    def metric(self, name):
        """The value of a metric, with its labels as in the text; 0 when it is absent."""
        for line in self.get("/metrics").body.decode().splitlines():
            if line.startswith(name + " "):
                return float(line.rsplit(" ", 1)[1])
        return 0.0

    def n_busy(self):
        return sum(slot["is_processing"] for slot in self.get("/slots").json())

    def wait_for_busy(self, n, seconds):
        """Waits until `n` sessions are at work. Returns how long that took; fails after `seconds`."""
        start = time.monotonic()
        while self.n_busy() != n:
            assert time.monotonic() - start < seconds, f"{self.n_busy()} sessions at work, expected {n}"
            time.sleep(0.01)
        return time.monotonic() - start

    def stop(self, number=signal.SIGTERM, seconds=60):
        """Sends the signal and returns the exit code."""
        if self.process.poll() is None:
            self.process.send_signal(number)
        try:
            return self.process.wait(seconds)
        finally:
            if self.process.poll() is None:
                self.process.kill()
            for reader in self._readers:
                reader.join(10)


class Stream:
    """A streaming request under way, over a socket of its own."""

    def __init__(self, served, path="/v1/chat/completions", headers=None, receive_bytes=None, **fields):
        fields = {"messages": [{"role": "user", "content": "Count to a thousand."}], "stream": True} | fields
        body = json.dumps(fields).encode()
        self.socket = socket.socket()
        self.socket.settimeout(60)
        if receive_bytes:   # that the kernel keeps for us
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
        self.socket.connect(("127.0.0.1", served.port))
        self.socket.sendall((f"POST {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/json\r\n"
                            + "".join(f"{name}: {value}\r\n" for name, value in (headers or {}).items())
                            + f"Content-Length: {len(body)}\r\n\r\n").encode() + body)
        self.file = self.socket.makefile("rb")

    def status(self):
        line = self.file.readline()
        while self.file.readline().strip():
            pass
        return int(line.split()[1])

    def events(self):
        """The parsed data of the events; "[DONE]" as it is."""
        for line in self.file:
            if line.startswith(b"data: "):
                data = line[6:].strip()
                yield data.decode() if data == b"[DONE]" else json.loads(data)

    def close(self):
        # A file keeps its socket open.
        self.file.close()
        self.socket.close()


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


def greedy_text(answer):
    return answer.json()["choices"][0]["text"]
