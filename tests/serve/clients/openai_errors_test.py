"""openai-python's exceptions, one for each status, and what it tries again."""

import threading
import time

import openai
import pytest

from served import Served, Stream

MESSAGES = [{"role": "user", "content": "Hello."}]
FLAGS = ["--api-key", "sk-right", "--strict-model", "--parallel", "1", "--queue", "0", "--alias", "small"]


def client_of(server, key="sk-right", retries=0):
    return openai.OpenAI(base_url=server.url + "/v1", api_key=key, max_retries=retries, timeout=60)


def ask(client, **fields):
    return client.chat.completions.create(**{"model": "small", "messages": MESSAGES, "max_tokens": 2} | fields)


def test_bad_request(server):
    with pytest.raises(openai.BadRequestError) as caught:
        ask(client_of(server), temperature=9)
    assert caught.value.status_code == 400 and caught.value.param == "temperature"
    assert caught.value.type == "invalid_request_error"


def test_wrong_key(server):
    with pytest.raises(openai.AuthenticationError) as caught:
        ask(client_of(server, key="sk-wrong"))
    assert caught.value.code == "invalid_api_key"
    assert caught.value.response.headers["www-authenticate"] == "Bearer"


def test_foreign_host_is_denied(server):
    with pytest.raises(openai.PermissionDeniedError):
        ask(client_of(server), extra_headers={"Host": "evil.example"})


def test_unknown_model(server):
    with pytest.raises(openai.NotFoundError) as caught:
        ask(client_of(server), model="gpt-4o")
    assert caught.value.code == "model_not_found"
    with pytest.raises(openai.NotFoundError):
        client_of(server).models.retrieve("gpt-4o")
    with pytest.raises(openai.NotFoundError):
        client_of(server).embeddings.create(model="small", input="text")


def test_long_prompt(server):
    with pytest.raises(openai.BadRequestError) as caught:
        ask(client_of(server), messages=[{"role": "user", "content": "word " * 20000}])
    assert caught.value.code == "context_length_exceeded"
    assert caught.value.body["n_prompt_tokens"] > caught.value.body["n_ctx"]


def busy(server):
    """A stream that occupies the only session."""
    server.wait_for_busy(0, 10)
    stream = Stream(server, ignore_eos=True, model="small", headers={"Authorization": "Bearer sk-right"})
    assert stream.status() == 200
    return stream


def test_full_queue(server):
    stream = busy(server)
    try:
        with pytest.raises(openai.RateLimitError) as caught:
            ask(client_of(server))
        headers = caught.value.response.headers
        assert caught.value.code == "queue_full"
        assert int(headers["retry-after"]) >= 1
        assert 0 < int(headers["retry-after-ms"]) <= 1000 * int(headers["retry-after"])
    finally:
        stream.close()


def test_full_queue_is_tried_again(server):
    stream = busy(server)
    threading.Timer(0.5, stream.close).start()
    answer = ask(client_of(server, retries=8))
    assert answer.choices[0].message.content


def test_bad_requests_are_not_tried_again(server):
    before = server.metric('knap:requests_refused_total{code="400"}')
    start = time.monotonic()
    with pytest.raises(openai.BadRequestError):
        ask(client_of(server, retries=5), top_p=2)
    assert server.metric('knap:requests_refused_total{code="400"}') == before + 1
    assert time.monotonic() - start < 5


def test_stopped_server_cannot_be_reached():
    served = Served()
    client = openai.OpenAI(base_url=served.url + "/v1", api_key="none", max_retries=0)
    assert served.stop() == 0
    with pytest.raises(openai.APIConnectionError):
        client.models.list()
