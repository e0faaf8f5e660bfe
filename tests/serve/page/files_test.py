"""The files of the page as HTTP answers."""
import http.client
import os
from pathlib import Path
from urllib.parse import urlsplit

import pytest

SOURCES = Path(__file__).resolve().parents[3] / "serve/page"
TYPES = {".html": "text/html", ".css": "text/css", ".js": "text/javascript"}
FILES = sorted(SOURCES.iterdir())


def get(address, path, method="GET", headers={}):
    connection = http.client.HTTPConnection(urlsplit(address).netloc, timeout=30)
    connection.request(method, path, headers=headers)  # sends the path as it is
    response = connection.getresponse()
    return response, response.read()


def path_of(file):
    return "/" if file.name == "index.html" else f"/page/{file.name}"


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_file_is_served_as_it_is(server, file):
    response, body = get(server, path_of(file))
    assert response.status == 200
    assert body == file.read_bytes()
    assert response.headers["Content-Type"] == f"{TYPES[file.suffix]}; charset=utf-8"


@pytest.mark.parametrize("path", ["/", "/page/main.js", "/page/page.css"])
def test_headers_confine_the_page(server, path):
    headers = get(server, path)[0].headers
    assert headers["Content-Security-Policy"] == (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Referrer-Policy"] == "no-referrer"
    assert headers["Cache-Control"] == "no-cache"


def test_known_content_is_not_sent_again(server):
    tag = get(server, "/page/main.js")[0].headers["ETag"]
    for known in (tag, f'"other", W/{tag}', "*"):
        response, body = get(server, "/page/main.js", headers={"If-None-Match": known})
        assert (response.status, body, response.headers["ETag"]) == (304, b"", tag)
    response, body = get(server, "/page/main.js", headers={"If-None-Match": '"other"'})
    assert response.status == 200 and body


def test_every_file_has_its_own_tag(server):
    tags = {get(server, path_of(file))[0].headers["ETag"] for file in FILES}
    assert len(tags) == len(FILES)


def test_head_has_no_body(server):
    response, body = get(server, "/", method="HEAD")
    assert response.status == 200 and body == b""
    assert int(response.headers["Content-Length"]) == os.path.getsize(SOURCES / "index.html")


@pytest.mark.parametrize("path", [
    "/page/", "/page/nothing.js", "/page/index.html", "/page/../page/main.js", "/page/%2e%2e/page/main.js",
    "/page/..%2fpage.h", "/page/../../../../etc/passwd", "/page/%2e%2e/%2e%2e/etc/passwd", "/page//main.js",
    "/page/main.js/", "/page/main.js%00", "/page/MAIN.JS", "/page"])
def test_other_paths_are_not_found(server, path):
    response, body = get(server, path)
    assert response.status in (400, 404), body
    assert b"import" not in body and b"root:" not in body


def test_page_is_read_only(server):
    response, _ = get(server, "/", method="DELETE")
    assert response.status == 405
    assert response.headers["Allow"] == "GET, HEAD, OPTIONS"


def test_sources_name_no_other_host_and_no_html():
    for file in FILES:
        text = file.read_text()
        for word in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "://cdn"):
            assert word not in text, f"{file}: {word}"
