"""Prompts of given lengths, each used once: both servers may remember texts that they have seen."""
import json
import random
from pathlib import Path

from client import call

ROOT = Path(__file__).resolve().parents[2]
TEXTS = ROOT / "cli/bench/texts"
DOCUMENT_FILES = ("govreport.jsonl", "pg19.jsonl", "booksum.jsonl")
TASK_FILES = ("specbench.jsonl", "gsm8k.jsonl", "humaneval.jsonl")
N_TASK_TOKENS = 256   # of pieces of documents that stand in for tasks
MAX_TASK_BYTES = 6000


class PromptError(Exception):
    """There are not enough prompts."""


def read_jsonl(path):
    with open(path, encoding="utf-8") as lines:
        return [json.loads(line)["prompt"] for line in lines]


class Prompts:
    """Takes prompts from a folder of JSON Lines files (`--data`), or from the texts of `knap bench`."""

    def __init__(self, folder):
        self._tasks = []
        self._tokens = []   # of the documents
        self._n_used = {}   # pieces of documents, by their length
        if folder:
            texts = [read_jsonl(Path(folder) / name) for name in DOCUMENT_FILES]
            self._documents = [text for row in zip(*texts) for text in row]
            self._tasks = [text for name in TASK_FILES for text in read_jsonl(Path(folder) / name)
                           if len(text) <= MAX_TASK_BYTES]
            random.Random(1).shuffle(self._tasks)
        else:
            self._documents = [(TEXTS / name).read_text(encoding="utf-8") for name in ("document.txt", "source.txt")]

    async def _pieces(self, server, n_tokens):
        """All pieces of this length, as tokens: the beginnings of all documents first."""
        if not self._tokens:
            self._tokens = [(await call(server, "POST", "/tokenize", {"content": text}))["tokens"]
                            for text in self._documents]
        starts = range(0, max(map(len, self._tokens)), n_tokens)
        pieces = [document[start:start + n_tokens] for start in starts for document in self._tokens]
        return [piece for piece in pieces if len(piece) == n_tokens]

    async def documents(self, server, n_tokens, count):
        """The next `count` pieces of documents that are `n_tokens` long. `server` counts them."""
        begin = self._n_used.get(n_tokens, 0)
        pieces = (await self._pieces(server, n_tokens))[begin:begin + count]
        if len(pieces) < count:
            raise PromptError(f"expected {count} more prompts of {n_tokens} tokens, found {len(pieces)}")
        self._n_used[n_tokens] = begin + count
        return [(await call(server, "POST", "/detokenize", {"tokens": piece}))["content"] for piece in pieces]

    async def tasks(self, server, count):
        """The next `count` short prompts of mixed kinds."""
        if not self._tasks:
            return await self.documents(server, N_TASK_TOKENS, count)
        found, self._tasks = self._tasks[:count], self._tasks[count:]
        if len(found) < count:
            raise PromptError(f"expected {count} more tasks, found {len(found)}")
        return found


def source_files():
    """The files in the source text of `knap bench`."""
    parts = (TEXTS / "source.txt").read_text(encoding="utf-8").split("// file: ")
    return [part for part in parts if part.strip()]
