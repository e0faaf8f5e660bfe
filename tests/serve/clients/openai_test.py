"""openai-python: answers whole and in parts, structured output, log-probabilities."""

import asyncio

import openai
import pydantic

MESSAGES = [{"role": "user", "content": "Name three colours."}]
GREEDY = {"model": "any", "temperature": 0, "max_tokens": 12}


class Person(pydantic.BaseModel):
    name: str = pydantic.Field(max_length=12)
    age: int = pydantic.Field(ge=0, le=150)
    is_student: bool


def test_models(client):
    models = client.models.list().data
    assert [model.object for model in models] == ["model"]
    assert "/" not in models[0].id
    assert client.models.retrieve(models[0].id).id == models[0].id


def test_whole_answer(client):
    answer = client.chat.completions.create(messages=MESSAGES, **GREEDY)
    choice = answer.choices[0]
    assert answer.object == "chat.completion" and answer.id.startswith("chatcmpl-")
    assert answer.model == client.models.list().data[0].id
    assert choice.message.role == "assistant" and choice.message.content
    assert choice.finish_reason == "length"
    assert answer.usage.completion_tokens == 12
    assert answer.usage.total_tokens == answer.usage.prompt_tokens + 12
    assert answer.knap["strategy"] and answer.timings["predicted_n"] == 12


def test_stream_is_the_whole_answer_in_parts(client):
    whole = client.chat.completions.create(messages=MESSAGES, **GREEDY).choices[0]
    chunks = list(client.chat.completions.create(messages=MESSAGES, stream=True, **GREEDY))
    assert chunks[0].choices[0].delta.role == "assistant"
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks) == whole.message.content
    assert chunks[-1].choices[0].finish_reason == whole.finish_reason
    assert all(chunk.choices[0].finish_reason is None for chunk in chunks[:-1])
    assert {chunk.id for chunk in chunks} == {chunks[0].id}
    assert all(chunk.usage is None for chunk in chunks)


def test_stream_usage_comes_last(client):
    chunks = list(client.chat.completions.create(
        messages=MESSAGES, stream=True, stream_options={"include_usage": True}, **GREEDY))
    assert chunks[-1].choices == []
    assert chunks[-1].usage.completion_tokens == 12
    assert all(chunk.usage is None for chunk in chunks[:-1])


def test_async_requests_run_together(server, client):
    whole = client.chat.completions.create(messages=MESSAGES, **GREEDY).choices[0].message.content

    async def ask_all():
        async with openai.AsyncOpenAI(base_url=server.url + "/v1", api_key="none", max_retries=0) as several:
            async def streamed():
                parts = await several.chat.completions.create(messages=MESSAGES, stream=True, **GREEDY)
                return "".join([chunk.choices[0].delta.content or "" async for chunk in parts])

            async def at_once():
                answer = await several.chat.completions.create(messages=MESSAGES, **GREEDY)
                return answer.choices[0].message.content

            return await asyncio.gather(*[streamed() for _ in range(3)], *[at_once() for _ in range(3)])

    assert asyncio.run(ask_all()) == [whole] * 6


def test_text_completion(client):
    answer = client.completions.create(prompt="One, two, three,", **GREEDY)
    chunks = list(client.completions.create(prompt="One, two, three,", stream=True, **GREEDY))
    assert answer.object == "text_completion" and answer.choices[0].text
    assert "".join(chunk.choices[0].text for chunk in chunks) == answer.choices[0].text


def test_several_choices_have_seeds_of_their_own(client):
    hot = GREEDY | {"temperature": 1.5}
    answer = client.chat.completions.create(messages=MESSAGES, n=3, seed=7, **hot)
    assert [choice.index for choice in answer.choices] == [0, 1, 2]
    for k, choice in enumerate(answer.choices):
        alone = client.chat.completions.create(messages=MESSAGES, seed=7 + k, **hot)
        assert alone.choices[0].message.content == choice.message.content
    assert len({choice.message.content for choice in answer.choices}) > 1
    assert answer.usage.prompt_tokens == alone.usage.prompt_tokens
    assert answer.usage.completion_tokens == 36


def test_structured_output_fits_the_schema(client):
    answer = client.chat.completions.parse(
        model="any", temperature=0, max_tokens=120, response_format=Person,
        messages=[{"role": "user", "content": "Invent a person."}])
    person = answer.choices[0].message.parsed
    assert isinstance(person, Person) and 0 <= person.age <= 150
    assert answer.choices[0].finish_reason == "stop"


def test_json_object(client):
    answer = client.chat.completions.create(
        model="any", temperature=0, max_tokens=200, response_format={"type": "json_object"}, stop=["}"],
        messages=[{"role": "user", "content": "A JSON object with a colour."}])
    assert answer.choices[0].message.content.lstrip().startswith("{")


def test_logprobs_are_equal_with_and_without_speculation(client):
    def logprobs(strategy):
        answer = client.chat.completions.create(
            messages=MESSAGES, logprobs=True, top_logprobs=2, extra_body={"knap": {"strategy": strategy}}, **GREEDY)
        tokens = answer.choices[0].logprobs.content
        assert "".join(token.token for token in tokens) == answer.choices[0].message.content
        for token in tokens:
            assert token.logprob < 0 and bytes(token.bytes).decode(errors="replace") == token.token
            assert len(token.top_logprobs) == 2 and token.top_logprobs[0].logprob == token.logprob
        return [(token.token, token.logprob) for token in tokens]

    assert logprobs("knapspec") == logprobs("autoregressive")
