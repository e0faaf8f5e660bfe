"""Drafts copied from other texts than the prompt: a prediction, and what earlier answers said. Passes are counted, not timed.

Servers plan with a profile that is the same on every machine, and draft nothing but copies. Otherwise how many passes an answer
takes would depend on how busy the machine is, and on what other servers have learned.
"""

import os
import subprocess

import pytest

from served import Served

QUESTION = "Name ten animals that live in the sea, in one sentence each."
N_TOKENS = 60


def ask(server, **fields):
    answer = server.chat(QUESTION, max_tokens=N_TOKENS, ignore_eos=True, **fields)
    assert answer.status == 200, answer.body
    return answer.json()


def text_of(answer):
    return answer["choices"][0]["message"]["content"]


@pytest.fixture(scope="module")
def flags(tmp_path_factory):
    """Of every server here."""
    folder = tmp_path_factory.mktemp("profile")
    profile = subprocess.run([os.environ["KNAP_EAGER_PROFILE"], folder], capture_output=True, text=True, check=True).stdout.strip()
    return ["--profile", profile, "--memory", "off", "--idle-work", "off", "--strategy-options", "plans=off,margin=0"]


@pytest.fixture(scope="module")
def server(flags):
    with Served(*flags, "--answer-memory", "0") as served:
        yield served
        assert served.stop() == 0, served.output


@pytest.fixture(scope="module")
def free(server):
    return ask(server)


@pytest.mark.parametrize("parts", [False, True])
def test_prediction_speeds_and_changes_nothing(server, free, parts):
    text = text_of(free)
    answer = ask(server, prediction={"type": "content", "content": [{"type": "text", "text": text}] if parts else text})
    assert text_of(answer) == text
    assert answer["knap"]["rounds"] < free["knap"]["rounds"] / 2
    assert answer["usage"]["completion_tokens_details"]["accepted_prediction_tokens"] > N_TOKENS / 2


def test_wrong_prediction_changes_nothing(server, free):
    answer = ask(server, prediction={"type": "content", "content": "Once upon a time there was a king. " * 20})
    assert text_of(answer) == text_of(free)


def test_without_memory_earlier_answers_are_not_copied(server, free):
    assert ask(server)["knap"]["rounds"] > free["knap"]["rounds"] / 2


def test_earlier_answers_speed_those_of_the_same_key_alone(flags):
    keys = [{"Authorization": f"Bearer sk-{name}"} for name in ("first", "second")]
    body = {"messages": [{"role": "user", "content": QUESTION}], "max_tokens": N_TOKENS, "temperature": 0, "ignore_eos": True}
    with Served("--api-key", "sk-first", "--api-key", "sk-second", *flags) as served:
        def asked_by(key):
            return served.post("/v1/chat/completions", body, key).json()

        first, again, other = asked_by(keys[0]), asked_by(keys[0]), asked_by(keys[1])
        assert text_of(first) == text_of(again) == text_of(other)
        assert again["knap"]["rounds"] < first["knap"]["rounds"] / 2
        assert other["knap"]["rounds"] > 2 * again["knap"]["rounds"], "the other key's answers are nobody else's"
        assert served.stop() == 0
