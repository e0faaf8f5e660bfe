"""A hub of models on this machine, with the interface of huggingface.co as far as knap uses it, which misbehaves on demand.

Large files are, as there, at another host behind a redirect: here a second server on another port."""
import hashlib
import json
import ssl
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, quote, unquote, urlsplit

COMMIT = "0123456789abcdef0123456789abcdef01234567"


def git_sha1(data):
    return hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()


class File:
    """A file of a repository: what the hub announces, and what it sends."""

    def __init__(self, data, is_large=True, sent=None):
        self.data, self.is_large = data, is_large
        self.sent = data if sent is None else sent

    def entry(self, path):
        entry = {"type": "file", "oid": git_sha1(self.data), "size": len(self.data), "path": path}
        if self.is_large:
            entry["lfs"] = {"oid": hashlib.sha256(self.data).hexdigest(), "size": len(self.data), "pointerSize": 134}
        return entry


class Request:
    def __init__(self, handler):
        self.server, self.path = handler.server.name, handler.path
        self.token = (handler.headers["Authorization"] or "").removeprefix("Bearer ")
        self.range = handler.headers["Range"]


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_GET(self):
        hub = self.server.hub
        request = Request(self)
        with hub.lock:
            hub.requests.append(request)
            for fault in hub.faults:
                if fault.takes(request):
                    break
            else:
                fault = None
        try:
            if fault:
                fault.answer(self)
            else:
                self.answer()
        except (BrokenPipeError, ConnectionResetError, ssl.SSLError):
            self.close_connection = True

    def answer(self):
        hub, path = self.server.hub, unquote(urlsplit(self.path).path)
        repository, _, rest = path.removeprefix("/api/models/").removeprefix("/").partition("/refs")
        if path.startswith("/api/models/") and path.endswith("/refs"):
            self.send_json({"branches": [{"name": "main", "ref": "refs/heads/main", "targetCommit": COMMIT}]}
                           if repository in hub.repositories else None)
        elif path.startswith("/api/models/"):
            self.send_tree(hub.repositories[path.removeprefix("/api/models/").partition("/tree/")[0]])
        elif "/resolve/" in path:
            repository, _, rest = path[1:].partition("/resolve/")
            self.send_file(repository, rest.partition("/")[2])
        else:
            repository, _, name = path.removeprefix("/blob/").partition("//")
            self.send_data(hub.repositories[repository][name].sent)

    def send_json(self, value, headers=()):
        body = json.dumps(value).encode() if value is not None else b'{"error":"Repository not found"}'
        self.send_response(200 if value is not None else 404)
        for name, text in headers:
            self.send_header(name, text)
        if value is None:
            self.send_header("X-Error-Message", "Repository not found")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def send_tree(self, files):
        hub = self.server.hub
        entries = hub.extra_entries + [{"type": "directory", "oid": COMMIT, "size": 0, "path": "folder"}]
        entries += [file.entry(path) for path, file in files.items()]
        begin = int(parse_qs(urlsplit(self.path).query).get("cursor", ["0"])[0])
        end = begin + hub.page_size
        link = [("Link", f'<https://elsewhere.invalid{urlsplit(self.path).path}?recursive=true&cursor={end}>; rel="next"')]
        self.send_json(entries[begin:end], link if end < len(entries) else ())

    def send_file(self, repository, name):
        hub = self.server.hub
        file = hub.repositories[repository][name]
        if not file.is_large:
            return self.send_data(file.sent)
        self.redirect(f"{hub.storage_url}/blob/{repository}//{quote(name)}?signature=abc")

    def redirect(self, url):
        self.send_response(302)
        self.send_header("Location", url)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def send_data(self, data, until=None, knows_ranges=True, length=None):
        """Sends the data from where the client wants it, up to byte `until`, and claims to send all."""
        begin = 0
        wanted = self.headers["Range"]
        if wanted and knows_ranges:
            begin = int(wanted.removeprefix("bytes=").removesuffix("-"))
            self.send_response(206)
            self.send_header("Content-Range", f"bytes {begin}-{len(data) - 1}/{len(data)}")
        else:
            self.send_response(200)
        self.send_header("Content-Length", str(length if length is not None else len(data) - begin))
        self.end_headers()
        self.wfile.write(data[begin:until])
        self.wfile.flush()


class Fault:
    """Answers requests whose path contains a text, `count` times, in place of the hub."""

    def __init__(self, text, answer, count=1):
        self.text, self.answer, self.count = text, answer, count

    def takes(self, request):
        if self.text not in request.path or self.count == 0:
            return False
        self.count -= 1
        return True


def status(code, headers=(), body=b"no"):
    def answer(handler):
        handler.send_response(code)
        for name, text in headers:
            handler.send_header(name, text)
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)
    return answer


def cut(data, n_bytes, knows_ranges=True):
    """Sends `n_bytes` more, then closes the connection."""
    def answer(handler):
        wanted = handler.headers["Range"] if knows_ranges else None
        begin = int((wanted or "bytes=0-").removeprefix("bytes=").removesuffix("-"))
        handler.send_data(data, until=begin + n_bytes, knows_ranges=knows_ranges)
        handler.close_connection = True
        handler.connection.shutdown(2)
    return answer


def stall(data, n_bytes, event):
    """Sends `n_bytes`, then nothing until the event."""
    def answer(handler):
        handler.send_data(data, until=n_bytes)
        event.wait(60)
        handler.close_connection = True
    return answer


class Hub:
    def __init__(self, repositories, certificate=None, address="127.0.0.1"):
        self.repositories = repositories
        self.extra_entries, self.page_size = [], 1000
        self.faults, self.requests, self.lock = [], [], threading.Lock()
        self.servers = [self.start(name, address, certificate) for name in ("hub", "storage")]
        scheme = "https" if certificate else "http"
        self.url, self.storage_url = (f"{scheme}://{address}:{server.server_port}" for server in self.servers)

    def start(self, name, address, certificate):
        server = ThreadingHTTPServer((address, 0), Handler)
        server.hub, server.name, server.daemon_threads = self, name, True
        server.handle_error = lambda *_: None  # a refused handshake
        if certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate)
            server.socket = context.wrap_socket(server.socket, server_side=True)
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        return server

    def stop(self):
        for server in self.servers:
            server.shutdown()
            server.server_close()

    def downloads(self):
        """Requests for the contents of large files."""
        return [request for request in self.requests if request.path.startswith("/blob/")]
