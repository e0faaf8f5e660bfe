"""Code shared by the training scripts: device, data, schedule, optimiser, progress."""

import argparse
import itertools
import json
import math
import time
from pathlib import Path

import torch


def pick_device():
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


def autocast(device):
    return torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda")


def load_corpus(path):
    """Loads the file that corpus.py wrote."""
    if not Path(path).is_file():
        raise SystemExit(f"{path}: expected the corpus that corpus.py writes, found no file")
    return torch.load(path, map_location="cpu")


def existing_folder(name):
    """Rejects a missing folder before training instead of after it."""
    path = Path(name)
    if not path.is_dir():
        raise argparse.ArgumentTypeError(f"expected a folder, found none at {name}")
    return path


def add_training_arguments(parser, **defaults):
    """Adds the arguments that both training scripts share. `defaults` sets their default values."""
    parser.add_argument("--corpus", required=True, help="file that corpus.py wrote")
    parser.add_argument("--out", required=True, type=existing_folder, help="folder for checkpoint and results")
    parser.add_argument("--steps", type=int, help="(%(default)s)")
    parser.add_argument("--seconds", type=float, help="train this long, compilation included, instead of --steps")
    parser.add_argument("--batch", type=int, help="texts per step (%(default)s)")
    parser.add_argument("--rate", type=float, help="peak learning rate (%(default)s)")
    parser.add_argument("--weight-decay", type=float, help="(%(default)s)")
    parser.add_argument("--warm-up", type=int, help="steps until the peak rate (%(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="(%(default)s)")
    parser.set_defaults(**defaults)


def make_optimizer(parameters, peak_rate, weight_decay):
    """AdamW, without weight decay on vectors (norms)."""
    parameters = list(parameters)
    groups = [
        {"params": [p for p in parameters if p.dim() > 1], "weight_decay": weight_decay},
        {"params": [p for p in parameters if p.dim() == 1], "weight_decay": 0.0},
    ]
    is_on_gpu = parameters[0].is_cuda
    return torch.optim.AdamW(groups, lr=peak_rate, betas=(0.9, 0.95), fused=is_on_gpu)


def schedule(n_steps, n_warm_up, seconds=None, clock=time.monotonic):
    """Yields every step's number, the share of the training before it, and the factor of its learning rate.

    Training ends after n_steps, or if given after `seconds`. The factor rises linearly to 1, then falls as a
    cosine to 0. A warm-up ends at a tenth of the seconds, so that a slow machine too gets to the fall.
    """
    start, warm_share = clock(), None
    for step in itertools.count():
        share = step / n_steps if seconds is None else (clock() - start) / seconds
        if share >= 1:
            return
        if warm_share is None and (step >= n_warm_up or (seconds is not None and share > 0.1)):
            warm_share = share
        if warm_share is None:
            yield step, share, (step + 1) / n_warm_up
        else:
            yield step, share, 0.5 * (1 + math.cos(math.pi * (share - warm_share) / (1 - warm_share)))


def update(optimizer, factor, peak_rate, clip=1.0):
    """One optimiser step at `factor` times the peak rate, with the gradient norm clipped."""
    for group in optimizer.param_groups:
        torch.nn.utils.clip_grad_norm_(group["params"], clip)
        group["lr"] = factor * peak_rate
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)


class Progress:
    """Prints a line every `interval` steps."""

    def __init__(self, name, interval=50):
        self.name, self.interval = name, interval
        self.start = time.time()

    def show(self, step, share, describe):
        """Calls `describe` only when a line is due, because reading values may wait for the device."""
        if step % self.interval == 0:
            seconds = time.time() - self.start
            print(f"{self.name} step {step + 1}  {share:.0%}  {seconds:.0f} s  {describe()}", flush=True)


def save_results(path, options, results):
    """Saves results as JSON, with the settings that produced them."""
    settings = {key: str(value) for key, value in vars(options).items()}
    Path(path).write_text(json.dumps({"settings": settings, **results}, indent=1) + "\n")
