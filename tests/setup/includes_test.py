#!/usr/bin/env python3
"""Checks that includes between the folders of src/, tools/, serve/ and hub/ point in one direction, as drawn in docs/architecture.md,
and that no folder of sources has too many files."""
import re
import sys
from pathlib import Path

BELOW = {
    "base": [],
    "device": ["base"],
    "kernels": ["base", "sampling"],
    "model": ["device", "kernels"],
    "kv": ["kernels", "model"],
    "forward": ["kv"],
    "graph": ["forward"],
    "cpu": ["graph"],
    "cuda": ["graph"],
    "search": ["forward"],
    "sampling": ["base"],
    "decode": ["search", "sampling"],
    "text": ["model"],
    "runtime": ["decode", "cpu", "cuda", "text"],
    "tools/make_model": ["model"],
    "tools/peer": ["device"],
    "tools/profile": ["runtime"],
    "tools/worker": ["runtime"],
    "tools/explain": ["tools/profile"],
    "tools/offline_search": ["runtime"],
    "tools/check": ["runtime", "tools/peer"],
    "tools/exactness": ["tools/check"],
    "tools/measure": ["tools/check"],
    "hub": ["model"],
    "hub/network": ["hub"],
    "serve/http": ["base"],
    "serve/engine": ["base"],
    "serve/api": ["serve/engine"],
    "serve/answer": ["serve/api", "text"],
    "serve": ["serve/answer", "serve/http", "text"],
}
MAY_SEE_GGML = {"device", "kernels", "model", "graph", "cpu", "cuda", "text", "tools/peer", "tools/check", "tools/make_model"}
# Arithmetic on plans and numbers, tested without a model. May include each other, base and the plan, but not ggml.
PURE = {"kv/page_pool", "kv/prefix_index", "search/knapsack", "search/module_weights", "search/throughput",
        "search/bayes/gaussian_process", "search/bayes/bayesian_optimiser"}
PURE_MAY_SEE = PURE | {"forward/module_plan"}
MAX_FILES = 30


def reachable(room):
    rooms = {room}
    for below in BELOW[room]:
        rooms |= reachable(below)
    return rooms


def room_of(path):
    """The folder of a file, or of an include, from its path below src/ or the root."""
    parts = path.split("/")[:-1]
    return "/".join(parts[:2] if parts and parts[0] in ("tools", "serve", "hub") else parts[:1])


def include_faults(root):
    for path in sorted(path for top in ("src", "tools", "serve", "hub") for path in (root / top).rglob("*.*")):
        if path.suffix not in (".h", ".cpp", ".cu", ".cuh"):
            continue
        name = str(path.relative_to(root)).removeprefix("src/")
        room = room_of(name)
        if room not in BELOW:
            yield f"{path}: folder {room} is unknown: add it here and to docs/architecture.md"
            continue
        for include in re.findall(r'#include ["<]([^">]+)[">]', path.read_text()):
            target = room_of(include)
            if (target in BELOW or include.startswith("cli/")) and target not in reachable(room):
                yield f"{path}: {room} must not include {include}"
            is_pure = name.rsplit(".", 1)[0] in PURE
            if is_pure and target in BELOW.keys() - {"base"} and include[:-2] not in PURE_MAY_SEE:
                yield f"{path}: a pure file must not include {include}"
            if re.match(r"(ggml|gguf|llama)", include) and (is_pure or room not in MAY_SEE_GGML):
                yield f"{path}: {'a pure file' if is_pure else room} must not include {include}"


def size_faults(root):
    for top in ("src", "tools", "serve", "hub", "cli", "bench", "include"):
        for folder in sorted([root / top, *(root / top).rglob("*/")]):
            n_files = sum(1 for path in folder.iterdir() if path.suffix in (".h", ".cpp", ".cu", ".cuh"))
            if n_files > MAX_FILES:
                yield f"{folder}: {n_files} files, expected at most {MAX_FILES}: split the folder"


root = Path(sys.argv[1])
found = [*include_faults(root), *size_faults(root)]
print("\n".join(found) or "includes point in one direction, and folders are small")
sys.exit(bool(found))
