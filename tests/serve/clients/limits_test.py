"""Limits of sizes and of templates (spec 7 and 9), at the server as it is: each is an error of the client's, and the next is answered."""

import os
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


def cpu_seconds(served):
    with open(f"/proc/{served.process.pid}/stat") as stat:
        ticks = stat.read().rsplit(")", 1)[1].split()[11:13]
    return sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK")


def loops_in_a_second(served):
    """Of computing, which is what the limit counts: on a busy machine that takes longer."""
    n_loops = 20
    while True:
        before = cpu_seconds(served)
        body = {"messages": [{"role": "user", "content": "A"}], "chat_template_kwargs": {"n": n_loops}}
        assert served.post("/apply-template", body).status == 200
        spent = cpu_seconds(served) - before
        if spent >= 0.1:
            return int(n_loops / spent)
        n_loops *= 2


def test_templates_refuse_and_have_a_second(tmp_path):
    path = tmp_path / "template.jinja"
    path.write_text(TEMPLATE)
    with Served("--chat-template-file", str(path), "--idle-work", "off") as served:
        for is_streamed in (False, True):
            refused = served.chat("refuse", stream=is_streamed)
            assert refused.status == 400 and "no such words" in refused.error["message"]
            assert refused.error["type"] == "invalid_request_error"
        n_slow = 3 * loops_in_a_second(served)
        start = time.monotonic()
        stopped = served.chat(stream=True, chat_template_kwargs={"n": n_slow})
        assert stopped.status == 400 and "at most 1 s" in stopped.error["message"], stopped.body
        assert time.monotonic() - start < 30, "a second of computing, on a busy machine"
        assert served.complete(max_tokens=1).status == 200, "others are answered meanwhile"
        assert served.stop() == 0


def test_after_all_this_the_server_answers(server):
    assert server.chat().status == 200
