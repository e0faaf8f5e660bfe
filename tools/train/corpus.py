"""Generates the training corpus with the default model.

Reads the model and prompts.txt, samples many texts at once, and writes one file with the tokens of every
text (for the adapter) and the same texts as bytes (for the byte-level models), where texts about one topic
(a subject, a task or an opening) stand side by side, so that a long window of bytes is worth reading. The
texts about every 16th topic are held out from training.
"""

import argparse
import random
import re
import time
from pathlib import Path

import torch

from gguf_weights import open_gguf, read_config, read_field, read_weights
from llama import Llama
from training import pick_device
from vocab import END_OF_TEXT, Vocabulary, chat_prompt

HELD_OUT_EVERY = 16
# Percentages of texts: answers about a subject, answers to a task, continued openings.
MIXTURE = {"requests": 65, "tasks": 15, "openings": 20}


def read_prompts(path):
    """The sections of a prompt file: a dict from name to lines."""
    text = re.sub(r"^#.*\n", "", Path(path).read_text(), flags=re.MULTILINE)
    parts = re.split(r"^\[(\w+)\]$", text, flags=re.MULTILINE)[1:]
    sections = {name: body.split("\n") for name, body in zip(parts[::2], parts[1::2])}
    sections = {name: [line for line in lines if line] for name, lines in sections.items()}
    for name in ("subjects", *MIXTURE):
        if not sections.get(name):
            raise SystemExit(f"{path}: expected a section [{name}] with lines")
    return sections


def draw_prompt(sections, rng):
    """Returns a random prompt, its topic, and whether its text is held out."""
    kind = rng.choices(list(MIXTURE), weights=MIXTURE.values())[0]
    varied = sections["subjects" if kind == "requests" else kind]
    index = rng.randrange(len(varied))
    text = varied[index]
    if kind == "requests":
        text = rng.choice(sections["requests"]).format(text)
    is_held_out = index % HELD_OUT_EVERY == HELD_OUT_EVERY - 1
    return (text if kind == "openings" else chat_prompt(text)), f"{kind} {index}", is_held_out


def choose(logits, temperature, min_p, generator):
    """Samples a token per row, without tokens less than min_p times as probable as the most probable one."""
    probabilities = torch.softmax(logits.float() / temperature, dim=-1)
    floor = min_p * probabilities.amax(dim=-1, keepdim=True)
    probabilities[probabilities < floor] = 0
    noise = torch.empty_like(probabilities).exponential_(generator=generator)
    return (probabilities / noise).argmax(dim=-1)


@torch.inference_mode()
def write_texts(model, prompts, length, pick):
    """Continues every prompt to `length` tokens: [prompts, length].

    All texts advance together: a text that is still in its prompt takes the prompt's next token.
    """
    device = model.token_embd.weight.device
    prompt_lengths = torch.tensor([len(prompt) for prompt in prompts], device=device)
    if (longest := int(prompt_lengths.max())) >= length:
        raise SystemExit(f"--length: expected more than the {longest} tokens of a prompt, found {length}")
    tokens = torch.zeros(len(prompts), length, dtype=torch.long)
    for row, prompt in zip(tokens, prompts):
        row[: len(prompt)] = torch.tensor(prompt)
    tokens = tokens.to(device)
    caches = model.new_caches(len(prompts), length)
    for position in range(1, length):
        chosen = pick(model.step(tokens[:, position - 1], caches))
        is_prompt = position < prompt_lengths
        tokens[:, position] = torch.where(is_prompt, tokens[:, position], chosen)
    return tokens.cpu()


def text_lengths(tokens, prompt_lengths, end_ids):
    """The length of each text, up to and including the first end token after its prompt."""
    positions = torch.arange(tokens.shape[1])
    ends = torch.isin(tokens, torch.tensor(end_ids)) & (positions >= prompt_lengths[:, None])
    first = torch.where(ends, positions, tokens.shape[1] - 1).amin(dim=1)
    return first + 1


def rows_by_topic(topics, selected):
    """The selected rows, those of one topic side by side in the order in which they were written."""
    rows = sorted(range(len(topics)), key=topics.__getitem__)
    return torch.tensor([row for row in rows if selected[row]], dtype=torch.long)


def as_bytes(tokens, lengths, vocabulary):
    """The texts as one sequence of byte ids, each followed by <|endoftext|>."""
    spelled = [vocabulary.byte_ids(token) for token in range(len(vocabulary.tokens))]
    texts = []
    for row, length in zip(tokens, lengths):
        ids = [byte for token in row[:length].tolist() for byte in spelled[token]]
        if ids[-1] != END_OF_TEXT:
            ids.append(END_OF_TEXT)
        texts.append(torch.tensor(ids, dtype=torch.int16))
    return torch.cat(texts)


def load_model(path, device):
    reader = open_gguf(path)
    config = read_config(reader)
    model = Llama(config)
    model.load_state_dict(read_weights(reader, config))
    dtype = torch.bfloat16 if device.type == "cuda" else torch.float32
    return model.to(device, dtype).requires_grad_(False).eval()


def load_vocabulary(path):
    reader = open_gguf(path)
    return Vocabulary(
        read_field(reader, "tokenizer.ggml.tokens"), read_field(reader, "tokenizer.ggml.merges")
    )


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--model", required=True, help="the default model (deps/setup model-path)")
    parser.add_argument("--out", required=True, help="file to write")
    parser.add_argument("--prompts", default=Path(__file__).with_name("prompts.txt"), help="prompt file")
    parser.add_argument("--batches", type=int, default=8, help="number of batches of texts (%(default)s)")
    parser.add_argument("--batch", type=int, default=2048, help="texts per batch (%(default)s)")
    parser.add_argument("--length", type=int, default=640, help="maximum number of tokens per text (%(default)s)")
    parser.add_argument("--temperature", type=float, default=0.8, help="(%(default)s)")
    parser.add_argument("--min-p", type=float, default=0.02, help="(%(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="(%(default)s)")
    return parser.parse_args()


def write_corpus(model, vocabulary, sections, options):
    """Generates all texts. Returns tokens [texts, length], prompt lengths, topics, and which are held out."""
    rng = random.Random(options.seed)
    generator = torch.Generator(model.token_embd.weight.device).manual_seed(options.seed)

    def pick(logits):
        return choose(logits, options.temperature, options.min_p, generator)

    tokens, prompt_lengths, topics, held_out = [], [], [], []
    start = time.time()
    for batch in range(options.batches):
        drawn = [draw_prompt(sections, rng) for _ in range(options.batch)]
        prompts = [vocabulary.encode(text) for text, _, _ in drawn]
        tokens.append(write_texts(model, prompts, options.length, pick))
        prompt_lengths += [len(prompt) for prompt in prompts]
        topics += [topic for _, topic, _ in drawn]
        held_out += [is_held_out for _, _, is_held_out in drawn]
        print(f"corpus {batch + 1}/{options.batches}  {time.time() - start:.0f} s", flush=True)
    return torch.cat(tokens), torch.tensor(prompt_lengths), topics, torch.tensor(held_out)


def main():
    options = parse_arguments()
    model, vocabulary = load_model(options.model, pick_device()), load_vocabulary(options.model)
    sections = read_prompts(options.prompts)
    tokens, prompt_lengths, topics, held_out = write_corpus(model, vocabulary, sections, options)
    lengths = text_lengths(tokens, prompt_lengths, vocabulary.end_ids)

    def bytes_of(selected):
        rows = rows_by_topic(topics, selected)
        return as_bytes(tokens[rows], lengths[rows], vocabulary)

    corpus = {
        "tokens": tokens.to(torch.int32),
        "prompt_lengths": prompt_lengths,
        "lengths": lengths,
        "held_out": held_out,
        "train_bytes": bytes_of(~held_out),
        "held_out_bytes": bytes_of(held_out),
    }
    torch.save(corpus, options.out)
    print(
        f"corpus: {len(tokens)} texts, {int(lengths.sum())} tokens, "
        f"{len(corpus['train_bytes'])} bytes to train on, {len(corpus['held_out_bytes'])} held out"
    )


if __name__ == "__main__":
    main()
