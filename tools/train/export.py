"""Writes trained adapters and byte-level models as GGUF files (docs/adapter-format.md)."""

import argparse
from pathlib import Path

import torch
from gguf import GGMLQuantizationType, GGUFWriter, LlamaFileType, TokenType
from gguf.quants import quantize

from gguf_weights import neighbours_from_halves, reorder_rotated
from llama import LlamaConfig
from vocab import END_OF_TEXT, END_OF_TURN, SPECIAL_TOKENS, byte_alphabet

CHAT_TEMPLATE = (
    "{% for message in messages %}"
    "{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' + '\\n' }}"
    "{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"
)


def start_file(path, architecture, name, config, n_layers):
    """A writer with the metadata that both kinds of file share."""
    writer = GGUFWriter(path, architecture)
    writer.add_name(name)
    writer.add_file_type(LlamaFileType.MOSTLY_Q8_0)
    writer.add_quantization_version(2)
    writer.add_block_count(n_layers)
    writer.add_context_length(config.n_context)
    writer.add_embedding_length(config.d_model)
    writer.add_head_count(config.n_heads)
    writer.add_head_count_kv(config.n_kv_heads)
    writer.add_layer_norm_rms_eps(config.rms_eps)
    writer.add_rope_freq_base(config.rope_base)
    writer.add_rope_dimension_count(config.head_dim)
    return writer


def add_byte_vocabulary(writer):
    """A byte-level BPE vocabulary in which each byte is a token and nothing merges."""
    n_bytes = 256
    writer.add_vocab_size(n_bytes + len(SPECIAL_TOKENS))
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("qwen2")
    writer.add_token_list([*byte_alphabet(), *SPECIAL_TOKENS])
    writer.add_token_types([TokenType.NORMAL] * n_bytes + [TokenType.CONTROL] * len(SPECIAL_TOKENS))
    # Readers require a list of merges, and the writer drops an empty one. This merge never applies: a text starts
    # as single characters, and its two parts are longer.
    writer.add_token_merges([f"{SPECIAL_TOKENS[0]} {SPECIAL_TOKENS[0]}"])
    writer.add_bos_token_id(END_OF_TEXT)
    writer.add_eos_token_id(END_OF_TURN)
    writer.add_pad_token_id(END_OF_TEXT)
    writer.add_add_bos_token(False)
    writer.add_chat_template(CHAT_TEMPLATE)


def add_tensors(writer, weights):
    """Matrices as Q8_0, vectors as they are."""
    for name, weight in weights.items():
        if weight.ndim == 1:
            writer.add_tensor(name, weight)
        else:
            kind = GGMLQuantizationType.Q8_0
            writer.add_tensor(name, quantize(weight, kind), raw_dtype=kind)


def finish_file(writer):
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def as_arrays(state):
    return {name: tensor.float().numpy() for name, tensor in state.items()}


def export_adapter(checkpoint, version, path):
    """`version` is "trained" or "untrained"."""
    config = LlamaConfig(**checkpoint["config"])
    exit_layer = checkpoint["exit_layer"]
    name = f"Kangaroo adapter, exit layer {exit_layer}, {version}"
    writer = start_file(path, "kangaroo", name, config, n_layers=1)
    writer.add_uint32("kangaroo.format", 1)
    writer.add_uint32("kangaroo.exit_layer", exit_layer)
    add_tensors(writer, as_arrays(checkpoint[version]))
    finish_file(writer)


def export_twin(checkpoint, path):
    config = LlamaConfig(**checkpoint["config"])
    name = f"Bytes, {config.n_layers} layers, trained {checkpoint['recipe']}"
    writer = start_file(path, "llama", name, config, config.n_layers)
    writer.add_feed_forward_length(config.d_ff)
    add_byte_vocabulary(writer)
    weights = {
        name: reorder_rotated(name, weight, config, neighbours_from_halves)
        for name, weight in as_arrays(checkpoint["model"]).items()
    }
    add_tensors(writer, weights)
    finish_file(writer)


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("checkpoint", type=Path, help="kangaroo-E*.pt or bytes-*.pt")
    parser.add_argument("out", type=Path, help="GGUF file to write")
    parser.add_argument("--untrained", action="store_true", help="export the adapter before training")
    return parser.parse_args()


def main():
    options = parse_arguments()
    if not options.checkpoint.is_file():
        raise SystemExit(f"{options.checkpoint}: expected a file that kangaroo.py or twins.py wrote")
    checkpoint = torch.load(options.checkpoint, map_location="cpu")
    if "exit_layer" in checkpoint:
        export_adapter(checkpoint, "untrained" if options.untrained else "trained", options.out)
    elif options.untrained:
        raise SystemExit("--untrained: expected an adapter, found a byte-level model")
    else:
        export_twin(checkpoint, options.out)
    print(f"{options.out}: {options.out.stat().st_size} bytes")


if __name__ == "__main__":
    main()
