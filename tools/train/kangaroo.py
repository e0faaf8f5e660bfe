"""Trains Kangaroo adapters for the default model by distillation on text that the model generated.

The adapter reads the residual stream h after the first E layers and predicts the output of the whole model:
x = h + attention(norm(h)), a norm, and the model's own head. Adapters for several E train together, because
one pass of the model serves them all. The loss is the cross-entropy between the distributions of the model
and the adapter at the same positions (Kangaroo, arXiv 2404.18911).
"""

import argparse
from dataclasses import asdict, replace

import torch
import torch.nn.functional as F
from torch import nn

from corpus import load_model
from llama import AttentionBlock, initialise, rotation
from training import (
    Progress,
    add_training_arguments,
    autocast,
    load_corpus,
    make_optimizer,
    pick_device,
    save_results,
    schedule,
    update,
)


class Adapter(nn.Module):
    """An attention block with a key head per query head, and a norm initialised from the model's last norm."""

    def __init__(self, config, output_norm):
        super().__init__()
        self.config = replace(config, n_kv_heads=config.n_heads)
        self.blk = nn.ModuleList([AttentionBlock(self.config)])
        self.output_norm = nn.RMSNorm(config.d_model, config.rms_eps)
        initialise(self, std=config.d_model**-0.5)
        with torch.no_grad():
            self.output_norm.weight.copy_(output_norm)

    def forward(self, stream):
        """The input of the head, [batch, rows, d_model]."""
        angles = rotation(self.config, torch.arange(stream.shape[1], device=stream.device))
        return self.output_norm(self.blk[0].attend(stream, angles))


def masks(corpus, rows):
    """Masks of the positions that hold text, and of those that predict a token chosen by the model."""
    positions = torch.arange(corpus["tokens"].shape[1])
    is_text = positions < corpus["lengths"][rows, None]
    is_choice = (positions >= corpus["prompt_lengths"][rows, None] - 1) & (
        positions < corpus["lengths"][rows, None] - 1
    )
    return is_text, is_choice


@torch.no_grad()
def run_model(model, corpus, rows, exits):
    """Runs tokens through the frozen model. Returns its streams at the exits, and the last stream."""
    tokens = corpus["tokens"][rows].to(model.token_embd.weight.device, torch.long)
    streams = model.streams(tokens)
    return [streams[e].float() for e in exits], streams[-1]


def head(model, normed):
    """The logits of a normed stream, in f32."""
    return F.linear(normed.to(model.token_embd.weight.dtype), model.token_embd.weight).float()


def train(model, adapters, corpus, options):
    """Trains the adapters one after another on each batch, so that only one set of logits is in memory."""
    device = model.token_embd.weight.device
    optimizers = {
        e: make_optimizer(adapter.parameters(), options.rate, options.weight_decay)
        for e, adapter in adapters.items()
    }
    training_rows = (~corpus["held_out"]).nonzero()[:, 0]
    generator = torch.Generator().manual_seed(options.seed)
    progress = Progress("kangaroo")
    for step, share, factor in schedule(options.steps, options.warm_up, options.seconds):
        picks = torch.randint(len(training_rows), (options.batch,), generator=generator)
        rows = training_rows[picks]
        is_text = masks(corpus, rows)[0].to(device)
        streams, last = run_model(model, corpus, rows, adapters)
        with torch.no_grad():
            target = head(model, model.output_norm(last[is_text])).softmax(dim=-1)
        losses = {}
        for (e, adapter), stream in zip(adapters.items(), streams):
            with autocast(device):
                guess = adapter(stream)[is_text]
            losses[e] = F.cross_entropy(head(model, guess), target)
            losses[e].backward()
            update(optimizers[e], factor, options.rate)
        progress.show(
            step, share, lambda: "  ".join(f"E={e} loss {loss.item():.3f}" for e, loss in losses.items())
        )


@torch.no_grad()
def evaluate(model, guessers, corpus, batch):
    """Loss and top-1 agreement with the model on held-out choices, by exit layer and guesser.

    `guessers` maps an exit layer to named functions from a stream to the input of the head.
    """
    device = model.token_embd.weight.device
    sums = {e: {name: torch.zeros(2) for name in named} for e, named in guessers.items()}
    entropy, n_choices = 0.0, 0
    for rows in corpus["held_out"].nonzero()[:, 0].split(batch):
        is_choice = masks(corpus, rows)[1].to(device)
        streams, last = run_model(model, corpus, rows, guessers)
        target = head(model, model.output_norm(last[is_choice])).softmax(dim=-1)
        entropy += torch.special.entr(target).sum().item()
        n_choices += len(target)
        for (e, named), stream in zip(guessers.items(), streams):
            for name, guess in named.items():
                with autocast(device):
                    guessed = guess(stream)[is_choice]
                logits = head(model, guessed)
                loss = F.cross_entropy(logits, target, reduction="sum").item()
                n_agree = (logits.argmax(dim=-1) == target.argmax(dim=-1)).sum().item()
                sums[e][name] += torch.tensor([loss, n_agree])
    table = {
        e: {name: dict(zip(("loss", "agreement"), (s / n_choices).tolist())) for name, s in named.items()}
        for e, named in sums.items()
    }
    return {"n_choices": n_choices, "model_entropy": entropy / n_choices, "exits": table}


def print_table(results):
    print(f"held out: {results['n_choices']} positions, entropy of the model {results['model_entropy']:.3f}")
    for e, named in results["exits"].items():
        for name, row in named.items():
            print(f"E={e:<3} {name:<18} loss {row['loss']:7.3f}  agreement {row['agreement']:.4f}")


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--model", required=True, help="the default model (deps/setup model-path)")
    parser.add_argument("--exits", type=int, nargs="+", default=[3, 5, 8], help="exit layers (%(default)s)")
    add_training_arguments(parser, steps=1400, batch=32, rate=3e-3, weight_decay=0.01, warm_up=100)
    return parser.parse_args()


def main():
    options = parse_arguments()
    device = pick_device()
    model, corpus = load_model(options.model, device), load_corpus(options.corpus)
    for e in options.exits:
        if not 0 < e < model.config.n_layers:
            raise SystemExit(f"--exits: expected layers 1 to {model.config.n_layers - 1}, found {e}")

    def new_adapter():
        torch.manual_seed(options.seed)
        return Adapter(model.config, model.output_norm.weight.float().cpu())

    def exit_early(stream):
        return model.output_norm(stream.to(model.output_norm.weight.dtype))

    adapters = {e: new_adapter().to(device) for e in options.exits}
    untrained = new_adapter().to(device)
    train(model, adapters, corpus, options)
    guessers = {
        e: {"trained": adapter, "untrained": untrained, "plain early exit": exit_early}
        for e, adapter in adapters.items()
    }
    results = evaluate(model, guessers, corpus, options.batch)
    print_table(results)
    save_results(options.out / "kangaroo.json", options, results)
    for e, adapter in adapters.items():
        torch.save(
            {
                "exit_layer": e,
                "config": asdict(adapter.config),
                "trained": adapter.cpu().state_dict(),
                "untrained": untrained.cpu().state_dict(),
            },
            options.out / f"kangaroo-E{e}.pt",
        )


if __name__ == "__main__":
    main()
