"""Text to tokens and bytes: byte-level BPE as GGUF files hold it, and a vocabulary of bytes alone.

The pre-tokenizer knows ASCII only, which is what our prompts are written in.
"""

import re

PIECE = re.compile(r"'(?:s|t|re|ve|m|ll|d)| ?[A-Za-z]+|\d| ?[^\sA-Za-z\d]+|\s+(?!\S)|\s+")
# A byte-level vocabulary has these after its 256 bytes, in this order.
SPECIAL_TOKENS = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
END_OF_TEXT, START_OF_TURN, END_OF_TURN = range(256, 259)
SPECIAL = re.compile("(" + "|".join(map(re.escape, SPECIAL_TOKENS)) + ")")


def byte_alphabet():
    """GPT-2's character for every byte: itself where Latin-1 has a visible one, else the next from U+0100."""
    visible = {*range(ord("!"), ord("~") + 1), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    hidden = [byte for byte in range(256) if byte not in visible]
    return [chr(byte if byte in visible else 0x100 + hidden.index(byte)) for byte in range(256)]


def chat_prompt(text):
    """One question in the chatml template, its answer left open."""
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
        """Ids of an ASCII text; special tokens are written by their names."""
        if not text.isascii():
            raise SystemExit(f"prompt: expected ASCII, found {text!r}")
        ids = []
        for part in SPECIAL.split(text):
            pieces = [[part]] if part in SPECIAL_TOKENS else map(self._merge, PIECE.findall(part))
            ids += [self.ids[symbol] for symbols in pieces for symbol in symbols]
        return ids

    def byte_ids(self, token):
        """What a token is in a vocabulary of bytes: its bytes, or a special token's one id."""
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
