"""curl, as in docs/server.md."""

import json
import subprocess

BODY = json.dumps({"messages": [{"role": "user", "content": "Say hello."}], "max_tokens": 8, "temperature": 0})


def curl(*arguments):
    result = subprocess.run(["curl", "-sS", "--max-time", "60", *arguments], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    return result.stdout


def test_answer(server):
    text = curl(server.url + "/v1/chat/completions", "-H", "Content-Type: application/json", "-d", BODY)
    assert json.loads(text)["choices"][0]["message"]["content"]


def test_stream(server):
    body = json.dumps(json.loads(BODY) | {"stream": True})
    text = curl("-N", "-i", server.url + "/v1/chat/completions", "-H", "Content-Type: application/json", "-d", body)
    head, events = text.replace("\r\n", "\n").split("\n\n", 1)
    assert "content-type: text/event-stream" in head.lower() and "cache-control: no-cache" in head.lower()
    assert "x-accel-buffering: no" in head.lower()
    assert events.endswith("data: [DONE]\n\n")


def test_without_header_the_message_tells_how(server):
    text = curl(server.url + "/v1/chat/completions", "-d", BODY)
    assert "-H 'Content-Type: application/json'" in json.loads(text)["error"]["message"]


def test_large_body_waits_for_continue(server):
    body = json.dumps(json.loads(BODY) | {"metadata": {"a": "x" * 2_000_000}})
    result = subprocess.run(
        ["curl", "-sS", server.url + "/v1/chat/completions", "-H", "Content-Type: application/json",
         "-H", "Expect: 100-continue", "--data-binary", "@-"], input=body, capture_output=True, text=True)
    text = result.stdout
    assert json.loads(text)["choices"]


def test_http_1_0_closes(server):
    text = curl("--http1.0", "-i", server.url + "/health")
    assert '{"status":"ok"}' in text


def test_ready_line_can_be_tried(server):
    line = next(line for line in server.lines if "try it: curl" in line)
    text = subprocess.run(line.split("try it: ")[1].replace('"messages"', '"max_tokens":2,"messages"', 1), shell=True,
                          capture_output=True, text=True).stdout
    assert json.loads(text)["choices"][0]["message"]["role"] == "assistant"
