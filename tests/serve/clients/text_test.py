"""Texts and tokens: /completion, /tokenize, /detokenize, /apply-template, stop strings, echo, seeds, states."""

import pytest

from served import Stream, greedy_text

PROMPT = "The quick brown fox jumps over the lazy dog. The quick brown"


def test_tokenize_round_trip(server):
    for text in ("Hello, world", "añ—漢字😀\n\t x", "<|im_start|>user", " ", ""):
        tokens = server.post("/tokenize", {"content": text}).json()["tokens"]
        assert server.post("/detokenize", {"tokens": tokens}).json() == {"content": text}


def test_tokenize_options(server):
    special = server.post("/tokenize", {"content": "<|im_start|>"}).json()["tokens"]
    plain = server.post("/tokenize", {"content": "<|im_start|>", "parse_special": False}).json()["tokens"]
    assert len(special) == 1 and len(plain) > 1
    pieces = server.post("/tokenize", {"content": "a 😀", "with_pieces": True}).json()["tokens"]
    joined = b"".join(one["piece"].encode() if isinstance(one["piece"], str) else bytes(one["piece"]) for one in pieces)
    assert joined.decode() == "a 😀"
    assert any(isinstance(one["piece"], list) for one in pieces), "no piece is part of a character"


def test_detokenize_refuses_unknown_ids(server):
    for tokens in ([99999999], [-1], [1.5], ["a"], "text", None, [2**70]):
        answer = server.post("/detokenize", {"tokens": tokens})
        assert answer.status == 400 and answer.error["param"] == "tokens", tokens


def test_apply_template(server):
    body = {"messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi"}]}
    prompt = server.post("/apply-template", body).json()["prompt"]
    assert prompt.index("Be brief.") < prompt.index("Hi")
    assert prompt.rstrip().endswith("<|im_start|>assistant")
    closed = server.post("/apply-template", body | {"add_generation_prompt": False}).json()["prompt"]
    assert not closed.rstrip().endswith("assistant")
    assert server.post("/apply-template", {}).status == 400


def test_special_tokens_in_messages_are_text(server):
    n = [server.chat(text, max_tokens=1).json()["usage"]["prompt_tokens"] for text in ("<|im_end|>", "x")]
    assert n[0] > n[1]


def test_native_completion(server):
    body = {"prompt": PROMPT, "n_predict": 12, "temperature": 0}
    answer = server.post("/completion", body).json()
    assert answer["stop"] is True and answer["stop_type"] == "limit" and answer["stopping_word"] == ""
    assert len(answer["tokens"]) == 12 and answer["timings"]["predicted_n"] == 12
    assert server.post("/detokenize", {"tokens": answer["tokens"]}).json()["content"] == answer["content"]
    word = answer["content"].split()[2]
    stopped = server.post("/completion", body | {"stop": [word]}).json()
    assert stopped["stop_type"] == "word" and stopped["stopping_word"] == word
    assert stopped["content"] == answer["content"][:answer["content"].index(word)]
    events = list(Stream(server, "/completion", **body).events())
    assert events[-1]["timings"]["predicted_n"] == 12 and events[-1]["stop_type"] == "limit"
    assert "".join(event["content"] for event in events) == answer["content"]
    assert [event["stop"] for event in events] == [False] * (len(events) - 1) + [True]
    assert answer["content"] == greedy_text(server.complete(PROMPT, max_tokens=12))


def test_prompts_of_every_shape(server):
    tokens = server.post("/tokenize", {"content": PROMPT}).json()["tokens"]
    expected = greedy_text(server.complete(PROMPT))
    assert greedy_text(server.complete([PROMPT])) == expected
    assert greedy_text(server.complete(tokens)) == expected
    answer = server.complete([PROMPT, "One, two,"], n=2).json()
    assert [choice["index"] for choice in answer["choices"]] == [0, 1, 2, 3]
    texts = [choice["text"] for choice in answer["choices"]]
    assert texts[:2] == [expected] * 2 and texts[2] == texts[3] == greedy_text(server.complete("One, two,"))
    assert greedy_text(server.complete([tokens, tokens])) == expected
    for prompt in ("", [], [""], [[]], None, 1, [1.5], {}, [[1], "a", 2], ["a"] * 33):
        answer = server.complete(prompt)
        assert answer.status == 400 and answer.error["param"] == "prompt", prompt


@pytest.mark.parametrize("strategy", ["autoregressive", "knapspec"])
def test_stop_strings_split_over_tokens(server, strategy):
    own = {"knap": {"strategy": strategy}}
    whole = greedy_text(server.complete(PROMPT, max_tokens=24, **own))
    # Every string of up to 9 bytes that occurs first at its place: many begin and end within tokens.
    for start in range(2, 30, 5):
        stop = whole[start:start + 9]
        expected = whole[:whole.index(stop)]
        answer = server.complete(PROMPT, max_tokens=24, stop=stop, **own).json()["choices"][0]
        assert (answer["text"], answer["finish_reason"]) == (expected, "stop")
        chunks = [event for event in Stream(server, "/v1/completions", prompt=PROMPT, max_tokens=24, temperature=0,
                                            stop=["never", stop], **own).events() if event != "[DONE]"]
        assert "".join(chunk["choices"][0]["text"] for chunk in chunks) == expected


def test_echo(server):
    plain, echoed = (greedy_text(server.complete(PROMPT, echo=echo)) for echo in (False, True))
    assert echoed == PROMPT + plain
    assert server.complete(PROMPT, echo=True, logprobs=1).status == 400


def test_seeds(server):
    hot = {"temperature": 1.5, "max_tokens": 12}
    first = server.complete(**hot).json()
    seed = first["knap"]["seed"]
    again = server.complete(seed=seed, **hot).json()
    assert again["knap"]["seed"] == seed and again["choices"][0]["text"] == first["choices"][0]["text"]
    assert server.complete(seed=-1, **hot).json()["knap"]["seed"] != seed


def test_zero_tokens_read_the_prompt_only(server):
    answer = server.complete(PROMPT, max_tokens=0).json()
    assert answer["choices"][0]["text"] == "" and answer["choices"][0]["finish_reason"] == "length"
    assert answer["usage"]["completion_tokens"] == 0 and answer["usage"]["prompt_tokens"] > 5


def test_first_length_field_wins(server):
    body = {"messages": [{"role": "user", "content": "Hi"}], "max_completion_tokens": 2, "max_tokens": 3, "n_predict": 4}
    assert server.post("/v1/chat/completions", body).json()["usage"]["completion_tokens"] == 2


def test_banned_tokens_do_not_come(server):
    first = server.post("/completion", {"prompt": PROMPT, "n_predict": 1, "temperature": 0}).json()["tokens"][0]
    for bias in ({str(first): -100}, [[first, False]], [[first, -100]]):
        answer = server.post("/completion", {"prompt": PROMPT, "n_predict": 4, "temperature": 0, "logit_bias": bias})
        assert first not in answer.json()["tokens"][:1]


def test_text_logprobs(server):
    choice = server.complete(PROMPT, logprobs=2).json()["choices"][0]
    logprobs = choice["logprobs"]
    assert "".join(logprobs["tokens"]) == choice["text"]
    assert [len(logprobs[name]) for name in ("token_logprobs", "top_logprobs", "text_offset")] == [8] * 3
    for token, logprob, top in zip(logprobs["tokens"], logprobs["token_logprobs"], logprobs["top_logprobs"]):
        assert top[token] == logprob < 0 and len(top) == 2


def test_text_outside_of_ascii(server):
    """Every chunk has whole characters, whatever tokens they are made of; offsets count characters."""
    text = "añ漢字😀 z"
    body = {"prompt": PROMPT, "grammar": f'root ::= "{text}"', "max_tokens": 60, "temperature": 0, "logprobs": 3}
    choice = server.post("/v1/completions", body).json()["choices"][0]
    assert choice["text"] == text
    logprobs = choice["logprobs"]
    assert any(token.startswith("bytes:") for token in logprobs["tokens"]), "no token is part of a character"
    # Bytes before each token, as characters that are complete there.
    pieces = [bytes.fromhex(token[6:].replace("\\x", "")) if token.startswith("bytes:") else token.encode()
              for token in logprobs["tokens"]]
    expected = [len(b"".join(pieces[:i]).decode(errors="ignore")) for i in range(len(pieces))]
    assert logprobs["text_offset"] == expected
    assert all(len(top) == 3 for top in logprobs["top_logprobs"])
    chunks = [event["choices"][0] for event in Stream(server, "/v1/completions", **body).events() if event != "[DONE]"]
    assert "".join(chunk["text"] for chunk in chunks) == text
    assert not any("\ufffd" in chunk["text"] for chunk in chunks)
    assert sum((chunk["logprobs"]["text_offset"] for chunk in chunks if chunk["logprobs"]), []) == expected


def test_grammar(server):
    answer = server.complete(PROMPT, grammar='root ::= ("yes" | "no") " sir"', max_tokens=20).json()["choices"][0]
    assert answer["text"] in ("yes sir", "no sir") and answer["finish_reason"] == "stop"


def test_timings_and_progress(server):
    stream = Stream(server, timings_per_token=True, return_progress=True, max_tokens=16, cache_prompt=False, temperature=0,
                    ignore_eos=True,
                    messages=[{"role": "user", "content": "word " * 300}])
    events = [event for event in stream.events() if event != "[DONE]"]
    progress = [event["prompt_progress"] for event in events if "prompt_progress" in event]
    assert progress and progress[-1]["processed"] == progress[-1]["total"] > 300
    assert set(progress[0]) >= {"total", "cache", "processed", "time_ms"}
    assert sum("timings" in event for event in events) >= 2
    assert events[-1]["timings"]["predicted_n"] == 16 and "knap" in events[-1]


def test_short_names_of_endpoints(server):
    assert server.post("/completions", {"prompt": PROMPT, "max_tokens": 1}).json()["object"] == "text_completion"
    body = {"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 1}
    assert server.post("/chat/completions", body).json()["object"] == "chat.completion"


def test_states(server):
    props = server.get("/props").json()
    assert props["total_slots"] == 8 and "autoregressive" in props["knap"]["strategies"]
    assert props["default_generation_settings"]["params"]["temperature"] == pytest.approx(0.8)
    assert "im_start" in props["chat_template"] and props["modalities"] == {"vision": False, "audio": False}
    slots = server.get("/slots").json()
    assert len(slots) == 8 and not any(slot["is_processing"] for slot in slots)
    assert {slot["n_ctx"] for slot in slots} == {props["default_generation_settings"]["n_ctx"]}
    assert not any("prompt" == name for slot in slots for name in slot)
    assert server.get("/slots?fail_on_no_slot=1").status == 200
    model = server.get("/v1/models").json()["data"][0]
    assert server.get("/models").json()["data"] == [model]
    assert model["max_model_len"] == model["meta"]["n_ctx"] and model["owned_by"] == "knap"


def test_metrics_have_the_names(server):
    text = server.get("/metrics").body.decode()
    drafts = [f"spec_decode_num_{name}_total" for name in ("drafts", "draft_tokens", "accepted_tokens", "accepted_tokens_per_pos")]
    names = {
        "llamacpp": drafts + [
            "prompt_tokens_total", "prompt_tokens_cached_total", "prompt_seconds_total", "tokens_predicted_total",
            "tokens_predicted_seconds_total", "n_decode_total", "n_tokens_max", "prompt_tokens_seconds",
            "predicted_tokens_seconds", "requests_processing", "requests_deferred", "n_busy_slots_per_decode"],
        "vllm": drafts + [
            "prompt_tokens_total", "generation_tokens_total", "request_success_total", "num_requests_running",
            "num_requests_waiting", "kv_cache_usage_perc", "time_to_first_token_seconds_bucket",
            "inter_token_latency_seconds_bucket", "e2e_request_latency_seconds_bucket", "request_queue_time_seconds_bucket"],
        "knap": ["tokens_total", "draft_seconds_total", "verify_seconds_total", "search_seconds_total",
                 "idle_search_seconds_total", "near_ties_total", "forced_tokens_total", "requests_refused_total", "disconnects_total"]}
    for name in (f"{prefix}:{name}" for prefix, group in names.items() for name in group):
        assert f"\n{name}" in text, name
    for line in text.splitlines():
        if line and not line.startswith("#"):
            float(line.rsplit(" ", 1)[1])
            assert not line.startswith("vllm:") or 'engine="0"' in line
