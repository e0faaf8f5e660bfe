#!/usr/bin/env python3
"""Generates the tables of the documentation from the files in docs/results/data. In README.md and documents under docs/
two lines mark where a table goes:

    <!-- table: NAME -->
    <!-- end -->

    docs/tables.py            rewrites the text between the marks
    docs/tables.py --check    reports tables that differ from their data, and fails if there are any
    docs/tables.py --list     lists the tables, their data files and the commands that measure them

The text below each table names the machine, the model, the spread, the data files and their commands."""
import argparse
import os
import re
import sys
from pathlib import Path

sys.dont_write_bytecode = True
import bench_data as data  # noqa: E402
import bench_tables as kinds  # noqa: E402
import paper_projection as projection  # noqa: E402
from bench_data import DataError  # noqa: E402

DATA = Path("docs/results/data")
REGION = re.compile(r"^<!-- table: (\S+) -->\n(.*?)^<!-- end -->$", re.MULTILINE | re.DOTALL)
MARK = re.compile(r"^<!-- (table: .*|end) -->$", re.MULTILINE)


def listed(words):
    return ", ".join(dict.fromkeys(words))


def caption(files, folder, spread_text):
    """The text below a table. Links are relative to `folder`, the document's."""
    machines = listed(data.machine(file) for file in files)
    models = listed(model for file in files for model in data.models(file))
    sources = "\n".join(f"- [{file['name']}]({os.path.relpath(DATA / file['name'], folder)}): `{data.command(file)}`"
                        for file in files)
    return (f"{machines}; {models}. {spread_text}.\n\n<details><summary>Data and commands</summary>\n\n{sources}\n\n"
            "</details>")


class Table:
    def __init__(self, make, files, commands, may_be_missing=False):
        self.make = make          # turns the files into the table and a sentence on the spread
        self.files = files        # names or patterns in DATA
        self.commands = commands  # write the files; OUT stands for DATA
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


ALL_STRATEGIES = ("'lookup,knapspec,knapspec-paper,knapspec-paper(variant=paper),clasp,swift,del,del/10,"
                  "draft-verify/12/l1+5+9+13+17+21+25=skip,asd,layerskip/2/exit=3,kangaroo'")
EVERY = f"--strategies {ALL_STRATEGIES} --adapter models/kangaroo-smollm2-135m.gguf -n 128"
DOCUMENTS = "--data $DATA/govreport.jsonl,$DATA/pg19.jsonl,$DATA/booksum.jsonl --limit 3 --max-prompt-tokens 7680"
REASONING = "--data $DATA/aime24.jsonl,$DATA/aime25.jsonl,$DATA/mmlu_pro.jsonl --limit 4"
SAMPLED = "--temp 0.7 --top-k 50 --top-p 0.95 --min-p 0 --seed 1"
SHORT_REPORTS = "build/knap bench --data $DATA/govreport.jsonl --limit 4 --max-prompt-tokens 1024"
PAPER_MODELS = "llama-3.2-1b,llama-3.1-8b,qwen3-8b,qwen3-14b,qwen3-32b,llama-3.1-70b"
RANDOM_8B = "build/knap make-model --shape llama-3.1-8b --type Q4_0 -o 8b-q4_0.gguf"


def paper(*settings):
    """knapspec-paper with each setting."""
    return "'" + ",".join(f"knapspec-paper({setting})" for setting in settings) + "'"


# Commands run in the root of the checkout, on a quiet machine, after `knap profile`; -t N sets the number of threads.
# MODEL="$(deps/setup model-path)", the default model; DATA: a folder of prompts (docs/benchmarks.md).
TABLES = {
    "cpu-plain": Table(kinds.race, ["cpu-decode.json"], [
        "build/decode_bench $MODEL --prefill 512,7680 --depths 16,512,1024,2048,4096,7680 --json OUT/cpu-decode.json"]),
    "cpu-plain-lengths": Table(kinds.race_by_length, ["cpu-decode.json"], ["(the file of cpu-plain)"]),
    "cpu-plain-2-cores": Table(kinds.race_by_length, ["cpu-2-cores-decode.json"], [
        "build/decode_bench $MODEL --threads 2 --prefill 512,4096 --depths 16,2048,7680 "
        "--json OUT/cpu-2-cores-decode.json"]),
    "cpu-plain-avx2": Table(kinds.race_by_length, ["cpu-decode-avx2.json"], [
        "KNAP_ISA=avx2 build/decode_bench $MODEL --prefill 512 --depths 16,2048 --json OUT/cpu-decode-avx2.json"]),
    "cpu-plain-granitemoe": Table(kinds.race_by_length, ["cpu-granitemoe-decode.json"], [
        "build/knap make-model --shape granite-3.1-3b-a800m --type Q4_K_M -o granite-3.1-3b-a800m.Q4_K_M.gguf",
        "build/decode_bench granite-3.1-3b-a800m.Q4_K_M.gguf --threads 2 --prefill 128 --depths 16 "
        "--json OUT/cpu-granitemoe-decode.json"]),
    "cpu-plain-qwen3moe": Table(kinds.race_by_length, ["cpu-qwen3-30b-a3b-decode.json"], [
        "build/knap make-model --shape qwen3-30b-a3b --layers 4 --type Q4_K_M -o qwen3-30b-a3b.4-layers.Q4_K_M.gguf",
        "build/decode_bench qwen3-30b-a3b.4-layers.Q4_K_M.gguf --threads 1 --prefill 128 --depths 16 "
        "--json OUT/cpu-qwen3-30b-a3b-decode.json"]),
    "cpu-plain-gpt-oss": Table(kinds.race_by_length, ["cpu-gpt-oss-20b-decode.json"], [
        "build/knap make-model --shape gpt-oss-20b --layers 4 --type MXFP4 --head-type Q8_0 -o gpt-oss-20b.4-layers.MXFP4.gguf",
        "build/decode_bench gpt-oss-20b.4-layers.MXFP4.gguf --threads 1 --prefill 128 --depths 16 "
        "--json OUT/cpu-gpt-oss-20b-decode.json"]),
    "cpu-strategies": Table(kinds.strategies_by_class, ["cpu-strategies-*.json"], [
        "build/knap bench --data $DATA/specbench.jsonl:writing,$DATA/specbench.jsonl:roleplay,"
        f"$DATA/specbench.jsonl:qa --limit 2 {EVERY} -r 2 -o OUT/cpu-strategies-chat.json",
        f"build/knap bench --data $DATA/gsm8k.jsonl --limit 6 {EVERY} -r 2 -o OUT/cpu-strategies-math.json",
        f"build/knap bench --data $DATA/humaneval.jsonl --limit 6 {EVERY} -r 2 -o OUT/cpu-strategies-code.json",
        f"build/knap bench {REASONING} {EVERY} -r 2 -o OUT/cpu-strategies-reasoning.json",
        f"build/knap bench {DOCUMENTS} {EVERY} -r 2 -o OUT/cpu-strategies-document.json"]),
    "cpu-strategies-total": Table(kinds.strategies, ["cpu-strategies-*.json"], ["(the files of cpu-strategies)"]),
    "cpu-expectations": Table(kinds.expectations, ["cpu-strategies-*.json"], ["(the files of cpu-strategies)"]),
    "paper-greedy": Table(kinds.data_sets, ["cpu-strategies-reasoning.json", "cpu-strategies-document.json"],
                          ["(files of cpu-strategies)"]),
    "paper-sampled": Table(kinds.data_sets, ["cpu-sampled-reasoning.json", "cpu-sampled-document.json"], [
        f"build/knap bench {REASONING} {EVERY} {SAMPLED} -r 1 -o OUT/cpu-sampled-reasoning.json",
        f"build/knap bench {DOCUMENTS.replace('--limit 3', '--limit 2')} {EVERY} {SAMPLED} -r 1 "
        "-o OUT/cpu-sampled-document.json"]),
    "paper-tau": Table(kinds.strategies, ["cpu-ablation-tau.json"], [
        f"{SHORT_REPORTS} -n 192 -r 1 --strategies "
        f"{paper('tau=-1', 'tau=0.3', 'tau=0.5', 'tau=0.7', 'tau=0.9', 'tau=0.97', 'variant=paper')} "
        "-o OUT/cpu-ablation-tau.json"]),
    "paper-interval": Table(kinds.strategies, ["cpu-ablation-interval.json"], [
        f"{SHORT_REPORTS} -n 320 -r 1 --strategies "
        f"{paper('interval=7', 'interval=16', 'interval=32', 'interval=64', 'interval=128', 'variant=paper')} "
        "-o OUT/cpu-ablation-interval.json"]),
    "paper-skipped": Table(kinds.skipped, ["cpu-skip-*.json"], [
        "for n in 512 2048 7680; do build/knap bench --data $DATA/govreport.jsonl --limit 2 "
        "--max-prompt-tokens $n -n 128 -r 1 --strategies 'knapspec-paper(interval=16),"
        "knapspec-paper(variant=paper;interval=16),swift(iterations=40),knapspec' -o OUT/cpu-skip-$n.json; done"]),
    "cpu-tasks": Table(kinds.tasks, ["cpu-tasks.json"], [
        "build/knap bench --data $DATA/specbench.jsonl:TASK,...,$DATA/gsm8k.jsonl,$DATA/humaneval.jsonl --limit 3 -n 192 -r 1 "
        "--strategies lookup,knapspec --peer llama -o OUT/cpu-tasks.json"]),
    "cpu-context": Table(kinds.context, ["cpu-context-*.json"], [
        "for n in 512 1024 2048 4096 7680; do build/knap bench --data $DATA/govreport.jsonl --limit 6 "
        "--max-prompt-tokens $n -n 128 -r 2 --strategies lookup,knapspec --peer llama -o OUT/cpu-context-$n.json; done "
        "(--limit 4 from 4096 on)"]),
    "cpu-context-requests": Table(kinds.context_requests, ["cpu-context-*.json"], ["(the files of cpu-context)"]),
    "cpu-verify": Table(kinds.verify, ["cpu-verify.json"], ["build/verify_bench $MODEL --json OUT/cpu-verify.json"]),
    "cpu-draft": Table(kinds.draft, ["cpu-draft.json"], ["build/draft_bench $MODEL --json OUT/cpu-draft.json"]),
    "gpu-steps": Table(kinds.device, ["gpu-steps-*.json"], [
        RANDOM_8B, RANDOM_8B.replace("Q4_0", "F16").replace("q4_0", "f16"),
        "build-cuda/device_bench 8b-f16.gguf --depths 0,16384 --rows 4,8 --json OUT/gpu-steps-8b-f16.json",
        "build-cuda/device_bench 8b-q4_0.gguf --depths 0,16384,130000 --rows 4,8 --json OUT/gpu-steps-8b-q4_0.json",
        "build-cuda/device_bench $MODEL --depths 0,7680 --rows 4,8 --json OUT/gpu-steps-default.json"]),
    "gpu-plain": Table(kinds.device_plain, ["gpu-steps-*.json"], ["(the files of gpu-steps)"]),
    "gpu-projections": Table(kinds.speedups_by_length, ["gpu-projections.json"], [
        RANDOM_8B,
        "build-cuda/knap bench -m 8b-q4_0.gguf -c 131072 -d 16384,65536,130000 --assume-acceptance 0.9 "
        "--strategies 'knapspec,static/7/a=w16+1024' -n 128 -r 2 -o OUT/gpu-projections.json"]),
    "gpu-strategies": Table(kinds.strategies, ["gpu-strategies.json"], [
        f"build-cuda/knap bench {DOCUMENTS} -n 192 -r 2 --strategies 'lookup,knapspec,knapspec-paper,"
        "knapspec-paper(variant=paper),static/3/a=w16+256' --peer llama -o OUT/gpu-strategies.json"]),
    "projection-costs": Table(projection.pass_costs, ["gpu-shapes.json"], [
        f"build-gpu/shape_bench --shapes {PAPER_MODELS} --kernels own --folder /dev/shm --json OUT/gpu-shapes.json"], True),
    "projection-f16": Table(projection.speeds_f16, ["gpu-shapes.json"], ["(the file of projection-costs)"], True),
    "projection-q4_k_m": Table(projection.speeds_q4_k_m, ["gpu-shapes.json"], ["(the file of projection-costs)"], True),
    "projection-contexts": Table(projection.contexts, ["gpu-shapes.json"], ["(the file of projection-costs)"], True),
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
        for line in table.commands:
            print(f"    $ {line.replace('OUT/', f'{DATA}/')}")


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
