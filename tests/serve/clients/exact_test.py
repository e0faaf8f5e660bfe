"""The same text alone and among many, with every strategy, with and without the cache (spec 9)."""

import concurrent.futures
import json
import random

import pytest

FLAGS = ["--parallel", "8", "-c", "1024"]
N_AT_ONCE = 32
SHARED = "You are a careful assistant. " * 10
QUESTIONS = ["Count from one to ten.", "Repeat: red green blue red green blue red"]
GREEDY = {"temperature": 0}
SEEDED = {"temperature": 1.0, "seed": 1234}
N_TOKENS = 12


def tokens(server, question, sampling, **fields):
    """Text and token ids of an answer."""
    answer = server.post("/v1/chat/completions", {
        "messages": [{"role": "system", "content": SHARED}, {"role": "user", "content": question}],
        "max_tokens": N_TOKENS, "logprobs": True} | sampling | fields)
    assert answer.status == 200, answer.body
    choice = answer.json()["choices"][0]
    return choice["message"]["content"], [token["id"] for token in choice["logprobs"]["content"]]


@pytest.fixture(scope="module")
def alone(server):
    """One at a time, without speculation or cache."""
    return {(question, name): tokens(server, question, sampling, cache_prompt=False, knap={"strategy": "autoregressive"})
            for question in QUESTIONS for name, sampling in (("greedy", GREEDY), ("seeded", SEEDED))}


def usable_strategies(server):
    """Those that need no further file or training of the model."""
    names = server.get("/props").json()["knap"]["strategies"]
    usable = [name for name in names if server.chat(max_tokens=1, knap={"strategy": name}).status == 200]
    assert len(usable) >= 4 and {"autoregressive", "knapspec"} <= set(usable)
    return usable


def test_many_at_once_equal_one_at_a_time(server, alone):
    names = usable_strategies(server)
    cases = [(question, sampling, strategy, uses_cache)
             for strategy in names for uses_cache in (True, False) for question in QUESTIONS
             for sampling in ("greedy", "seeded")]
    # In an order that mixes strategies, 32 at a time while they last.
    random.Random(1).shuffle(cases)
    with concurrent.futures.ThreadPoolExecutor(N_AT_ONCE) as threads:
        answers = list(threads.map(lambda case: tokens(
            server, case[0], GREEDY if case[1] == "greedy" else SEEDED, cache_prompt=case[3], knap={"strategy": case[2]}),
            cases))
    different = [case for case, answer in zip(cases, answers) if answer != alone[case[0], case[1]]]
    assert not different
    assert len(cases) >= N_AT_ONCE


@pytest.mark.parametrize("sampling", [GREEDY, SEEDED])
def test_structured_answers_are_equal_with_every_strategy(server, sampling):
    schema = {"type": "object", "properties": {"name": {"type": "string", "maxLength": 8}, "ok": {"type": "boolean"}},
              "required": ["name", "ok"], "additionalProperties": False}
    answers = {name: tokens(server, "Invent a person.", sampling, max_tokens=40, json_schema=schema, knap={"strategy": name})
               for name in usable_strategies(server)}
    assert len(set(map(str, answers.values()))) == 1, answers


@pytest.mark.parametrize("sampling", [GREEDY, SEEDED])
def test_a_long_bound_holds_with_every_strategy(server, sampling):
    # Neither number is a count of rules that libllama would make, and the string ends at the second.
    schema = {"type": "string", "minLength": 66, "maxLength": 70}
    answers = {name: tokens(server, "Tell a story.", sampling, max_tokens=150, json_schema=schema, knap={"strategy": name})
               for name in usable_strategies(server)}
    assert len(set(map(str, answers.values()))) == 1, answers
    text = json.loads(answers["knapspec"][0])
    assert 66 <= len(text) <= 70, text


def test_the_cache_is_used(server):
    tokens(server, QUESTIONS[0], GREEDY)
    body = {"messages": [{"role": "system", "content": SHARED}, {"role": "user", "content": QUESTIONS[1]}], "max_tokens": 1}
    cached = server.post("/v1/chat/completions", body).json()["usage"]["prompt_tokens_details"]["cached_tokens"]
    assert cached > 30
    body["cache_prompt"] = False
    assert server.post("/v1/chat/completions", body).json()["usage"]["prompt_tokens_details"]["cached_tokens"] == 0
