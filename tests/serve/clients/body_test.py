"""Bodies that are refused (spec 7): JSON, UTF-8, numbers, fields; each with 400 and the field at fault."""

import json
import time

import pytest

LONG = 2**63


@pytest.mark.parametrize("body", [
    b"", b"{", b"[]", b'"text"', b"null", b'{"prompt":"A"} x', b'{"prompt":"A"}{"prompt":"A"}', b'{"prompt":"A",}',
    b'{"prompt":"A","prompt":"B"}', b'{"prompt":"A","temperature":NaN}', b'{"prompt":"A","temperature":Infinity}',
    b'{"prompt":"A","temperature":1e999}', b'{"prompt":"A\xff"}', b'{"prompt":"\xc0\xaf"}', b'{"prompt":"\\ud800"}',
    b'{"prompt":"A","metadata":{"a":1,"a":2}}', b'{"prompt":"A",// comment\n"n":1}',
    b'{"prompt":"A","x":' + b"[" * 65 + b"]" * 65 + b"}", b'{"x":' * 65 + b"1" + b"}" * 65, b"[" * 1000000])
def test_bad_json(server, body):
    answer = server.post("/v1/completions", body)
    assert answer.status == 400, answer.body
    assert answer.error["type"] == "invalid_request_error" and answer.error["message"]


def test_64_levels_are_read(server):
    body = b'{"prompt":"A","max_tokens":1,"x":' + b"[" * 63 + b"]" * 63 + b"}"
    assert server.post("/v1/completions", body).status == 200


def test_utf8_is_kept(server):
    text = "añ—漢字😀"
    answer = server.complete(text, echo=True, max_tokens=1)
    assert answer.json()["choices"][0]["text"].startswith(text)


@pytest.mark.parametrize("field, values", [
    ("n", [0, -1, 9, 1000000, LONG, 1.5, "2", True, [], 1e300]),
    ("max_tokens", [-2, 2**31, LONG, -LONG, 1.5, "1", 1e30]),
    ("max_completion_tokens", [-2, "1"]),
    ("n_predict", [-2, 2**40]),
    ("temperature", [-0.1, 2.1, "hot", 1e300, [1]]),
    ("top_p", [-0.1, 1.1, "1"]),
    ("min_p", [-0.1, 1.1]),
    ("top_k", [-1, 2**31, 0.5]),
    ("repeat_penalty", [0, -1, "1"]),
    ("presence_penalty", [-2.1, 2.1]),
    ("frequency_penalty", [-2.1, 2.1]),
    ("repeat_last_n", [-2, 2**31]),
    ("seed", [LONG, -LONG - 1, 1.5, "1"]),
    ("stop", [[""], "", ["a"] * 17, "x" * 257, [1], 1, {}]),
    ("stream", [1, "true"]),
    ("logit_bias", [{"a": 1}, {"1": 101}, {"1": "x"}, {"99999999": 1}, {"-1": 1}, [[1]], [[1, True]], [[LONG * 2, 1]], 1]),
    ("ignore_eos", ["yes"]),
    ("cache_prompt", [1]),
    ("response_format", [1, {"type": "xml"}, {"type": "json_schema"}, {"type": "json_schema", "json_schema": {}}]),
    ("grammar", [1]),
    ("json_schema", ["text", 1]),
    ("echo", ["x"]),
    ("suffix", ["end", 1]),
    ("model", [1]),
    ("prediction", [1, {"type": "other"}, {"type": "content"}]),
    ("stream_options", [1, {"include_usage": True}]),
    ("logprobs", [-1, 21, True, "1"]),
    ("knap", [1, {"strategy": "none-such"}, {"strategy": 1}, {"draft_max": 65}, {"draft_max": -1}, {"draft_width": 17},
              {"exit_confidence": 2}, {"acceptance": "always"}, {"unknown": 1}, {"plan_file": "/etc/passwd"},
              {"assume_acceptance": 1}, {"strategy_options": [1]}, {"strategy_options": "x"}, {"decisions": 1}])])
def test_wrong_values(server, field, values):
    for value in values:
        answer = server.post("/v1/completions", {"prompt": "A", "max_tokens": 1} | {field: value})
        assert answer.status == 400, (field, value, answer.body)
        assert (answer.error["param"] or "").startswith(field), (field, value, answer.body)


@pytest.mark.parametrize("field, value", [
    ("messages", []), ("messages", "Hi"), ("messages", [1]), ("messages", [{"role": "user"}]),
    ("messages", [{"role": "wizard", "content": "Hi"}]), ("messages", [{"content": "Hi"}]),
    ("messages", [{"role": "user", "content": 1}]), ("messages", [{"role": "tool", "content": "x"}]),
    ("messages", [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "file:///etc/passwd"}}]}]),
    ("messages", [{"role": "user", "content": "Hi"}] + [{"role": "assistant", "content": "A"}] * 2),
    ("top_logprobs", 3), ("tools", [1]), ("tools", [{"type": "function"}]), ("tools", [{"type": "other"}]),
    ("tools", [{"type": "function", "function": {"name": f"f{i}"}} for i in range(129)]),
    ("tool_choice", "required"), ("tool_choice", {"type": "function", "function": {"name": "none"}}),
    ("chat_template_kwargs", {"messages": []}), ("chat_template_kwargs", {"tools": []}),
    ("chat_template_kwargs", {"chat_template": "x"}), ("chat_template_kwargs", {"a": {"b": 1}}),
    ("chat_template_kwargs", {"enable_thinking": "no"}), ("chat_template_kwargs", {"a": "x" * 17000}),
    ("reasoning_format", "deepseek"), ("continue_final_message", True)])
def test_wrong_values_in_chat(server, field, value):
    answer = server.chat(**{field: value})
    assert answer.status == 400, answer.body
    assert (answer.error["param"] or "").startswith(field), answer.body


@pytest.mark.parametrize("field, value, off", [
    ("functions", [{"name": "f"}], []), ("function_call", "auto", "none"), ("best_of", 2, 1), ("audio", {}, None),
    ("web_search_options", {}, None), ("mirostat", 1, 0), ("dry_multiplier", 0.5, 0), ("xtc_probability", 0.5, 0.0),
    ("typical_p", 0.5, 1.0), ("top_n_sigma", 1, -1), ("dynatemp_range", 1, 0), ("samplers", ["top_k"], None),
    ("lora", [{"id": 0}], [])])
def test_unsupported_fields(server, field, value, off):
    answer = server.chat(**{field: value})
    assert answer.status == 400 and answer.error["code"] == "unsupported_parameter" and answer.error["param"] == field
    assert server.chat(max_tokens=1, **{field: off}).status == 200


def test_ignored_fields_are_listed(server):
    answer = server.chat(max_tokens=1, user="me", store=True, metadata={"a": "b"}, madeup=1, service_tier=None)
    assert answer.json()["knap"]["ignored"] == ["user", "store", "metadata", "madeup"]


def test_null_means_the_default(server):
    fields = ["temperature", "top_p", "n", "stop", "stream", "stream_options", "logprobs", "logit_bias", "tools",
              "response_format", "seed", "knap", "cache_prompt", "functions", "prediction"]
    assert server.chat(**{name: None for name in fields}).status == 200


def test_long_prompt_is_refused_before_it_is_computed(server):
    n_ctx = server.get("/props").json()["default_generation_settings"]["n_ctx"]
    before = server.metric("llamacpp:prompt_tokens_total")
    for answer in (server.complete("word " * (n_ctx + 10)), server.chat("word " * (n_ctx + 10)),
                   server.complete([1] * (n_ctx + 1))):
        assert answer.status == 400
        assert answer.error["type"] == "exceed_context_size_error"
        assert answer.error["code"] == "context_length_exceeded"
        assert answer.error["n_prompt_tokens"] > answer.error["n_ctx"] == n_ctx
    assert server.metric("llamacpp:prompt_tokens_total") == before


@pytest.mark.parametrize("schema, words", [
    ({"type": "object", "properties": {"a": {"type": "madeup"}}}, ["a", "madeup"]),
    ({"$ref": "https://example.org/schema.json"}, ["$ref"]),
    ({"type": "object", "properties": {"a": {"$ref": "file:///etc/passwd"}}}, ["$ref"]),
    ({"type": "string", "pattern": "^(?<=a)b$"}, ["pattern"]),
    ({"type": "string", "minLength": 3, "maxLength": 2}, ["maxLength", "minLength"]),
    # Recursion through `allOf`, and a thousand properties in every subset: the converter would not come back.
    ({"allOf": [{"$ref": "#/$defs/a"}], "$defs": {"a": {"properties": {"p": {"allOf": [{"$ref": "#/$defs/a"}]}}}}},
     ["256 deep"]),
    ({"type": "object", "properties": {f"p{i}": {} for i in range(1000)}}, ["within a second"]),
    ({"description": "x" * 70000}, ["65536 bytes"])])
def test_bad_schema_is_refused_with_its_fault(server, schema, words):
    answer = server.chat(response_format={"type": "json_schema", "json_schema": {"name": "s", "schema": schema}})
    assert answer.status == 400, answer.body
    for word in words:
        assert word in answer.error["message"]


def test_bad_grammar_is_refused(server):
    for grammar in ("root ::= (", "root ::= missing", 'other ::= "a"', "((("):
        answer = server.complete(grammar=grammar)
        assert answer.status == 400, (grammar, answer.body)


# libllama would take hours or all memory for each (spec 7: compile within a second).
@pytest.mark.parametrize("grammar, words", [
    ('root ::= "a"{3,2}', "from the least to the most"),
    ('root ::= e root "a" | "b"\ne ::= f\nf ::= "" | "x"', "left recursion"),
    ("root ::= r0\n" + "".join(f'r{i} ::= r{i + 1} "a" | r{i + 1} "b"\n' for i in range(40)) + 'r40 ::= "a"', "second"),
    ("root ::= r0\n" + "".join(f"r{i} ::= r{i + 1} | r{i + 1}\n" for i in range(60)) + 'r60 ::= "a"', "second"),
    ("root ::= " + "|".join(['"a"'] * 50000), "second")])
def test_grammars_that_would_not_compile_are_refused_at_once(server, grammar, words):
    start = time.monotonic()
    answer = server.complete(grammar=grammar)
    assert answer.status == 400 and words in answer.error["message"], answer.body
    assert time.monotonic() - start < 10, "hours without the check; a busy machine is slow"
    assert server.get("/health").status == 200


def test_two_constraints_are_refused(server):
    answer = server.chat(grammar='root ::= "a"', response_format={"type": "json_object"})
    assert answer.status == 400
    answer = server.complete(grammar='root ::= "a"', ignore_eos=True)
    assert answer.status == 400, answer.body


def test_after_all_this_the_server_answers(server):
    assert json.loads(server.chat().body)["choices"][0]["message"]["content"]
    assert server.get("/metrics").body.decode().count('requests_refused_total{code="5') == 0
