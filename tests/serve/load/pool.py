"""What is asked: requests of every kind whose answers are known, because nothing in them is random."""
import random
from dataclasses import dataclass

CHAT, TEXT, NATIVE = "/v1/chat/completions", "/v1/completions", "/completion"
GREEDY = {"temperature": 0}
SYSTEM = "You are a careful assistant who answers in plain words, and who never hurries. " * 6
PERSON = {"type": "object", "properties": {"name": {"type": "string", "maxLength": 8}, "age": {"type": "integer"}},
          "required": ["name", "age"], "additionalProperties": False}
WEATHER = {"type": "function", "function": {"name": "get_weather", "description": "Tells the weather of a city.",
           "parameters": {"type": "object", "properties": {"city": {"type": "string", "maxLength": 8}},
                          "required": ["city"], "additionalProperties": False}}}
CODE = "def area(width, height):\n    return width * height\n\n\ndef volume(width, height, depth):\n    return area(width, height) * depth\n"


def seeded(seed):
    return {"temperature": 1.0, "seed": seed}


@dataclass(frozen=True)
class Question:
    name: str
    path: str
    body: dict


def said(text, system=None, **fields):
    messages = [{"role": "system", "content": system}] if system else []
    return {"messages": messages + [{"role": "user", "content": text}]} | fields


def questions():
    """All of them: chat, text and native completions, greedy and seeded, with what OpenAI's interface offers."""
    chats = {
        "chat greedy": said("Name three rivers.", **GREEDY, max_tokens=24),
        "chat seeded": said("Tell me about the sea.", **seeded(11), max_tokens=24),
        "chat with a long beginning": said("What is a ship?", SYSTEM, **GREEDY, max_tokens=16),
        "chat with the same beginning": said("What is a boat?", SYSTEM, **seeded(5), max_tokens=16),
        "chat of several turns": {"messages": [
            {"role": "user", "content": "Say a colour."}, {"role": "assistant", "content": "Green."},
            {"role": "user", "content": "Another one."}], **GREEDY, "max_tokens": 12},
        "chat continued": {"messages": [
            {"role": "user", "content": "Count."}, {"role": "assistant", "content": "One, two, three,"}],
            "continue_final_message": True, "add_generation_prompt": False, **GREEDY, "max_tokens": 16},
        "chat in other letters": said("Grüße: añ—漢字😀", **GREEDY, max_tokens=16),
        "three choices": said("Invent a word.", **seeded(100), max_tokens=10, n=3),
        "log-probabilities": said("What is two and two?", **GREEDY, max_tokens=12, logprobs=True, top_logprobs=4),
        "log-probabilities, seeded": said("What is red?", **seeded(77), max_tokens=12, logprobs=True, top_logprobs=1),
        "JSON schema": said("Invent a person.", **GREEDY, max_tokens=40, response_format={
            "type": "json_schema", "json_schema": {"name": "person", "schema": PERSON}}),
        "JSON schema, seeded": said("Invent a person.", **seeded(3), max_tokens=40, json_schema=PERSON),
        "JSON": said("Write JSON.", **GREEDY, max_tokens=24, response_format={"type": "json_object"}),
        "a tool": said("What is the weather in Rome?", **GREEDY, max_tokens=60, tools=[WEATHER], tool_choice="required"),
        "a named tool": said("And in Paris?", **seeded(8), max_tokens=60, tools=[WEATHER],
                             tool_choice={"type": "function", "function": {"name": "get_weather"}}),
        "prediction": said("Repeat this code:\n" + CODE, **GREEDY, max_tokens=40,
                           prediction={"type": "content", "content": CODE}),
        "penalties": said("Say la la la la.", **GREEDY, max_tokens=20, repeat_penalty=1.3, presence_penalty=0.5),
        "a bias": said("Say something.", **seeded(21), max_tokens=12, logit_bias={"5": -100, "7": 2}),
        "one token": said("Yes or no?", **GREEDY, max_tokens=1),
        "a long answer": said("Tell a story.", **GREEDY, max_tokens=96, ignore_eos=True),
    }
    texts = {
        "text greedy": {"prompt": "The first tools were", **GREEDY, "max_tokens": 24},
        "text seeded": {"prompt": "All work and no play", **seeded(42), "max_tokens": 24},
        "text echoed": {"prompt": "Once upon a time", "echo": True, **GREEDY, "max_tokens": 12},
        "text stopped": {"prompt": "A, B, C, D,", "stop": ["e", "\n", " F"], **GREEDY, "max_tokens": 30},
        "text of tokens": {"prompt": [5, 6, 7, 8, 9, 10] * 8, **GREEDY, "max_tokens": 20, "ignore_eos": True},
        "two texts": {"prompt": ["The sun", "The moon"], **seeded(9), "max_tokens": 10, "n": 2},
        "text with log-probabilities": {"prompt": "One two three", **GREEDY, "max_tokens": 10, "logprobs": 3},
        "grammar": {"prompt": "Yes or no? ", "grammar": 'root ::= ("yes" | "no") (", " ("yes" | "no")){2,5}', **seeded(1),
                    "max_tokens": 24},
        "repetition": {"prompt": "red green blue red green blue red green blue", **GREEDY, "max_tokens": 32},
    }
    natives = {
        "native greedy": {"prompt": "The last tools were", **GREEDY, "n_predict": 16},
        "native seeded": {"prompt": "It is said that", **seeded(6), "n_predict": 16, "n": 2},
    }
    return [Question(name, path, body) for path, group in ((CHAT, chats), (TEXT, texts), (NATIVE, natives))
            for name, body in group.items()]


def alone(question):
    """Asked so that nothing but the model decides."""
    return question.body | {"cache_prompt": False, "knap": {"strategy": "autoregressive"}}


def varied(question, strategies, rng: random.Random):
    """The same question with everything that must not change its answer: streamed or not, drafted in any way, with or without
    rows of the cache, with fields that the server does not know."""
    body = dict(question.body)
    if rng.random() < 0.5:
        body["stream"] = True
        if question.path != NATIVE and rng.random() < 0.5:
            body["stream_options"] = {"include_usage": True}
    if rng.random() < 0.4:
        body["knap"] = {"strategy": rng.choice(strategies)}
        if rng.random() < 0.3:
            body["knap"]["draft_max"] = rng.randint(1, 16)
    if rng.random() < 0.15:
        body["cache_prompt"] = False
    if rng.random() < 0.1:
        body |= {"user": f"user {rng.randint(1, 9)}", "unheard_of": [1, {"a": None}]}
    if rng.random() < 0.1:
        body["timings_per_token"] = True
    return body
