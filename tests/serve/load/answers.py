"""What an answer says, apart from how it came: in one piece or as a stream, and with which identifiers and times."""
from dataclasses import dataclass, field

import pool


class WrongAnswer(Exception):
    """An answer that is not what it has to be; its text goes to the report."""


@dataclass
class Choice:
    text: str = ""
    calls: list = field(default_factory=list)     # of tools: name and arguments
    tokens: list = field(default_factory=list)    # with their log-probabilities, where the request has them
    end: str = ""                                 # why it ended


@dataclass
class Told:
    """An answer, and the server's own counts."""
    choices: list
    n_prompt: int = 0      # tokens, of all choices
    n_cached: int = 0      # of these
    n_generated: int = 0

    def count(self, timings):
        self.n_prompt += timings["cache_n"] + timings["prompt_n"]
        self.n_cached += timings["cache_n"]
        self.n_generated += timings["predicted_n"]


def _add_calls(choice, calls):
    """Whole calls, or parts of them with their place."""
    for place, call in enumerate(calls or []):
        at = call.get("index", place)
        while len(choice.calls) <= at:
            choice.calls.append(["", ""])
        choice.calls[at][0] += call["function"].get("name") or ""
        choice.calls[at][1] += call["function"].get("arguments") or ""


def _add_part(choice, path, part):
    """Adds a choice of a whole answer or of an event."""
    if path == pool.NATIVE:
        choice.text += part["content"]
        choice.tokens += part["tokens"]
        choice.end += part["stop_type"] + ":" + part["stopping_word"] if part["stop"] else ""
        return
    logprobs = part.get("logprobs") or {}
    if path == pool.TEXT:
        choice.text += part["text"]
        names = ("tokens", "token_logprobs", "top_logprobs", "text_offset")
        choice.tokens += zip(*(logprobs.get(name) or [] for name in names), strict=True)
    else:
        said = part.get("message") or part.get("delta") or {}
        choice.text += said.get("content") or ""
        _add_calls(choice, said.get("tool_calls"))
        choice.tokens += logprobs.get("content") or []
    choice.end += part["finish_reason"] or ""


def told(path, parts):
    """What the objects of an answer say: one of a whole answer, the events of a stream."""
    choices = {}
    answer = Told([])
    for part in parts:
        if "error" in part:
            raise WrongAnswer(f"an error in a stream: {part['error']}")
        for one in ([part] if path == pool.NATIVE else part["choices"]):
            _add_part(choices.setdefault(one["index"], Choice()), path, one)
        # Events on the way have timings of their own, without those of the prompt.
        if "prompt_n" in part.get("timings", {}):
            answer.count(part["timings"])
    answer.choices = [choices[index] for index in sorted(choices)]
    return answer


def whole(path, body):
    """Of an answer in one piece."""
    return told(path, body if isinstance(body, list) else [body])


def streamed(path, events):
    """Of a complete stream."""
    events = list(events)
    if path != pool.NATIVE and (not events or events.pop() != "[DONE]"):
        raise WrongAnswer("the stream ended without [DONE]")
    return told(path, events)


def compare(name, found, right):
    if found.choices != right.choices:
        raise WrongAnswer(f"{name}: expected {right.choices}, found {found.choices}")
