"""Trains a small byte-level llama by one of three recipes.

All recipes start from the same weights and train on the same text; only what a sequence skips and which exits
have a loss differ:

- plain: nothing is skipped.
- layerskip: layer dropout that grows with depth and time, and a loss at the exit of every layer through the
  shared norm and head (LayerSkip, arXiv 2404.16710, sections 4.1.1 and 4.1.2).
- redundant: every sequence draws a rate, and skips each attention and each MLP with it, so that the model
  learns to do without any of them, as large models can. The first and last layer always run, as in KnapSpec.
"""

import argparse
import math
import time
from dataclasses import asdict

import torch
import torch.nn.functional as F

from llama import Layer, Llama, LlamaConfig, initialise
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
from vocab import SPECIAL_TOKENS

RECIPES = ("plain", "layerskip", "redundant")
# What the evaluation skips: columns of a keep mask (attention, MLP), and shares of those modules.
MODULES = {"both": (0, 1), "attention": (0,), "mlp": (1,)}
SKIPPED_SHARES = (0.125, 0.25, 0.375, 0.5)
# The evaluation also measures the whole model's loss in windows of this many bytes.
SHORT_WINDOW = 1024


def dropout_rates(n_layers, p_max, progress):
    """The probability that a sequence skips each layer. `progress` goes from 0 to 1 during training."""
    now = 2**progress - 1
    return [p_max * now * (math.exp(i * math.log(2) / (n_layers - 1)) - 1) for i in range(n_layers)]


def exit_weights(n_layers, scale):
    """The weight of each exit in the loss: the sum of 0..i for layer i, more for the last; in total 1."""
    weights = [scale * i * (i + 1) / 2 for i in range(n_layers - 1)]
    weights.append(n_layers - 1 + scale * (n_layers - 2) * (n_layers - 1) / 2)
    return [weight / sum(weights) for weight in weights]


def keep_layers(rates, batch, generator):
    """[n_layers, 2, batch], 0 where a sequence skips a layer: its attention and its MLP."""
    draws = torch.rand(len(rates), batch, generator=generator)
    return (draws >= torch.tensor(rates)[:, None]).float()[:, None].repeat(1, 2, 1)


def keep_modules(n_layers, batch, drop_max, whole_share, generator):
    """[n_layers, 2, batch], 0 where a sequence skips an attention or an MLP, each on its own.

    A sequence's rate is uniform up to drop_max; a share of the sequences skips nothing.
    """
    rates = drop_max * torch.rand(batch, generator=generator)
    rates[torch.rand(batch, generator=generator) < whole_share] = 0
    keep = (torch.rand(n_layers, 2, batch, generator=generator) >= rates).float()
    keep[0] = keep[-1] = 1
    return keep


def draw_keep(options, n_layers, batch, share, generator):
    """What the sequences of a step skip by the recipe; None keeps everything."""
    if options.recipe == "layerskip":
        return keep_layers(dropout_rates(n_layers, options.p_max, share), batch, generator)
    if options.recipe == "redundant":
        return keep_modules(n_layers, batch, options.drop_max, options.whole_share, generator)
    return None


def draw_batch(stream, batch, length, generator):
    """Windows of a byte stream: [batch, length + 1]."""
    if len(stream) <= length:
        raise SystemExit(f"corpus: expected more than {length} bytes, found {len(stream)}")
    starts = torch.randint(len(stream) - length, (batch,), generator=generator).to(stream.device)
    return stream[starts[:, None] + torch.arange(length + 1, device=stream.device)].long()


def exit_loss(model, stream, targets):
    logits = model.logits(stream)
    return F.cross_entropy(logits.float().flatten(0, 1), targets.flatten())


def weighted_loss(model, inputs, targets, keep, weights, run=Layer.forward):
    """The weighted loss over all exits, and the loss of the last layer."""
    streams = model.streams(inputs, keep, run)[1:]
    losses = [exit_loss(model, s, targets) if w > 0 else 0.0 for s, w in zip(streams, weights)]
    return sum(w * loss for w, loss in zip(weights, losses)), losses[-1]


def stages(options):
    """The stages of training: when each ends, as a share, and its batch and its bytes per sequence."""
    if not options.short_context:
        return [(1.0, options.batch, options.context)]
    n_short = options.batch * options.context // options.short_context
    return [(options.short_share, n_short, options.short_context), (1.0, options.batch, options.context)]


def compile_layers(name, try_step):
    """Layer.forward, compiled if the calls of `try_step` with it succeed. One graph serves all layers."""
    start = time.monotonic()
    compiled = torch.compile(Layer.forward, dynamic=False)
    try:
        try_step(compiled)
    except Exception as error:  # the compiler fails in many ways, none of which should end the training
        print(f"{name}: not compiled: {type(error).__name__}: {error}", flush=True)
        return Layer.forward
    print(f"{name}: compiled in {time.monotonic() - start:.0f} s", flush=True)
    return compiled


def train(model, stream, options, device):
    """Returns the number of steps and of bytes trained on."""
    start = time.monotonic()
    n_layers = model.config.n_layers
    is_layerskip = options.recipe == "layerskip"
    weights = exit_weights(n_layers, options.exit_scale) if is_layerskip else [0.0] * (n_layers - 1) + [1.0]
    data_generator = torch.Generator().manual_seed(options.seed)
    dropout_generator = torch.Generator().manual_seed(options.seed + 1)
    stream = stream.to(device)

    def backward(windows, share, generator, run):
        keep = draw_keep(options, n_layers, len(windows), share, generator)
        keep = None if keep is None else keep.to(device)
        with autocast(device):
            loss, last = weighted_loss(model, windows[:, :-1], windows[:, 1:], keep, weights, run)
        loss.backward()
        return loss.detach(), last.detach()

    def try_step(run):
        for share, batch, length in stages(options):
            windows = torch.zeros(batch, length + 1, dtype=torch.long, device=device)
            backward(windows, share, torch.Generator(), run)

    run = compile_layers(options.recipe, try_step) if device.type == "cuda" else Layer.forward
    model.zero_grad(set_to_none=True)
    seconds = options.seconds and max(1.0, options.seconds - (time.monotonic() - start))
    optimizer = make_optimizer(model.parameters(), options.rate, options.weight_decay)
    progress = Progress(options.recipe, interval=100)
    n_steps = n_bytes = 0
    for step, share, factor in schedule(options.steps, options.warm_up, seconds):
        batch, length = next((batch, length) for end, batch, length in stages(options) if share < end)
        windows = draw_batch(stream, batch, length, data_generator)
        loss, last = backward(windows, share, dropout_generator, run)
        update(optimizer, factor, options.rate)
        n_steps, n_bytes = step + 1, n_bytes + batch * length
        progress.show(step, share, lambda: f"loss {loss.item():.3f}  last layer {last.item():.3f}")
    return n_steps, n_bytes


def skip_at_random(n_layers, columns, share, generator):
    """[n_layers, 2, 1], 0 for a share of the modules in these columns, none of the first or last layer."""
    keep = torch.ones(n_layers, 2, 1)
    modules = [(layer, column) for layer in range(1, n_layers - 1) for column in columns]
    for i in torch.randperm(len(modules), generator=generator)[: round(share * n_layers * len(columns))]:
        keep[modules[i]] = 0
    return keep


def draw_versions(n_layers, n_draws, generator):
    """Versions of a model that skip modules: (kind, share, keep mask)."""
    return [
        (kind, share, skip_at_random(n_layers, columns, share, generator))
        for kind, columns in MODULES.items()
        for share in SKIPPED_SHARES
        for _ in range(n_draws)
    ]


def cut(windows, length):
    """Windows of fewer bytes, side by side out of each window: inputs and targets."""
    inputs, targets = windows[:, :-1], windows[:, 1:]
    end = inputs.shape[1] // length * length
    return inputs[:, :end].reshape(-1, length), targets[:, :end].reshape(-1, length)


@torch.no_grad()
def evaluate(model, stream, n_windows, n_draws, device):
    """Loss on held-out bytes, and top-1 agreement with the whole model, of the model's exits and versions."""
    n_layers, length = model.config.n_layers, model.config.n_context
    generator = torch.Generator().manual_seed(0)
    windows = draw_batch(stream, n_windows, length, generator)
    versions = draw_versions(n_layers, n_draws, generator)
    exits, skips = torch.zeros(n_layers, 2), torch.zeros(len(versions), 2)
    short_loss, short_length = 0.0, min(length, SHORT_WINDOW)
    for part in windows.split(max(1, 65536 // length)):
        part, share = part.to(device), len(part) / n_windows
        inputs, targets = part[:, :-1], part[:, 1:]

        def rate(last_stream, choice):
            """Loss and agreement; `choice` is the whole model's."""
            logits = model.logits(last_stream)
            loss = F.cross_entropy(logits.float().flatten(0, 1), targets.flatten())
            return share * torch.stack((loss, (logits.argmax(dim=-1) == choice).float().mean())).cpu()

        with autocast(device):
            streams = model.streams(inputs)[1:]
            choice = model.logits(streams[-1]).argmax(dim=-1)
            exits += torch.stack([rate(s, choice) for s in streams])
            for i, (_, _, keep) in enumerate(versions):
                skips[i] += rate(model.streams(inputs, keep.to(device))[-1], choice)
            short_inputs, short_targets = cut(part, short_length)
            short_loss += share * exit_loss(model, model.streams(short_inputs)[-1], short_targets).item()
    return {
        "n_bytes": n_windows * length,
        "window_losses": {short_length: short_loss, length: exits[-1, 0].item()},
        "losses": exits[:, 0].tolist(),
        "agreements": exits[:, 1].tolist(),
        "skips": [
            {"modules": kind, "share": share, "loss": loss, "agreement": agreement}
            for (kind, share, _), (loss, agreement) in zip(versions, skips.tolist())
        ],
    }


def print_results(name, results):
    for i, (loss, agreement) in enumerate(zip(results["losses"], results["agreements"])):
        print(f"{name} exit {i + 1:2}  loss {loss:.3f}  agreement {agreement:.4f}")
    for kind in MODULES:
        for share in SKIPPED_SHARES:
            rows = [r for r in results["skips"] if (r["modules"], r["share"]) == (kind, share)]
            loss = sum(r["loss"] for r in rows) / len(rows)
            found = [r["agreement"] for r in rows]
            print(
                f"{name} without {share:5.1%} of {kind:9}  loss {loss:.3f}  "
                f"agreement {sum(found) / len(found):.4f} ({min(found):.4f} to {max(found):.4f})"
            )
    for length, loss in results["window_losses"].items():
        print(f"{name} windows of {length} bytes  loss {loss:.4f}", flush=True)


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--recipe", required=True, choices=RECIPES, help="what training skips")
    parser.add_argument("--name", help="name of the files written (bytes-RECIPE)")
    parser.add_argument("--layers", type=int, default=12, help="(%(default)s)")
    parser.add_argument("--width", type=int, default=128, help="width of the residual stream (%(default)s)")
    parser.add_argument("--heads", type=int, default=4, help="(%(default)s)")
    parser.add_argument("--kv-heads", type=int, help="heads of keys and values (as many as --heads)")
    parser.add_argument("--mlp-width", type=int, default=384, help="(%(default)s)")
    parser.add_argument("--context", type=int, default=1024, help="bytes per sequence (%(default)s)")
    parser.add_argument(
        "--short-context", type=int, help="bytes per sequence at first, with as many bytes per step (--context)"
    )
    parser.add_argument(
        "--short-share", type=float, default=0.67, help="share of training at --short-context (%(default)s)"
    )
    parser.add_argument("--rope-base", type=float, default=10000.0, help="(%(default)s)")
    layerskip = parser.add_argument_group("layerskip")
    layerskip.add_argument("--p-max", type=float, default=0.1, help="dropout rate of the last layer (%(default)s)")
    layerskip.add_argument("--exit-scale", type=float, default=1.0, help="weight of early exits (%(default)s)")
    redundant = parser.add_argument_group("redundant")
    redundant.add_argument("--drop-max", type=float, default=0.6, help="a sequence's highest rate (%(default)s)")
    redundant.add_argument(
        "--whole-share", type=float, default=0.25, help="share of sequences that skip nothing (%(default)s)"
    )
    evaluation = parser.add_argument_group("evaluation")
    evaluation.add_argument("--windows", type=int, default=128, help="number of held-out sequences (%(default)s)")
    evaluation.add_argument("--draws", type=int, default=4, help="random versions per skipped share (%(default)s)")
    add_training_arguments(parser, steps=2400, batch=64, rate=2e-3, weight_decay=0.1, warm_up=200)
    options = parser.parse_args()
    options.name = options.name or f"bytes-{options.recipe}"
    options.kv_heads = options.kv_heads or options.heads
    return options


def main():
    options = parse_arguments()
    device = pick_device()
    corpus = load_corpus(options.corpus)
    config = LlamaConfig(
        n_vocab=256 + len(SPECIAL_TOKENS),
        n_layers=options.layers,
        d_model=options.width,
        n_heads=options.heads,
        n_kv_heads=options.kv_heads,
        d_ff=options.mlp_width,
        n_context=options.context,
        rope_base=options.rope_base,
    )
    torch.manual_seed(options.seed)
    model = Llama(config)
    initialise(model)
    model.to(device)
    print(f"{options.recipe}: {sum(p.numel() for p in model.parameters())} parameters", flush=True)
    n_steps, n_bytes = train(model, corpus["train_bytes"], options, device)
    torch.save(
        {
            "recipe": options.recipe,
            "config": asdict(config),
            "model": {name: weight.half().cpu() for name, weight in model.state_dict().items()},
        },
        options.out / f"{options.name}.pt",
    )
    results = evaluate(model, corpus["held_out_bytes"], options.windows, options.draws, device)
    print_results(options.recipe, results)
    print(f"{options.recipe}: {n_steps} steps, {n_bytes} bytes")
    results |= {"steps": n_steps, "trained_bytes": n_bytes}
    save_results(options.out / f"{options.name}.json", options, results)


if __name__ == "__main__":
    main()
