#!/usr/bin/env python3
"""Generates the tables of the documentation from the files in docs/results/data. In README.md and documents under docs/
two lines mark where a table goes:

    <!-- table: NAME -->
    <!-- end -->

    docs/tables.py            rewrites the text between the marks
    docs/tables.py --check    reports tables that differ from their data, and fails if there are any
    docs/tables.py --list     lists the tables, their data files and the commands that measure them

The text below each table names the machine, the model, the spread, the data files and their commands. docs/measure.py
(`make results`) measures the files."""
import argparse
import os
import re
import sys
from pathlib import Path

sys.dont_write_bytecode = True
import bench_data as data  # noqa: E402
import bench_tables as kinds  # noqa: E402
import cells  # noqa: E402
import paper_projection as projection  # noqa: E402
from bench_data import DataError  # noqa: E402

DATA = Path("docs/results/data")
REGION = re.compile(r"^<!-- table: (\S+) -->\n(.*?)^<!-- end -->$", re.MULTILINE | re.DOTALL)
MARK = re.compile(r"^<!-- (table: .*|end) -->$", re.MULTILINE)


NAMED_MODELS = 4  # a caption names as many, and counts more


def listed(words):
    return ", ".join(dict.fromkeys(words))


def first_run(file):
    """What a command begins with, where another one ran before it."""
    first = file.get("cell", {}).get("first")
    return f" in a new cache folder, after `{first}`" if first else ""


def caption(files, folder, spread_text):
    """The text below a table. Links are relative to `folder`, the document's."""
    machines = listed(data.machine(file) for file in files)
    names = dict.fromkeys(model for file in files for model in data.models(file))
    models = listed(names) if len(names) <= NAMED_MODELS else f"{len(names)} models"
    sources = "\n".join(f"- [{file['name']}]({os.path.relpath(DATA / file['name'], folder)}): `{data.command(file)}`{first_run(file)}"
                        for file in files)
    return (f"{machines}; {models}. {spread_text}.\n\n<details><summary>Data and commands</summary>\n\n{sources}\n\n"
            "</details>")


class Table:
    def __init__(self, make, files, may_be_missing=False):
        self.make = make    # turns the files into the table and a sentence on the spread
        self.files = files  # names or patterns in DATA; cells.py has the commands that write them
        self.may_be_missing = may_be_missing  # without its files the table says that nothing was measured yet

    def load(self, root):
        found = []
        for pattern in self.files:
            paths = sorted((root / DATA).glob(pattern))
            if not paths:
                raise DataError(f"{DATA / pattern}: expected a data file, found none (commands: docs/tables.py --list)")
            found += [data.load(path) for path in paths]
        return found

    def text(self, root, folder):
        if self.may_be_missing and not any(path for pattern in self.files for path in (root / DATA).glob(pattern)):
            return "\nNot measured yet. `docs/tables.py --list` has the command.\n\n"
        files = self.load(root)
        try:
            table, spread_text = self.make(files)
        except (KeyError, ValueError) as error:
            names = listed(file["name"] for file in files)
            raise DataError(f"{names}: expected a file for the table {self.make.__name__}, found {error!r}") from None
        return f"\n{table}\n\n{caption(files, folder, spread_text)}\n\n"


TABLES = {
    "cpu-plain": Table(kinds.race, ["cpu-decode.json"]),
    "cpu-plain-lengths": Table(kinds.race_by_length, ["cpu-decode.json"]),
    "cpu-plain-2-cores": Table(kinds.race_by_length, ["cpu-2-cores-decode.json"]),
    "cpu-plain-avx2": Table(kinds.race_by_length, ["cpu-decode-avx2.json"]),
    "cpu-shapes": Table(kinds.race_by_model, ["cpu-shape-*.json"]),
    "cpu-epyc-shapes": Table(kinds.race_by_model, ["cpu-epyc-shape-*.json"]),
    "cpu-experts": Table(kinds.experts, ["cpu-experts-*.json"]),
    "cpu-strategies": Table(kinds.strategies_by_class, ["cpu-strategies-*.json"]),
    "cpu-strategies-total": Table(kinds.strategies, ["cpu-strategies-*.json"]),
    "cpu-expectations": Table(kinds.expectations, ["cpu-strategies-*.json"]),
    "cpu-parts": Table(kinds.strategies_by_class, ["cpu-parts-*.json"], may_be_missing=True),
    "cpu-hindsight": Table(kinds.hindsight, ["cpu-parts-*.json"], may_be_missing=True),
    "cpu-sampled-parts": Table(kinds.strategies_by_class, ["cpu-sampled-parts-*.json"], may_be_missing=True),
    "cpu-short": Table(kinds.instruction_sets, ["cpu-short.json", "cpu-short-avx2.json"], may_be_missing=True),
    "cpu-memory": Table(kinds.memory, ["cpu-memory-*.json"], may_be_missing=True),
    "cpu-peers": Table(kinds.peers, ["cpu-peers-*.json"], may_be_missing=True),
    "paper-greedy": Table(kinds.data_sets, ["cpu-strategies-reasoning.json", "cpu-strategies-document.json"]),
    "paper-sampled": Table(kinds.data_sets, ["cpu-sampled-reasoning.json", "cpu-sampled-document.json"]),
    "paper-tau": Table(kinds.strategies, ["cpu-ablation-tau.json"]),
    "paper-interval": Table(kinds.strategies, ["cpu-ablation-interval.json"]),
    "paper-skipped": Table(kinds.skipped, ["cpu-skip-*.json"]),
    "cpu-tasks": Table(kinds.tasks, ["cpu-tasks.json"]),
    "cpu-context": Table(kinds.context, ["cpu-context-*.json"]),
    "cpu-context-requests": Table(kinds.context_requests, ["cpu-context-*.json"]),
    **{f"{device}-deep-{model}-{length}": Table(kinds.strategies, [f"{device}-deep-{model}-{length}.json"], may_be_missing=True)
       for device in ("cpu", "gpu") for model in ("redundant", "plain") for length in ("short", "long")},
    "cpu-agent": Table(kinds.agent, ["cpu-agent.json"], may_be_missing=True),
    "cpu-verify": Table(kinds.verify, ["cpu-verify.json"]),
    "cpu-draft": Table(kinds.draft, ["cpu-draft.json"]),
    "gpu-steps": Table(kinds.device, ["gpu-steps-*.json"]),
    "gpu-plain": Table(kinds.device_plain, ["gpu-steps-*.json"]),
    "gpu-projections": Table(kinds.speedups_by_length, ["gpu-projections.json"]),
    "gpu-strategies": Table(kinds.strategies, ["gpu-strategies.json"]),
    "projection-costs": Table(projection.pass_costs, ["gpu-shapes.json"], may_be_missing=True),
    "projection-f16": Table(projection.speeds_f16, ["gpu-shapes.json"], may_be_missing=True),
    "projection-q4_k_m": Table(projection.speeds_q4_k_m, ["gpu-shapes.json"], may_be_missing=True),
    "projection-contexts": Table(projection.contexts, ["gpu-shapes.json"], may_be_missing=True),
}


def documents(root):
    return [root / "README.md", *sorted((root / "docs").rglob("*.md"))]


def check_marks(text, name):
    """Raises unless marks come in pairs."""
    is_open = False
    for mark in MARK.finditer(text):
        if is_open == (mark[1] != "end"):
            line = text.count("\n", 0, mark.start()) + 1
            expected = "`<!-- end -->`" if is_open else "`<!-- table: NAME -->`"
            raise DataError(f"{name}:{line}: expected {expected}, found `{mark[0]}`")
        is_open = not is_open
    if is_open:
        raise DataError(f"{name}: expected `<!-- end -->` after the last table, found none")


def rewritten(root, path):
    """The document with its tables regenerated."""
    name = path.relative_to(root)
    text = path.read_text()
    check_marks(text, name)

    def region(match):
        if match[1] not in TABLES:
            raise DataError(f"{name}: expected a table of docs/tables.py --list, found {match[1]}")
        return f"<!-- table: {match[1]} -->\n{TABLES[match[1]].text(root, name.parent)}<!-- end -->"

    return REGION.sub(region, text)


def first_difference(found, expected):
    for number_, (a, b) in enumerate(zip(found.split("\n"), expected.split("\n")), 1):
        if a != b:
            return number_, a, b
    return min(found.count("\n"), expected.count("\n")) + 1, "another length", "the same length"


def check(root):
    """One line for each document with a table that differs from its data."""
    for path in documents(root):
        try:
            found, expected = path.read_text(), rewritten(root, path)
        except DataError as error:
            yield str(error)
            continue
        if found != expected:
            line, a, b = first_difference(found, expected)
            yield (f"{path.relative_to(root)}:{line}: a table differs from its data (make tables): "
                   f"expected `{b}`, found `{a}`")


def rewrite(root):
    for path in documents(root):
        expected = rewritten(root, path)
        if expected != path.read_text():
            path.write_text(expected)
            print(f"tables: rewrote {path.relative_to(root)}")


def print_list(root):
    used = {name for path in documents(root) for name, _ in REGION.findall(path.read_text())}
    for name, table in TABLES.items():
        print(f"{name}{' (in use)' if name in used else ''}: {table.make.__doc__}")
        for pattern in table.files:
            print(f"    {DATA / pattern}{'' if any((root / DATA).glob(pattern)) else ' (missing)'}")
            for cell in cells.writing(pattern):
                for command in cell.commands.values():
                    print(f"    $ {command.replace('OUT/', f'{DATA}/')}")


def main():
    parser = argparse.ArgumentParser(description="Generates the tables of the documentation")
    parser.add_argument("--check", action="store_true", help="change nothing; fail when a table differs")
    parser.add_argument("--list", action="store_true", help="list the tables, their data files and commands")
    parser.add_argument("--root", type=Path, default=Path(__file__).resolve().parent.parent, help="the checkout")
    options = parser.parse_args()
    if options.list:
        print_list(options.root)
        return 0
    if options.check:
        faults = list(check(options.root))
        print("\n".join(faults) or "all tables match their data")
        return bool(faults)
    try:
        rewrite(options.root)
    except DataError as error:
        print(f"tables: error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
