"""Requests that are wrong, and the status that docs/server.md promises for each."""
import json

from pool import CHAT, GREEDY, TEXT, said
from wire import head_bytes, json_headers, post_bytes

GOOD = {"prompt": "A", "max_tokens": 1, **GREEDY}


def _json(key):
    """Bodies that are no JSON, or not what fields may be."""
    for body in (b"", b"{", b"[]", b"null", b'{"prompt":"A"} x', b'{"prompt":"A","prompt":"B"}', b'{"prompt":"A","temperature":NaN}',
                 b'{"prompt":"A\xff"}', b'{"prompt":"\xc0\xaf"}', b'{"prompt":"\\ud800"}', b"[" * 5000,
                 b'{"x":' * 65 + b"1" + b"}" * 65):
        yield "no JSON", 400, post_bytes(TEXT, body, key)
    for fields in ({"n": 0}, {"n": 1000000}, {"max_tokens": -2}, {"max_tokens": 2**63}, {"temperature": "hot"}, {"top_p": 1.1},
                   {"stop": [""]}, {"stream": "yes"}, {"logit_bias": {"a": 1}}, {"prompt": ""}, {"prompt": [-1]}, {"prompt": None},
                   {"grammar": "root ::= ("}, {"json_schema": {"type": "unheard-of"}}, {"knap": {"strategy": "none-such"}},
                   {"best_of": 3}, {"stream_options": {"include_usage": True}}, {"suffix": "end"}):
        yield "a wrong field", 400, post_bytes(TEXT, GOOD | fields, key)
    for body in ({"messages": []}, {"messages": [{"role": "wizard", "content": "Hi"}]}, said("Hi", tools=[1]),
                 said("Hi", functions=[{"name": "f"}]), said("Hi", top_logprobs=3), said("Hi", chat_template_kwargs={"messages": []}),
                 said("Hi", response_format={"type": "xml"}), said("Hi", grammar='root ::= "a"', json_schema={"type": "string"})):
        yield "a wrong chat", 400, post_bytes(CHAT, body, key)
    yield "a prompt longer than the context", 400, post_bytes(TEXT, GOOD | {"prompt": [1] * 70000}, key)


def _http(key):
    """What is wrong before the body, or with its length."""
    body = json.dumps(GOOD).encode()
    headers = json_headers(key, len(body))
    pairs = list(headers.items())
    for wrong in ("-1", "two", "1e3", "99999999999999999999999"):
        yield "a wrong length", 400, head_bytes("POST", TEXT, headers | {"Content-Length": wrong})
    yield "two lengths", 400, head_bytes("POST", TEXT, [*pairs, ("Content-Length", "3")])
    yield "a length that is too short", 400, head_bytes(
        "POST", TEXT, headers | {"Content-Length": len(body) - 3, "Connection": "close"}) + body
    yield "a body that is too long", 413, head_bytes("POST", TEXT, headers | {"Content-Length": (32 << 20) + 1})
    yield "a wrong chunk", 400, head_bytes("POST", TEXT, json_headers(key) | {"Transfer-Encoding": "chunked"}) + b"zz\r\n{}\r\n0\r\n\r\n"
    yield "another encoding", 400, head_bytes("POST", TEXT, json_headers(key) | {"Transfer-Encoding": "gzip"})
    yield "two hosts", 400, head_bytes("GET", "/health", [("Host", "localhost"), ("Host", "localhost")])
    yield "no host", 400, head_bytes("GET", "/health", {})
    yield "no HTTP", 400, b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(range(1, 200)) + b"\r\n\r\n"
    yield "a bad escape", 400, head_bytes("GET", "/%zz", headers)
    yield "a long URI", 414, head_bytes("GET", "/health?" + "x" * 9000, {"Host": "localhost"})
    yield "large headers", 431, head_bytes("GET", "/health", {"Host": "localhost", "Cookie": "x" * 17000})
    yield "many headers", 431, head_bytes("GET", "/health", {"Host": "localhost"} | {f"x-{i}": "1" for i in range(101)})
    yield "an expectation", 417, head_bytes("POST", TEXT, headers | {"Expect": "miracles"}) + body
    yield "another type", 415, post_bytes(TEXT, body, key, Content_Type="text/plain")
    yield "a compressed body", 415, post_bytes(TEXT, body, key, Content_Encoding="gzip")
    yield "a foreign host", 403, post_bytes(TEXT, body, key, Host="evil.example")
    yield "no such path", 404, post_bytes("/v1/embeddings", body, key)
    yield "a path upwards", 404, head_bytes("GET", "/v1/models/../../etc/passwd", json_headers(key))
    yield "another method", 405, head_bytes("DELETE", TEXT, json_headers(key))
    yield "GET of a POST", 405, head_bytes("GET", CHAT, json_headers(key))
    for wrong in ("", "sk-another", key[:-1], key + "x"):
        yield "a wrong key", 401, post_bytes(TEXT, body, wrong)
    yield "no key", 401, head_bytes("GET", "/metrics", {"Host": "localhost"})


def refusals(key):
    """(what is wrong, status, bytes to send)."""
    return [*_json(key), *_http(key)]
