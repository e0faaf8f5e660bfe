"""Converts text to tokens and bytes: byte-level BPE as stored in GGUF files, and a vocabulary of bytes only.

The pre-tokenizer handles only ASCII, which is all that our prompts use.
"""

import re

PIECE = re.compile(r"'(?:s|t|re|ve|m|ll|d)| ?[A-Za-z]+|\d| ?[^\sA-Za-z\d]+|\s+(?!\S)|\s+")
# A byte-level vocabulary has these tokens after its 256 bytes, in this order.
SPECIAL_TOKENS = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
END_OF_TEXT, START_OF_TURN, END_OF_TURN = range(256, 259)
SPECIAL = re.compile("(" + "|".join(map(re.escape, SPECIAL_TOKENS)) + ")")


def byte_alphabet():
    """GPT-2's character for every byte: the Latin-1 character if it is visible, else the next one from U+0100."""
    visible = {*range(ord("!"), ord("~") + 1), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    hidden = [byte for byte in range(256) if byte not in visible]
    return [chr(byte if byte in visible else 0x100 + hidden.index(byte)) for byte in range(256)]


def chat_prompt(text):
    """A question in the chatml template, up to the start of the answer."""
    return f"<|im_start|>user\n{text}<|im_end|>\n<|im_start|>assistant\n"


class Vocabulary:
    """The tokens of a model."""

    def __init__(self, tokens, merges):
        self.tokens = tokens
        self.ids = {token: i for i, token in enumerate(tokens)}
        self.ranks = {tuple(merge.split(" ")): rank for rank, merge in enumerate(merges)}
        self.letters = byte_alphabet()
        self.bytes = {letter: byte for byte, letter in enumerate(self.letters)}
        self.end_ids = [self.ids["<|endoftext|>"], self.ids["<|im_end|>"]]

    def encode(self, text):
        """The token ids of an ASCII text. Special tokens are written by name."""
        if not text.isascii():
            raise SystemExit(f"prompt: expected ASCII, found {text!r}")
        ids = []
        for part in SPECIAL.split(text):
            pieces = [[part]] if part in SPECIAL_TOKENS else map(self._merge, PIECE.findall(part))
            ids += [self.ids[symbol] for symbols in pieces for symbol in symbols]
        return ids

    def byte_ids(self, token):
        """A token in the vocabulary of bytes: its bytes, or the single id of a special token."""
        name = self.tokens[token]
        if name in SPECIAL_TOKENS:
            return [256 + SPECIAL_TOKENS.index(name)]
        return [self.bytes[letter] for letter in name if letter in self.bytes]

    def _merge(self, piece):
        symbols = [self.letters[byte] for byte in piece.encode()]
        while len(symbols) > 1:
            pairs = list(zip(symbols, symbols[1:]))
            best = min(range(len(pairs)), key=lambda i: self.ranks.get(pairs[i], len(self.ranks)))
            if pairs[best] not in self.ranks:
                break
            symbols[best : best + 2] = ["".join(pairs[best])]
        return symbols
