"""Rewriting code with OpenAI's `prediction`, over plain decoding.

A model as small as the default one does not make the edit that it is asked for. So the prediction is made from its own
plain answer: that answer itself, and that answer with one line in ten changed, as where a file differs from its edit."""
from contextlib import AsyncExitStack

from bench import Row
from prompts import source_files
from spread import ratios, spread

EDITS = ("Rename the first function to `renamed`.", "Add a comment before every function.",
         "Turn every tab into four spaces.", "Make every local variable const where it can be.")
MAX_FILE_BYTES = 3000
CHANGED_LINE = 10
PLAIN = {"knap": {"strategy": "autoregressive"}}


def tasks(count):
    files = [text for text in source_files() if len(text) <= MAX_FILE_BYTES]
    return [f"{EDITS[i % len(EDITS)]} Answer with the whole file.\n\n```\n{files[i % len(files)]}```"
            for i in range(count)]


def changed(text):
    """The text with one line in ten changed."""
    lines = text.split("\n")
    return "\n".join(f"{line} // changed" if i % CHANGED_LINE == CHANGED_LINE // 2 else line
                     for i, line in enumerate(lines))


async def measure(bench):
    rates = {"plain": [], "same": [], "changed": [], "none": []}
    async with AsyncExitStack() as stack:
        # Without a memory of answers, from which the text would be copied too.
        server = await bench.knap(stack, extra=("--answer-memory", "0"))
        for task in tasks(bench.options.n_prompts):
            plain = await bench.ask(server, task, **PLAIN)
            predictions = {"same": plain.text, "changed": changed(plain.text), "none": None}
            for name, text in predictions.items():
                fields = {"prediction": {"type": "content", "content": text}} if text else {}
                answer = await bench.ask(server, task, **fields)
                if answer.text != plain.text:
                    raise RuntimeError(f"prediction: the answer with the prediction '{name}' differs from the plain one")
                rates[name].append(answer.decode_rate)
            again = await bench.ask(server, task, **PLAIN)
            rates["plain"].append((plain.decode_rate + again.decode_rate) / 2)
    whats = {"same": "`prediction` of the answer over plain decoding",
             "changed": "`prediction` with one line in ten changed, over plain decoding",
             "none": "no prediction, over plain decoding"}
    return [Row("prediction", what, spread(ratios(rates[name], rates["plain"])), least=3 if name == "same" else None,
                details={name: rates[name], "plain": rates["plain"]}) for name, what in whats.items()]
