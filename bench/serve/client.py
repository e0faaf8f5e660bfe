"""Clients of OpenAI's interface that measure a streamed answer: one of our own, and openai-python."""
import asyncio
import json
import tempfile
import time
from dataclasses import dataclass, field

from sse import EventParser, HttpError, events, read_body, read_head, request_bytes


@dataclass
class Answer:
    text: str = ""
    first_s: float = 0       # from the request to the first text
    wall_s: float = 0        # from the request to the end of the stream
    usage: dict = field(default_factory=dict)
    timings: dict = field(default_factory=dict)   # the server's own

    @property
    def n_tokens(self):
        return self.usage["completion_tokens"]

    @property
    def decode_rate(self):
        """Tokens/s after the first token, by the server's clock. Both servers count alike."""
        return self.timings["predicted_per_second"]

    @property
    def stream_rate(self):
        """Tokens/s of the whole request, by the client's clock."""
        return self.n_tokens / self.wall_s

    def add(self, chunk, start):
        """Takes a chunk that arrived now. `start` is when the request was sent."""
        text = "".join(choice["delta"].get("content") or "" for choice in chunk.get("choices") or [])
        if text and not self.first_s:
            self.first_s = time.perf_counter() - start
        self.text += text
        self.usage = chunk.get("usage") or self.usage
        self.timings = chunk.get("timings") or self.timings


def chat_body(content, n_tokens, system=None, **fields):
    """A greedy request for an answer of exactly `n_tokens`, unless the fields say otherwise."""
    messages = [{"role": "system", "content": system}] if system else []
    body = {"model": "default", "messages": messages + [{"role": "user", "content": content}], "max_tokens": n_tokens,
            "temperature": 0, "ignore_eos": True, "stream": True, "stream_options": {"include_usage": True}}
    return {name: value for name, value in (body | fields).items() if value is not None}


async def own_stream(server, body):
    answer = Answer()
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port, limit=1 << 22)
    start = time.perf_counter()
    writer.write(request_bytes("POST", "/v1/chat/completions", body))
    async for chunk in events(reader):
        answer.add(chunk, start)
    answer.wall_s = time.perf_counter() - start
    writer.close()
    return answer


# Fields that openai-python knows; the others travel in `extra_body`.
OPENAI_FIELDS = {"model", "messages", "max_tokens", "temperature", "stream", "stream_options", "response_format",
                 "prediction"}


async def openai_stream(server, body):
    from openai import AsyncOpenAI  # not installed everywhere
    known = {name: value for name, value in body.items() if name in OPENAI_FIELDS}
    extra = {name: value for name, value in body.items() if name not in OPENAI_FIELDS}
    answer = Answer()
    async with AsyncOpenAI(base_url=f"{server.address}/v1", api_key="none", max_retries=0, timeout=3600) as client:
        start = time.perf_counter()
        async for chunk in await client.chat.completions.create(**known, extra_body=extra):
            answer.add(chunk.model_dump(), start)
        answer.wall_s = time.perf_counter() - start
    return answer


async def curl_stream(server, body):
    """curl takes the stream, at next to no cost for a machine whose cores are all computing. When the first text came is
    not known."""
    answer = Answer()
    with tempfile.TemporaryFile() as sent, tempfile.TemporaryFile() as received:
        sent.write(json.dumps(body).encode())
        sent.seek(0)
        start = time.perf_counter()
        process = await asyncio.create_subprocess_exec(
            "curl", "-sSN", "--fail", "-H", "Content-Type: application/json", "--data-binary", "@-",
            f"{server.address}/v1/chat/completions", stdin=sent, stdout=received)
        status = await process.wait()
        answer.wall_s = time.perf_counter() - start
        if status != 0:
            raise HttpError(f"curl ended with {status}")
        received.seek(0)
        for event in EventParser().feed(received.read()):
            if event != "[DONE]":
                answer.add(json.loads(event), start)
    return answer


STREAMS = {"own": own_stream, "openai": openai_stream}


async def call(server, method, path, body=None):
    """The JSON answer to a request that is not streamed."""
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    writer.write(request_bytes(method, path, body))
    status, headers = await read_head(reader)
    text = await read_body(reader, headers)
    writer.close()
    if status != 200:
        raise HttpError(f"{path}: status {status}: {text.decode()[:400]}")
    return json.loads(text)
