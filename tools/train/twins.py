"""Trains a small byte-level llama with LayerSkip's recipe, or its counterpart without.

Both start from the same weights and train on the same bytes in the same order. Only the recipe differs: layer
dropout that grows with depth and time, and a loss at the exit of every layer through the shared norm and head
(LayerSkip, arXiv 2404.16710, sections 4.1.1 and 4.1.2).
"""

import argparse
import math
from dataclasses import asdict

import torch
import torch.nn.functional as F

from llama import Llama, LlamaConfig, initialise
from training import (
    Progress,
    add_training_arguments,
    load_corpus,
    make_optimizer,
    pick_device,
    rate_factor,
    save_results,
    update,
)
from vocab import SPECIAL_TOKENS


def dropout_rates(n_layers, p_max, progress):
    """The probability that a sequence skips each layer. `progress` goes from 0 to 1 during training."""
    now = 2**progress - 1
    return [p_max * now * (math.exp(i * math.log(2) / (n_layers - 1)) - 1) for i in range(n_layers)]


def exit_weights(n_layers, scale):
    """The weight of each exit in the loss: the sum of 0..i for layer i, more for the last; in total 1."""
    weights = [scale * i * (i + 1) / 2 for i in range(n_layers - 1)]
    weights.append(n_layers - 1 + scale * (n_layers - 2) * (n_layers - 1) / 2)
    return [weight / sum(weights) for weight in weights]


def draw_kept(rates, batch, generator):
    """[n_layers, batch], 1 where a layer runs."""
    draws = torch.rand(len(rates), batch, generator=generator)
    return (draws >= torch.tensor(rates)[:, None]).float()


def draw_batch(stream, batch, length, generator):
    """Windows of a byte stream: [batch, length + 1]."""
    if len(stream) <= length:
        raise SystemExit(f"corpus: expected more than {length} bytes, found {len(stream)}")
    starts = torch.randint(len(stream) - length, (batch,), generator=generator)
    return stream[starts[:, None] + torch.arange(length + 1)].long()


def exit_loss(model, stream, targets):
    logits = model.logits(stream)
    return F.cross_entropy(logits.float().flatten(0, 1), targets.flatten())


def weighted_loss(model, inputs, targets, keep, weights):
    """The weighted loss over all exits, and the loss of the last layer."""
    streams = model.streams(inputs, keep)[1:]
    losses = [exit_loss(model, s, targets) if w > 0 else 0.0 for s, w in zip(streams, weights)]
    return sum(w * loss for w, loss in zip(weights, losses)), losses[-1]


def train(model, stream, options, device):
    n_layers = model.config.n_layers
    is_layerskip = options.recipe == "layerskip"
    weights = exit_weights(n_layers, options.exit_scale) if is_layerskip else [0.0] * (n_layers - 1) + [1.0]
    data_generator = torch.Generator().manual_seed(options.seed)
    dropout_generator = torch.Generator().manual_seed(options.seed + 1)
    optimizer = make_optimizer(model.parameters(), options.rate, options.weight_decay)
    progress = Progress(options.recipe, options.steps, interval=100)
    for step in range(options.steps):
        batch = draw_batch(stream, options.batch, model.config.n_context, data_generator).to(device)
        keep = None
        if is_layerskip:
            rates = dropout_rates(n_layers, options.p_max, step / max(1, options.steps - 1))
            keep = draw_kept(rates, options.batch, dropout_generator).to(device)
        with torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda"):
            loss, last = weighted_loss(model, batch[:, :-1], batch[:, 1:], keep, weights)
        loss.backward()
        update(optimizer, rate_factor(step, options.steps, options.warm_up), options.rate)
        progress.show(step, lambda: f"loss {loss.item():.3f}  last layer {last.item():.3f}")


@torch.no_grad()
def evaluate(model, stream, n_windows, device):
    """The loss of each exit, and its top-1 agreement with the last layer, on held-out bytes."""
    n_layers, length = model.config.n_layers, model.config.n_context
    losses, agreements = torch.zeros(n_layers), torch.zeros(n_layers)
    generator = torch.Generator().manual_seed(0)
    for _ in range(n_windows):
        window = draw_batch(stream, 1, length, generator).to(device)
        streams = model.streams(window[:, :-1])[1:]
        choices = [model.logits(s).argmax(dim=-1) for s in streams]
        losses += torch.tensor([exit_loss(model, s, window[:, 1:]).item() for s in streams])
        agreements += torch.tensor([(c == choices[-1]).float().mean().item() for c in choices])
    return {
        "n_bytes": n_windows * length,
        "losses": (losses / n_windows).tolist(),
        "agreements": (agreements / n_windows).tolist(),
    }


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--recipe", required=True, choices=("layerskip", "plain"), help="with or without LayerSkip's recipe")
    parser.add_argument("--layers", type=int, default=12, help="(%(default)s)")
    parser.add_argument("--width", type=int, default=128, help="width of the residual stream (%(default)s)")
    parser.add_argument("--heads", type=int, default=4, help="(%(default)s)")
    parser.add_argument("--mlp-width", type=int, default=384, help="(%(default)s)")
    parser.add_argument("--context", type=int, default=1024, help="bytes per sequence (%(default)s)")
    parser.add_argument("--p-max", type=float, default=0.1, help="dropout rate of the last layer (%(default)s)")
    parser.add_argument("--exit-scale", type=float, default=1.0, help="weight of early exits (%(default)s)")
    parser.add_argument("--windows", type=int, default=128, help="number of held-out sequences (%(default)s)")
    add_training_arguments(parser, steps=2400, batch=64, rate=2e-3, weight_decay=0.1, warm_up=200)
    return parser.parse_args()


def main():
    options = parse_arguments()
    device = pick_device()
    corpus = load_corpus(options.corpus)
    config = LlamaConfig(
        n_vocab=256 + len(SPECIAL_TOKENS),
        n_layers=options.layers,
        d_model=options.width,
        n_heads=options.heads,
        n_kv_heads=options.heads,
        d_ff=options.mlp_width,
        n_context=options.context,
    )
    torch.manual_seed(options.seed)
    model = Llama(config)
    initialise(model)
    model.to(device)
    print(f"{options.recipe}: {sum(p.numel() for p in model.parameters())} parameters", flush=True)
    train(model, corpus["train_bytes"], options, device)
    results = evaluate(model, corpus["held_out_bytes"], options.windows, device)
    for i, (loss, agreement) in enumerate(zip(results["losses"], results["agreements"])):
        print(f"{options.recipe} exit {i + 1:2}  loss {loss:.3f}  agreement {agreement:.4f}")
    save_results(options.out / f"bytes-{options.recipe}.json", options, results)
    torch.save(
        {"recipe": options.recipe, "config": asdict(config), "model": model.cpu().state_dict()},
        options.out / f"bytes-{options.recipe}.pt",
    )


if __name__ == "__main__":
    main()
