#!/usr/bin/env python3
"""Includes point one way through the rooms of src/, as docs/architecture.md draws them."""
import re
import sys
from pathlib import Path

BELOW = {
    "base": [],
    "device": ["base"],
    "kernels": ["base"],
    "model": ["device", "kernels"],
    "kv": ["kernels", "model"],
    "graph": ["kv"],
    "search": ["graph"],
    "sampling": ["base"],
    "decode": ["search", "sampling"],
    "text": ["model"],
    "peer": ["device"],
    "runtime": ["decode", "text"],
    "check": ["runtime", "peer"],
    "measure": ["check"],
}
MAY_SEE_GGML = {"device", "kernels", "model", "kv", "graph", "text", "peer", "check"}
# Arithmetic on plans and numbers, tested without a model: these see each other, base and the plan.
PURE = {"search/knapsack", "search/module_weights", "search/throughput", "search/gaussian_process",
        "search/bayesian_optimiser"}
PURE_MAY_SEE = PURE | {"graph/module_plan"}


def reachable(room):
    rooms = {room}
    for below in BELOW[room]:
        rooms |= reachable(below)
    return rooms


def faults(root):
    for path in sorted((root / "src").glob("*/*")):
        room = path.parent.name
        if room not in BELOW:
            yield f"{path}: room {room} is not on the map: add it here and to docs/architecture.md"
            continue
        for include in re.findall(r'#include ["<]([^">]+)[">]', path.read_text()):
            folder = include.split("/")[0] if "/" in include else ""
            if folder in BELOW and folder not in reachable(room):
                yield f"{path}: {room} must not include {include}"
            is_pure = f"{room}/{path.stem}" in PURE
            if is_pure and folder in BELOW.keys() - {"base"} and include[:-2] not in PURE_MAY_SEE:
                yield f"{path}: a pure file must not include {include}"
            if re.match(r"(ggml|gguf|llama)", include) and room not in MAY_SEE_GGML:
                yield f"{path}: {room} must not see {include}"


found = list(faults(Path(sys.argv[1])))
print("\n".join(found) or "includes point one way")
sys.exit(bool(found))
