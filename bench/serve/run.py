#!/usr/bin/env python3
"""Measures `knap serve`, beside llama.cpp's server where that is the question. `make bench-serve` calls it.

    bench/serve/run.py --knap build/knap --model MODEL.gguf --peer LLAMA-SERVER -o serve.json -o serve.md

Needs Python 3.11 and nothing else. With --client openai the answers are read by openai-python instead of our own
reader. Questions that need llama.cpp's server are left out without --peer."""
import argparse
import asyncio
import json
import signal
import sys
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent))
from bench import Bench, Options  # noqa: E402
from client import STREAMS  # noqa: E402
from questions import agent, first_token, idle, memory, over_peer, over_run, prediction, schema, streams  # noqa: E402
from report import described, markdown, physical_cores, setting, to_json  # noqa: E402

QUESTIONS = {"over-run": over_run, "over-peer": over_peer, "streams": streams, "first-token": first_token,
             "prediction": prediction, "schema": schema, "agent": agent, "idle": idle, "memory": memory}
NEED_PEER = {"over-peer", "streams"}
QUICK = {"n_prompts": 1, "n_tokens": 8, "n_requests": 40, "n_idle": 50, "health_s": 2.0,
         "n_edits": 2, "n_forms": 2}


def parse(arguments):
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--knap", required=True, metavar="FILE", help="the program knap")
    parser.add_argument("--model", required=True, metavar="FILE", help="model in GGUF format")
    parser.add_argument("--peer", metavar="FILE", help="llama.cpp's llama-server")
    parser.add_argument("--only", action="append", metavar="NAME,...", help=f"questions: {', '.join(QUESTIONS)}")
    parser.add_argument("--data", metavar="FOLDER", help="prompts as JSON Lines (default: the texts of `knap bench`)")
    parser.add_argument("--client", choices=STREAMS, default="own", help="who reads the streams (default: own)")
    parser.add_argument("-t", "--threads", type=int, default=physical_cores(), help="default: one per physical core")
    parser.add_argument("--prompts", dest="n_prompts", type=int, default=6, help="prompts a question (default: 6)")
    parser.add_argument("-n", "--tokens", dest="n_tokens", type=int, default=128, help="tokens an answer (default: 128)")
    parser.add_argument("--requests", dest="n_requests", type=int, default=10_000, help="of `memory` (default: 10000)")
    parser.add_argument("--connections", dest="n_idle", type=int, default=500, help="of `idle` (default: 500)")
    parser.add_argument("--seconds", dest="health_s", type=float, default=20, help="of `idle` (default: 20)")
    parser.add_argument("--edits", dest="n_edits", type=int, default=10, help="turns of `agent` (default: 10)")
    parser.add_argument("--forms", dest="n_forms", type=int, default=20, help="requests of `agent` (default: 20)")
    parser.add_argument("--quick", action="store_true", help="tiny sizes: shows that everything works, measures nothing")
    parser.add_argument("-o", "--output", action="append", default=[], metavar="FILE", help="FILE.json or FILE.md")
    found = parser.parse_args(arguments)
    names = [name for text in found.only or [] for name in text.split(",")] or list(QUESTIONS)
    for name in names:
        if name not in QUESTIONS:
            parser.error(f"--only: expected {', '.join(QUESTIONS)}, found '{name}'")
    values = vars(found) | (QUICK if found.quick else {})
    options = Options(**{name: values[name] for name in Options.__dataclass_fields__})
    return names, options, found.output


def write(outputs, described_, setting_, rows):
    for output in outputs:
        text = (json.dumps(to_json(described_, setting_, rows), indent=1) + "\n" if output.endswith(".json")
                else markdown(setting_, rows))
        Path(output).write_text(text, encoding="utf-8")


async def main(arguments):
    names, options, outputs = parse(arguments)
    bench = Bench(options)
    setting_ = setting(options)
    described_ = described(names, options)
    rows = []
    n_failed = 0
    for name in names:
        if name in NEED_PEER and not options.peer:
            bench.note(f"{name}: left out, because it needs --peer")
            continue
        bench.note(name)
        try:
            rows += await QUESTIONS[name].measure(bench)
        except Exception as error:  # the other questions still count
            bench.note(f"{name}: error: {error!r}")
            n_failed += 1
        write(outputs, described_, setting_, rows)
    print(markdown(setting_, rows), end="")
    return 1 if n_failed else 0


if __name__ == "__main__":
    # Also stops the servers.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    sys.exit(asyncio.run(main(sys.argv[1:])))
