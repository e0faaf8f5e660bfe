#!/usr/bin/env python3
"""Says whether knap became slower on this kind of machine: `make bench-quick` calls it.

    bench/quick/run.py --build build --model MODEL.gguf

Measures speeds of knap relative to libllama, to plain decoding or to fewer rows, side by side, and compares these ratios with
those in docs/results/data/quick for the same processor, instruction set, threads and model. A ratio moved when it changed by
more than both spreads together and more than 5 %. Exit status: 0, also when nothing is stored for this machine; 1 if a ratio
became smaller, or could not be measured."""
import argparse
import sys
import tempfile
import time
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent))
from compare import compared, described, slug, stored_for, summary, table  # noqa: E402
from bench_data import DataError  # noqa: E402
from measure import N_ROUNDS, MeasureError, ratios, run_round, setting, to_json  # noqa: E402

STORED = Path(__file__).resolve().parents[2] / "docs/results/data/quick"


def parse(arguments):
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--build", default="build", metavar="FOLDER", help="of the programs (default: build)")
    parser.add_argument("--model", required=True, metavar="FILE", help="model in GGUF format")
    parser.add_argument("-t", "--threads", type=int, default=0, help="0: one per physical core (default: 0)")
    parser.add_argument("--rounds", type=int, default=N_ROUNDS, help=f"runs of every program (default: {N_ROUNDS})")
    parser.add_argument("--stored", type=Path, default=STORED, metavar="FOLDER",
                        help="of stored ratios (default: docs/results/data/quick)")
    parser.add_argument("--store", action="store_true", help="keep these ratios as those of this kind of machine")
    options = parser.parse_args(arguments)
    if options.rounds < 1:
        parser.error(f"--rounds: expected at least 1, found {options.rounds}")
    return options


def say(words):
    print(f"bench-quick: {words}", file=sys.stderr, flush=True)


def measured(options):
    rounds = []
    with tempfile.TemporaryDirectory(prefix="knap-quick-") as folder:
        for i in range(options.rounds):
            rounds.append(run_round(options.build, options.model, options.threads, folder,
                                    lambda words, i=i: say(f"round {i + 1} of {options.rounds}: {words}")))
    return rounds


def main(arguments):
    options = parse(arguments)
    start = time.monotonic()
    rounds = measured(options)
    kind, now = setting(rounds, options.model), ratios(rounds)
    stored = stored_for(options.stored, kind)
    lines = compared(now, stored or {})
    print(f"{kind['threads']} threads of {kind['cpu']} ({kind['isa']}), {kind['model']}, {time.monotonic() - start:.0f} s\n")
    print(table(lines) + "\n")
    if options.store:
        path = options.stored / slug(kind)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(to_json(described(kind, rounds[0]["decode"]["knap"], now)))
        print(f"stored in {path}")
        return 0
    if stored is None:
        print(f"nothing is stored for this kind of machine ({slug(kind)}): `make bench-quick BENCH_QUICK_ARGS=--store` does that")
        return 0
    status, words = summary(lines)
    print(words)
    return status


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except (MeasureError, DataError) as error:
        sys.exit(f"bench-quick: {error}")
    except KeyboardInterrupt:
        sys.exit(130)
