"""A llama in PyTorch, for the default model and the small byte-level models.

Modules have the names of GGUF tensors, so a state dict matches the tensors of a file. Rotary embedding
pairs dimension i of a head with i + head_dim / 2; gguf_weights.py converts from and to the order of llama
files.
"""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn


@dataclass(frozen=True)
class LlamaConfig:
    """The shape of a model whose head is tied to its embedding."""

    n_vocab: int
    n_layers: int
    d_model: int
    n_heads: int
    n_kv_heads: int
    d_ff: int
    n_context: int
    rms_eps: float = 1e-5
    rope_base: float = 10000.0

    @property
    def head_dim(self):
        return self.d_model // self.n_heads


def rotation(config, positions):
    """Cosines and sines of the angles of every position, each [positions, head_dim / 2] f32."""
    exponents = torch.arange(0, config.head_dim, 2, device=positions.device) / config.head_dim
    angles = torch.outer(positions.float(), config.rope_base**-exponents)
    return angles.cos(), angles.sin()


def rotate(x, angles):
    """RoPE over the halves of a head; x is [batch, heads, rows, head_dim]."""
    cos, sin = angles
    first, second = x.float().chunk(2, dim=-1)
    return torch.cat((first * cos - second * sin, second * cos + first * sin), dim=-1).type_as(x)


class KeyValues:
    """Keys and values of one layer while a text grows, each [batch, kv_heads, capacity, head_dim]."""

    def __init__(self, config, batch, capacity, like):
        shape = (batch, config.n_kv_heads, capacity, config.head_dim)
        self.keys, self.values = like.new_empty(shape), like.new_empty(shape)
        self.length = 0

    def append(self, key, value):
        """Adds one row and returns all rows so far."""
        self.keys[:, :, self.length] = key[:, :, 0]
        self.values[:, :, self.length] = value[:, :, 0]
        self.length += 1
        return self.keys[:, :, : self.length], self.values[:, :, : self.length]


class AttentionBlock(nn.Module):
    """x + attention(norm(x)). The Kangaroo adapter is one of these; a Layer adds an MLP."""

    def __init__(self, config):
        super().__init__()
        self.head_dim = config.head_dim
        d_kv = config.n_kv_heads * config.head_dim
        self.attn_norm = nn.RMSNorm(config.d_model, config.rms_eps)
        self.attn_q = nn.Linear(config.d_model, config.d_model, bias=False)
        self.attn_k = nn.Linear(config.d_model, d_kv, bias=False)
        self.attn_v = nn.Linear(config.d_model, d_kv, bias=False)
        self.attn_output = nn.Linear(config.d_model, config.d_model, bias=False)

    def attend(self, x, angles, cache=None):
        return x + self.attention(x, angles, cache)

    def attention(self, x, angles, cache=None):
        """x is [batch, rows, d_model]; with a cache it is one row, which attends to all rows before it."""
        normed = self.attn_norm(x)
        q = rotate(self._heads(self.attn_q(normed)), angles)
        k = rotate(self._heads(self.attn_k(normed)), angles)
        v = self._heads(self.attn_v(normed))
        if cache is not None:
            k, v = cache.append(k, v)
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=cache is None, enable_gqa=True)
        return self.attn_output(mixed.transpose(1, 2).flatten(2))

    def _heads(self, x):
        return x.unflatten(-1, (-1, self.head_dim)).transpose(1, 2)


def where_kept(change, keep):
    """A module's change of the stream, 0 for the sequences that skip it; `keep` is [batch] or None."""
    return change if keep is None else keep[:, None, None] * change


class Layer(AttentionBlock):
    """Attention, then x + mlp(norm(x)) with SwiGLU."""

    def __init__(self, config):
        super().__init__(config)
        self.ffn_norm = nn.RMSNorm(config.d_model, config.rms_eps)
        self.ffn_gate = nn.Linear(config.d_model, config.d_ff, bias=False)
        self.ffn_up = nn.Linear(config.d_model, config.d_ff, bias=False)
        self.ffn_down = nn.Linear(config.d_ff, config.d_model, bias=False)

    def forward(self, x, angles, cache=None, keep=None):
        """`keep` [2, batch] is 0 where a sequence skips the attention or the MLP."""
        keep_attention, keep_mlp = (None, None) if keep is None else keep
        x = x + where_kept(self.attention(x, angles, cache), keep_attention)
        return x + where_kept(self.mlp(x), keep_mlp)

    def mlp(self, x):
        normed = self.ffn_norm(x)
        return self.ffn_down(F.silu(self.ffn_gate(normed)) * self.ffn_up(normed))


class Llama(nn.Module):
    """The whole model. `streams` and `logits` allow an early exit after any layer."""

    def __init__(self, config):
        super().__init__()
        self.config = config
        self.token_embd = nn.Embedding(config.n_vocab, config.d_model)
        self.blk = nn.ModuleList(Layer(config) for _ in range(config.n_layers))
        self.output_norm = nn.RMSNorm(config.d_model, config.rms_eps)

    def streams(self, tokens, keep=None, run=Layer.forward):
        """The residual stream after 0, 1, ... n_layers layers, each [batch, rows, d_model].

        `keep` [n_layers, 2, batch] is 0 where a sequence skips the attention or the MLP of a layer. `run` is
        Layer.forward or a compiled version of it.
        """
        angles = rotation(self.config, torch.arange(tokens.shape[1], device=tokens.device))
        streams = [self.token_embd(tokens)]
        for i, layer in enumerate(self.blk):
            streams.append(run(layer, streams[-1], angles, keep=None if keep is None else keep[i]))
        return streams

    def logits(self, stream):
        """The exit that all layers share: final norm and head."""
        return F.linear(self.output_norm(stream), self.token_embd.weight)

    def new_caches(self, batch, capacity):
        return [KeyValues(self.config, batch, capacity, self.token_embd.weight) for _ in self.blk]

    def step(self, tokens, caches):
        """Logits [batch, n_vocab] after one more token of every text; tokens is [batch]."""
        angles = rotation(self.config, torch.tensor([caches[0].length], device=tokens.device))
        x = self.token_embd(tokens)[:, None]
        for layer, cache in zip(self.blk, caches):
            x = layer(x, angles, cache)
        return self.logits(x[:, 0])


def initialise(module, std=0.02):
    """GPT-2's initialisation; matrices that write to the residual stream shrink with the depth."""
    n_writes = sum(name.endswith(("attn_output", "ffn_down")) for name, _ in module.named_modules())
    for name, part in module.named_modules():
        if isinstance(part, (nn.Linear, nn.Embedding)):
            is_write = name.endswith(("attn_output", "ffn_down"))
            nn.init.normal_(part.weight, std=std * n_writes**-0.5 if is_write else std)
