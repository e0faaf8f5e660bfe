"""The work of an agent over plain decoding: turns that edit one file, and requests that fill one form (agent_texts.py).

Two servers of knap, each with its own default memory of answers, take turns: every request goes to the one that decodes
plainly, to the one with the default strategy, and to the plain one again.

A model as small as the default one makes few of the edits that it is asked for, and left to itself does not even repeat the
file. So every turn continues a conversation in which the earlier files are as a good model would have written them, two
edits are done before the first turn, and the form has an example. What is measured is the text that this model writes next,
which must be plain decoding's. The rows say how much of it is right, as the share of lines that the edited file has, or of
the form's texts whose words are all in the note; and how many of its runs of three tokens are distinct."""
import json
import re
from contextlib import AsyncExitStack

from agent_texts import EDITS, EXAMPLE, FILE, FORM, N_DONE, NOTES, edited_files
from bench import Row
from client import call
from spread import quantile, ratios, spread

N_REPEATS = 2   # each with servers that have seen nothing
N_CTX = 8192
MAX_FILE_TOKENS = 768
MAX_FORM_TOKENS = 256
GOAL = 2.5
PLAIN = {"knap": {"strategy": "autoregressive"}}
# As on a machine that has never run this model.
FRESH = ("--profile", "none", "--memory", "off")
FORMAT = {"type": "json_schema", "json_schema": {"name": "repair", "schema": FORM, "strict": True}}


def edit_requests(count):
    """The first turns of the conversation after the edits that are done: each as messages, and its right answer."""
    messages, found = [], []
    for (instruction, _, _), text in zip(EDITS[:N_DONE + count], edited_files()):
        shown = f"\n\n```python\n{FILE}```" if not messages else ""
        messages = [*messages, {"role": "user", "content": f"{instruction} Answer with the whole file.{shown}"}]
        answer = f"```python\n{text}```"
        found.append((messages, answer))
        messages = [*messages, {"role": "assistant", "content": answer}]
    return found[N_DONE:]


def form_requests(count):
    """Each as messages, and its note."""
    def asked(note):
        return {"role": "user", "content": f"Fill in the form of the repair shop from this note. Answer in JSON.\n\nNote: {note}"}
    note, form = EXAMPLE
    example = [asked(note), {"role": "assistant", "content": json.dumps(form, indent=2)}]
    return [([*example, asked(note)], note) for note in NOTES[:count]]


def right_lines(text, answer):
    """The share of lines that the right answer has too."""
    lines = [line for line in text.split("\n") if line.strip()]
    return sum(line in answer.split("\n") for line in lines) / max(len(lines), 1)


def right_fields(text, note):
    """The share of the form's texts whose words are all in the note; none where the form is unfinished."""
    try:
        form = json.loads(text)
    except ValueError:
        return 0.0
    words = set(re.findall(r"\w+", note.lower()))
    texts = [form[name] for name in ("customer", "phone", "item", "fault")]
    return sum(set(re.findall(r"\w+", text.lower())) <= words for text in texts) / len(texts)


def distinct_share(tokens):
    """The share of distinct runs of three tokens, as `knap bench` counts it."""
    runs = list(zip(tokens, tokens[1:], tokens[2:]))
    return len(set(runs)) / len(runs) if runs else 1.0


async def ask_all(bench, plain, ours, requests, n_tokens, right, **fields):
    """What was found about each request."""
    found = []
    for number, (messages, answer) in enumerate(requests, 1):
        async def ask(server, how):
            return await bench.ask(server, "", n_tokens, messages=messages, ignore_eos=None, **how, **fields)
        before, own, again = await ask(plain, PLAIN), await ask(ours, {}), await ask(plain, PLAIN)
        if not before.text == own.text == again.text:
            raise RuntimeError(f"agent: answer {number} differs from plain decoding's")
        tokens = (await call(plain, "POST", "/tokenize", {"content": own.text}))["tokens"]
        found.append({"n_tokens": own.n_tokens, "distinct_trigrams": distinct_share(tokens), "right": right(own.text, answer),
                      "knap": own.decode_rate, "plain": (before.decode_rate + again.decode_rate) / 2,
                      "again": again.decode_rate / before.decode_rate, "request": before.wall_s / own.wall_s})
    return found


def details_of(repeats):
    """Lists by request: rates and ratios of all repeats, and facts of the text, which are the same in each."""
    facts = ("n_tokens", "distinct_trigrams", "right")
    return {name: [found[name] for found in repeats[0]] if name in facts else [[found[name] for found in of] for of in zip(*repeats)]
            for name in repeats[0][0]}


def row_of(what, repeats):
    details = details_of(repeats)
    medians = [quantile(ratios(ours, plain), 0.5) for ours, plain in zip(details["knap"], details["plain"])]
    return Row("agent", what, spread(medians), least=GOAL, details=details)


async def measure(bench):
    edits, forms = edit_requests(bench.options.n_edits), form_requests(bench.options.n_forms)
    repeats = {"edits": [], "forms": []}
    for number in range(N_REPEATS):
        async with AsyncExitStack() as stack:
            plain = await bench.knap(stack, n_ctx=N_CTX, extra=FRESH)
            ours = await bench.knap(stack, n_ctx=N_CTX, extra=FRESH)
            repeats["edits"].append(await ask_all(bench, plain, ours, edits, MAX_FILE_TOKENS, right_lines))
            repeats["forms"].append(await ask_all(bench, plain, ours, forms, MAX_FORM_TOKENS, right_fields,
                                                response_format=FORMAT))
        bench.note(f"agent: repeat {number + 1} of {N_REPEATS}")
    return [row_of(f"{len(edits)} turns that edit one file, over plain decoding", repeats["edits"]),
            row_of(f"{len(forms)} requests that fill one form, over plain decoding", repeats["forms"])]
