"""openai-python: tools, with a chat template that knows them. The small model calls none by itself, so they are required."""

import json
import pathlib

import pytest

FLAGS = ["--chat-template-file", str(pathlib.Path(__file__).with_name("tools.jinja"))]
WEATHER = {"type": "function", "function": {
    "name": "get_weather", "description": "Tells the weather of a city.",
    "parameters": {"type": "object", "properties": {"city": {"type": "string", "maxLength": 12}},
                   "required": ["city"], "additionalProperties": False}}}
CLOCK = {"type": "function", "function": {
    "name": "get_time", "description": "Tells the time in a zone.",
    "parameters": {"type": "object", "properties": {"zone": {"enum": ["UTC", "CET"]}}, "required": ["zone"]}}}

QUESTION = [{"role": "user", "content": "What is the weather in Rome?"}]
SHORT = {"model": "any", "temperature": 0, "max_tokens": 120}


def calls_of(answer):
    choice = answer.choices[0]
    assert choice.finish_reason == "tool_calls" and choice.message.content is None
    return choice.message.tool_calls


@pytest.mark.parametrize("choice, name", [
    ("required", None), ({"type": "function", "function": {"name": "get_time"}}, "get_time"),
    ({"type": "function", "function": {"name": "get_weather"}}, "get_weather")])
def test_tools(client, choice, name):
    answer = client.chat.completions.create(
        messages=QUESTION, **SHORT, tools=[WEATHER, CLOCK], tool_choice=choice)
    for call in calls_of(answer):
        assert call.type == "function" and call.id.startswith("call_")
        assert call.function.name in ([name] if name else ["get_weather", "get_time"])
        arguments = json.loads(call.function.arguments)
        assert set(arguments) == ({"city"} if call.function.name == "get_weather" else {"zone"})


def test_tool_call_streams_name_first(client):
    chunks = list(client.chat.completions.create(
        messages=QUESTION, **SHORT, tools=[WEATHER], tool_choice="required", stream=True))
    deltas = [call for chunk in chunks for call in chunk.choices[0].delta.tool_calls or []]
    assert deltas[0].function.name == "get_weather" and deltas[0].function.arguments == ""
    assert deltas[0].id.startswith("call_") and deltas[0].type == "function"
    first = [call for call in deltas if call.index == 0]
    assert all(call.id is None and call.function.name is None for call in first[1:])
    assert set(json.loads("".join(call.function.arguments for call in first))) == {"city"}
    assert chunks[-1].choices[0].finish_reason == "tool_calls"


def test_answer_of_a_tool_is_read(client):
    answer = client.chat.completions.create(tools=[WEATHER], tool_choice="none", messages=[
        {"role": "user", "content": "What is the weather in Rome?"},
        {"role": "assistant", "content": None, "tool_calls": [
            {"id": "call_1", "type": "function", "function": {"name": "get_weather", "arguments": '{"city":"Rome"}'}}]},
        {"role": "tool", "tool_call_id": "call_1", "content": "Sunny, 25 degrees."}], **SHORT | {"max_tokens": 12})
    assert answer.choices[0].message.content and not answer.choices[0].message.tool_calls


@pytest.mark.parametrize("choice", ["auto", "none", None])
def test_tools_need_not_be_called(client, choice):
    fields = {} if choice is None else {"tool_choice": choice}
    answer = client.chat.completions.create(messages=QUESTION, tools=[WEATHER], **SHORT | {"max_tokens": 12}, **fields)
    assert answer.choices[0].finish_reason in ("stop", "length", "tool_calls")


def test_none_leaves_tools_out_of_the_prompt(server):
    body = {"messages": QUESTION, "tools": [WEATHER]}
    with_tools = server.post("/apply-template", body).json()["prompt"]
    without = server.post("/apply-template", body | {"tool_choice": "none"}).json()["prompt"]
    assert "get_weather" in with_tools and "get_weather" not in without


@pytest.mark.parametrize("sampling", [{"temperature": 0}, {"temperature": 1, "seed": 1}, {"temperature": 1, "seed": 2}])
def test_calls_are_equal_with_every_strategy(server, sampling):
    def calls(strategy):
        answer = server.post("/v1/chat/completions", {
            "messages": QUESTION, "tools": [WEATHER, CLOCK], "tool_choice": "required", "max_tokens": 120,
            "knap": {"strategy": strategy}} | sampling)
        if answer.status != 200:   # it needs a file or a model trained for it
            return None
        message = answer.json()["choices"][0]["message"]
        return [message["content"]] + [call["function"] for call in message.get("tool_calls", [])]

    plain = calls("autoregressive")
    answers = [calls(name) for name in server.get("/props").json()["knap"]["strategies"]]
    assert plain and sum(answer is not None for answer in answers) >= 4
    assert all(answer in (None, plain) for answer in answers), answers


def test_bad_schema_of_a_tool_names_the_tool(server):
    tool = {"type": "function", "function": {"name": "lookup", "parameters": {
        "type": "object", "properties": {"key": {"type": "madeup"}}}}}
    answer = server.chat(tools=[tool], tool_choice="required")
    assert answer.status == 400, answer.body
    for word in ("lookup", "key", "madeup"):
        assert word in answer.error["message"]
