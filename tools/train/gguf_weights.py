"""Reads llama models from GGUF files as state dicts for llama.py.

For the rotary embedding, files of the architecture "llama" pair neighbouring dimensions of a head, while
llama.py pairs its halves: reading and writing reorders the rows of q and k.
"""

import re

import numpy as np
import torch
from gguf import GGUFReader
from gguf.quants import dequantize

from llama import LlamaConfig

ROTATED = re.compile(r"blk\.\d+\.attn_([qk])\.weight")


def halves_from_neighbours(weight, n_heads):
    """Reorders rows [n_heads * head_dim, d_model] from pairs (0, 1), (2, 3), ... to (i, i + head_dim / 2)."""
    n_rows, d_model = weight.shape
    pairs = weight.reshape(n_heads, n_rows // n_heads // 2, 2, d_model)
    return pairs.swapaxes(1, 2).reshape(n_rows, d_model)


def neighbours_from_halves(weight, n_heads):
    """The inverse of halves_from_neighbours."""
    n_rows, d_model = weight.shape
    halves = weight.reshape(n_heads, 2, n_rows // n_heads // 2, d_model)
    return halves.swapaxes(1, 2).reshape(n_rows, d_model)


def reorder_rotated(name, weight, config, reorder):
    """Applies one of the two functions above if `name` is a matrix whose output is rotated."""
    match = ROTATED.fullmatch(name)
    if not match:
        return weight
    return reorder(weight, config.n_heads if match[1] == "q" else config.n_kv_heads)


def open_gguf(path):
    try:
        return GGUFReader(path)
    except (OSError, ValueError) as error:
        raise SystemExit(f"{path}: expected a GGUF file ({error})") from error


def read_field(reader, key):
    field = reader.get_field(key)
    if field is None:
        raise SystemExit(f"GGUF: expected the key {key}, found none")
    return field.contents()


def read_config(reader):
    if (architecture := read_field(reader, "general.architecture")) != "llama":
        raise SystemExit(f"GGUF: expected the architecture llama, found {architecture}")
    return LlamaConfig(
        n_vocab=len(read_field(reader, "tokenizer.ggml.tokens")),
        n_layers=read_field(reader, "llama.block_count"),
        d_model=read_field(reader, "llama.embedding_length"),
        n_heads=read_field(reader, "llama.attention.head_count"),
        n_kv_heads=read_field(reader, "llama.attention.head_count_kv"),
        d_ff=read_field(reader, "llama.feed_forward_length"),
        n_context=read_field(reader, "llama.context_length"),
        rms_eps=read_field(reader, "llama.attention.layer_norm_rms_epsilon"),
        rope_base=read_field(reader, "llama.rope.freq_base"),
    )


def read_weights(reader, config):
    """All tensors as f32, by their names in the file."""
    weights = {}
    for tensor in reader.tensors:
        values = dequantize(tensor.data, tensor.tensor_type).astype(np.float32)
        values = reorder_rotated(tensor.name, values, config, halves_from_neighbours)
        weights[tensor.name] = torch.from_numpy(np.ascontiguousarray(values))
    return weights
