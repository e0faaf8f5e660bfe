"""Who may ask (spec 7): keys, Host, pages of other origins, media types; and the methods of paths."""

import subprocess

import pytest

from served import KNAP, Served

FLAGS = ["--api-key", "sk-first", "--api-key", "sk-second", "--cors-origins", "https://page.example"]
BODY = {"prompt": "A", "max_tokens": 1}
PATHS = ["/v1/models", "/metrics", "/props", "/slots", "/no/such/path", "/openapi.json", "/v1/health/../models"]


def without_key(server, method, path, headers=None, body=None):
    return server.request(method, path, body, {"Authorization": ""} | (headers or {}))


@pytest.mark.parametrize("path", PATHS)
def test_every_path_needs_a_key(server, path):
    for headers in ({}, {"Authorization": "Bearer sk-firs"}, {"Authorization": "Bearer sk-firstt"},
                    {"Authorization": "sk-first"}, {"x-api-key": "sk-other"}):
        answer = without_key(server, "GET", path, headers)
        assert answer.status == 401, (path, headers)
        assert answer.headers["www-authenticate"] == "Bearer"
        assert answer.error["code"] == "invalid_api_key" and answer.error["type"] == "authentication_error"


def test_each_key_opens(server):
    for headers in ({"Authorization": "Bearer sk-first"}, {"Authorization": "bearer sk-second"},
                    {"Authorization": "Basic a25hcDpzay1maXJzdA=="}):
        assert without_key(server, "GET", "/v1/models", headers).status == 200
    connection = server.connect()
    connection.request("GET", "/v1/models", headers={"x-api-key": "sk-second"})
    assert connection.getresponse().status == 200
    connection.close()


def test_health_and_options_need_no_key(server):
    assert without_key(server, "GET", "/health").json() == {"status": "ok"}
    assert without_key(server, "GET", "/v1/health").status == 200
    assert without_key(server, "OPTIONS", "/v1/chat/completions").status == 204


def test_foreign_host_is_refused(server):
    for host in ("evil.example", "evil.example:8080", "127.0.0.1.evil.example", "localhost.evil.example"):
        assert server.get("/v1/models", Host=host).status == 403, host
        assert server.get("/health", Host=host).status == 403, host
    for host in ("localhost", "LOCALHOST:1234", "127.0.0.1:1", "[::1]:8080"):
        assert server.get("/v1/models", Host=host).status == 200, host


@pytest.mark.parametrize("origin, is_open", [
    ("http://localhost:3000", True), ("http://127.0.0.1", True), ("http://[::1]:3000", True),
    ("https://page.example", True), ("https://other.example", False), ("https://localhost.evil.example", False),
    ("http://page.example", False), ("null", False)])
def test_origins(server, origin, is_open):
    for answer in (server.get("/v1/models", Origin=origin), server.get("/none", Origin=origin),
                   server.request("OPTIONS", "/v1/chat/completions", headers={
                       "Origin": origin, "Access-Control-Request-Method": "POST"})):
        assert answer.headers.get("access-control-allow-origin") == (origin if is_open else None)
        assert answer.headers["vary"] == "Origin"
        assert "access-control-allow-credentials" not in answer.headers
    assert ("access-control-allow-methods" in answer.headers) == is_open


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", None])
def test_other_media_types(server, kind):
    answer = server.request("POST", "/v1/completions", b'{"prompt":"A"}', {"Content-Type": kind} if kind else {})
    assert answer.status == 415
    assert "-H 'Content-Type: application/json'" in answer.error["message"]


def test_media_type_of_json(server):
    for kind in ("application/json", "application/json; charset=utf-8", "Application/JSON", "application/json ; a=b"):
        assert server.post("/v1/completions", BODY, {"Content-Type": kind}).status == 200, kind
    assert server.post("/v1/completions", BODY, {"Content-Encoding": "gzip"}).status == 415


def test_methods(server):
    answer = server.get("/v1/chat/completions")
    assert answer.status == 405 and answer.headers["allow"] == "OPTIONS, POST"
    answer = server.post("/v1/models", {})
    assert answer.status == 405 and answer.headers["allow"] == "GET, HEAD, OPTIONS"
    assert server.request("OPTIONS", "/health").headers["allow"] == "GET, HEAD, OPTIONS"
    assert server.request("DELETE", "/health").status == 405
    assert server.get("/v1/embeddings").status == 404
    assert server.get("/v1/models/../../etc/passwd").status == 404
    assert server.get("/%2e%2e/%2e%2e/etc/passwd").error["type"] == "not_found_error"


def test_head_is_get_without_body(server):
    for path in ("/health", "/v1/models", "/none"):
        whole, head = server.get(path), server.request("HEAD", path)
        assert (head.status, head.body) == (whole.status, b"")
        assert head.headers["content-type"] == whole.headers["content-type"]
        assert head.headers["content-length"] == whole.headers["content-length"]


def test_request_id_is_echoed_or_made(server):
    assert server.get("/health", **{"x-request-id": "mine-7"}).headers["x-request-id"] == "mine-7"
    made = {server.get("/health").headers["x-request-id"] for _ in range(3)}
    assert len(made) == 3


def run(*flags, environment=None):
    return subprocess.run([KNAP, "serve", "--port", "0", *flags], capture_output=True, text=True, timeout=120,
                          env=environment)


def test_open_address_needs_a_key():
    result = run("--host", "0.0.0.0")
    assert result.returncode != 0 and "--api-key" in result.stderr and "--no-auth" in result.stderr
    assert Served("--no-auth", host="0.0.0.0").stop() == 0


def test_keys_from_file_and_environment(tmp_path):
    keys = tmp_path / "keys"
    keys.write_text("# of the team\n\nsk-file\n  sk-other  \n")
    for flags, environment in ((["--api-key-file", str(keys)], {}), ([], {"KNAP_API_KEY": "sk-other"})):
        with Served(*flags, environment=environment) as served:
            assert served.get("/v1/models").status == 401
            assert served.get("/v1/models", Authorization="Bearer sk-other").status == 200
            assert served.get("/v1/models", Authorization="Bearer # of the team").status == 401
            assert served.stop() == 0
    keys.write_text("# none\n")
    result = run("--api-key-file", str(keys))
    assert result.returncode != 0 and "at least one key" in result.stderr


def test_logs_have_no_prompts_answers_or_keys(server):
    secret = "zebra-umbrella-77"
    text = server.post("/v1/completions", {"prompt": f"{secret} and", "max_tokens": 12, "temperature": 0, "echo": True})
    assert secret in text.json()["choices"][0]["text"]
    server.post("/v1/completions", {"prompt": secret, "temperature": secret})
    server.post("/v1/completions", b'{"prompt": "' + secret.encode())
    without_key(server, "GET", "/v1/models", {"Authorization": f"Bearer {secret}"})
    answer = text.json()["choices"][0]["text"].removeprefix(f"{secret} and").strip()
    for word in (secret, "sk-first", "sk-second", answer):
        assert word and word not in server.output
