"""Limits of sizes and of templates (spec 7 and 9), at the server as it is: each is an error of the client's, and the next is answered."""

import time

from served import Served

BODY_BYTES = 32 << 20
URI_BYTES = 8 << 10
HEADER_BYTES = 16 << 10

# Refuses some words, and takes as long as it is told.
TEMPLATE = """{% for m in messages %}{% if m.content == 'refuse' %}{{ raise_exception('no such words') }}{% endif %}
{%- for i in range(n | default(1)) %}{% for j in range(100) %}{% set x = i + j %}{% endfor %}{% endfor %}
{{- m.role + ': ' + m.content + '\n' }}{% endfor %}"""


def test_one_byte_more_than_a_body_may_have(server):
    start = b'{"prompt":"A","max_tokens":1,"metadata":"'
    fits = start + b"x" * (BODY_BYTES - len(start) - 2) + b'"}'
    assert len(fits) == BODY_BYTES
    assert server.post("/v1/completions", fits).status == 200
    # Refused by its length alone: nothing of the body is sent.
    connection = server.connect()
    connection.putrequest("POST", "/v1/completions")
    connection.putheader("Content-Type", "application/json")
    connection.putheader("Content-Length", str(BODY_BYTES + 1))
    connection.endheaders()
    assert connection.getresponse().status == 413
    connection.close()


def test_one_byte_more_than_a_uri_may_have(server):
    assert server.get("/health?" + "x" * (URI_BYTES - len("/health?"))).status == 200
    assert server.get("/health?" + "x" * (URI_BYTES + 1 - len("/health?"))).status == 414


def test_more_headers_than_a_request_may_have(server):
    assert server.get("/health", Cookie="x" * (HEADER_BYTES - 200)).status == 200
    assert server.get("/health", Cookie="x" * HEADER_BYTES).status == 431
    assert server.get("/health", **{f"x-{i}": "1" for i in range(90)}).status == 200
    assert server.get("/health", **{f"x-{i}": "1" for i in range(101)}).status == 431


def test_templates_refuse_and_have_a_second(tmp_path):
    path = tmp_path / "template.jinja"
    path.write_text(TEMPLATE)
    with Served("--chat-template-file", str(path)) as served:
        for is_streamed in (False, True):
            refused = served.chat("refuse", stream=is_streamed)
            assert refused.status == 400 and "no such words" in refused.error["message"]
            assert refused.error["type"] == "invalid_request_error"
        body = {"messages": [{"role": "user", "content": "A"}]}
        start = time.monotonic()
        assert served.post("/apply-template", body | {"chat_template_kwargs": {"n": 20}}).status == 200
        n_slow = int(20 * 3 / (time.monotonic() - start))
        start = time.monotonic()
        stopped = served.chat(stream=True, chat_template_kwargs={"n": n_slow})
        assert stopped.status == 400 and "at most 1 s" in stopped.error["message"], stopped.body
        assert time.monotonic() - start < 10, "a second of computing, on a busy machine"
        assert served.complete(max_tokens=1).status == 200, "others are answered meanwhile"
        assert served.stop() == 0


def test_after_all_this_the_server_answers(server):
    assert server.chat().status == 200
