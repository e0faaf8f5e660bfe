#!/usr/bin/env python3
"""Measures the cells behind the documentation's tables (docs/cells.py) into docs/results/data. `make results` calls it.

    docs/measure.py --model FILE --data FOLDER           all cells of the CPU, one after the other
    docs/measure.py ... --cells 'cpu-parts-*,cpu-tasks'  some of them
    docs/measure.py ... --part 2/3                       the second of three equal shares, for three machines
    docs/measure.py --list                               every cell, and whether it is measured

A cell is left alone when its file is there and was made by the same command. Ctrl-C stops; the same command goes on, for
`knap bench` after the last whole prompt. A file appears when its cell is whole: what is unfinished is in OUT/.partial.

A cell with a first run begins with what that run learned: both have a new cache folder of their own. Such a cell is measured
in one piece: what was learned in an unfinished one is gone.

Cells of `knap bench` take 2 turns, and then as many as it takes (8 at most) for plain decoding to be level with itself
within 3 %: both ends of the 95 % interval over prompts."""
import argparse
import fnmatch
import json
import math
import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.dont_write_bytecode = True
import bench_data as data  # noqa: E402
import cells as evidence  # noqa: E402
from bench_data import DataError  # noqa: E402

FEWEST_TURNS, MOST_TURNS = 2, 8
LEVEL_WITHIN = 0.03
INTERRUPTED = 130  # exit code


def say(text):
    print(f"results: {text}", file=sys.stderr, flush=True)


def duration(seconds):
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes // 60} h {minutes % 60:02d} min" if minutes >= 60 else f"{minutes} min"


def unevenness(file):
    """How far from 1 the interval of plain decoding against itself reaches; over turns where there is one prompt."""
    control = [row for row in file["rows"] if row["strategy"] == data.PLAIN]
    _, low, high = data.summary(control)["speedup"]
    return math.inf if low is None else max(1 - low, high - 1)


def turns_needed(n_turns, found):
    """An interval over turns is as wide as the inverse of the root of their number."""
    wanted = math.ceil(n_turns * (found / LEVEL_WITHIN) ** 2) if math.isfinite(found) else MOST_TURNS
    return min(max(wanted, n_turns + 1), MOST_TURNS)


class Stopped(Exception):
    """By the user."""


class Failed(Exception):
    """A program ended with an error, which it has shown."""


class Child:
    """The running program. It is in a session of its own, so a Ctrl-C reaches it once, from here."""

    def __init__(self, root):
        self.root = root
        self.process = None
        self.is_stopped = False
        for name in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(name, self.stop)

    def stop(self, *_):
        self.is_stopped = True
        if self.process:
            self.process.send_signal(signal.SIGINT)

    def run(self, words, environment):
        if self.is_stopped:
            raise Stopped
        try:
            self.process = subprocess.Popen(words, cwd=self.root, env=environment, stdin=subprocess.DEVNULL,
                                            start_new_session=True)
        except OSError as error:
            raise Failed(f"{words[0]} cannot be started: {error.strerror}") from error
        if self.is_stopped:  # before there was a process to tell
            self.stop()
        status = self.process.wait()
        self.process = None
        if self.is_stopped:
            raise Stopped
        if status:
            raise Failed(f"{words[0]} ended with {f'exit code {status}' if status > 0 else f'signal {-status}'}")


class Unfinished:
    """The file of a cell until it is whole, and notes beside it. What another command wrote is removed."""

    def __init__(self, cell, folder):
        self.path, self.notes = folder / cell.file, folder / f"{cell.name}.notes"
        self.commands, self.n_turns, self.seconds = cell.commands, FEWEST_TURNS, 0
        try:
            notes = json.loads(self.notes.read_text())
        except (OSError, ValueError):
            notes = {}
        if cell.wrote(notes):
            self.n_turns, self.seconds = notes["n_turns"], notes["seconds"]
        else:
            self.path.unlink(missing_ok=True)
        self.keep()

    def keep(self, **changed):
        vars(self).update(changed)
        self.notes.write_text(json.dumps({**self.commands, "n_turns": self.n_turns, "seconds": self.seconds}))


class Campaign:
    def __init__(self, options):
        self.options = options
        self.out = options.out
        self.partial = options.out / ".partial"
        self.child = Child(options.root)

    def replaced(self, word):
        places = {"DATA": self.options.data, "MODEL": self.options.model, "MODELS": self.options.models}
        word = re.sub(r"\$([A-Z]+)", lambda found: str(places[found[1]]), word)
        return re.sub(r"^OUT/", lambda _: f"{self.partial}/", word)

    def words(self, command):
        """The command's words, and what it adds to the environment."""
        words = shlex.split(command)
        n_settings = next(i for i, word in enumerate(words) if not re.match(r"[A-Z_]+=", word))
        added = dict(word.split("=", 1) for word in words[:n_settings])
        threads = {"knap": ["-t"], "decode_bench": ["--threads"], "verify_bench": ["--threads"],
                   "draft_bench": ["--threads"], "run.py": ["-t"]}.get(Path(words[n_settings]).name)
        words = [self.replaced(word) for word in words[n_settings:]]
        if self.options.threads and threads and "--threads" not in words:
            words += [*threads, str(self.options.threads)]
        return words, added

    def why_not(self, cell):
        """What a cell needs and is not there; None when it can be measured."""
        commands = f"{cell.first} {cell.command} "
        if "$DATA" in commands and not self.options.data:
            return "expected DATA=FOLDER with prompts (docs/benchmarks.md), found none"
        if "$MODEL " in commands and not self.options.model:
            return "expected --model FILE, the default model (deps/setup model-path), found none"
        for program in re.findall(r"(?:^| )(build\S*/\S+)", commands):
            if not (self.options.root / program).exists():
                return f"expected the program {program}, found none ({self.how_to_build(program)})"
        knap = self.knap(cell)
        if "$MODELS" in commands and not (self.options.root / knap).exists():
            return f"expected the program {knap} to write models, found none ({self.how_to_build(knap)})"
        places = [self.replaced(word) for word in re.findall(r"\$DATA/[\w.-]+|\$MODEL(?!S)", commands)]
        for place in [*places, *re.findall(r"models/\S+\.gguf", commands.replace("$MODELS/", ""))]:
            if not (self.options.root / place).exists():
                return f"expected the file {place}, found none"
        return None

    @staticmethod
    def knap(cell):
        return "build-cuda/knap" if cell.device == "gpu" else "build/knap"

    @staticmethod
    def how_to_build(program):
        return "make CUDA=1" if program.startswith("build-cuda") else "make"

    def record(self, cell):
        """What an earlier run said about the file of a cell; {} when it is not there or from elsewhere."""
        try:
            return json.loads((self.out / cell.file).read_text()).get("cell", {})
        except (OSError, ValueError):
            return {}

    def state(self, cell):
        path = self.out / cell.file
        if path.exists():
            record = self.record(cell)
            if cell.wrote(record):
                return "measured"
            return "of another command" if "command" in record else "of an unknown command"
        return "begun" if (self.partial / cell.file).exists() else "missing"

    def write_models(self, cell):
        for name in re.findall(r"\$MODELS/(\S+)", cell.command):
            path = self.options.models / name
            if not path.exists():
                say(f"writing {path}")
                self.options.models.mkdir(parents=True, exist_ok=True)
                unfinished = path.with_suffix(".part")
                self.child.run([self.knap(cell), "make-model", *shlex.split(evidence.MODELS[name]), "-o", str(unfinished)],
                               os.environ)
                unfinished.rename(path)

    def measure(self, cell):
        """Writes the cell's file. Returns what it records about the measurement."""
        self.partial.mkdir(parents=True, exist_ok=True)
        self.write_models(cell)
        unfinished = Unfinished(cell, self.partial)
        if cell.first:
            unfinished.path.unlink(missing_ok=True)
        begin = time.monotonic()
        try:
            file = self.repeated(cell, unfinished) if cell.repeats else self.once(cell, unfinished.path)
        finally:
            unfinished.keep(seconds=unfinished.seconds + round(time.monotonic() - begin))
        record = {**cell.commands, "seconds": unfinished.seconds}
        if cell.repeats:
            record["unevenness"] = round(unevenness(file), 4)
        file.pop("name")
        unfinished.path.write_text(json.dumps({**file, "cell": record}, separators=(",", ":"), ensure_ascii=False))
        os.replace(unfinished.path, self.out / cell.file)
        unfinished.notes.unlink()
        return record

    def start(self, cell, more=()):
        """Runs the cell's command, after its first run where it has one."""
        with tempfile.TemporaryDirectory(prefix="knap-results-") as folder:
            environment = {**os.environ, **({"KNAP_CACHE_DIR": folder} if cell.first else {})}
            for command in filter(None, (cell.first, cell.command)):
                words, added = self.words(command)
                self.child.run([*words, *(more if command == cell.command else ())], {**environment, **added})

    def once(self, cell, path):
        self.start(cell)
        return data.load(path)

    def repeated(self, cell, unfinished):
        path = unfinished.path
        while True:
            n_turns = unfinished.n_turns
            self.start(cell, ["-r", str(n_turns), *(["--resume", str(path)] if path.exists() else [])])
            file = data.load(path)
            found = unevenness(file)
            if found <= LEVEL_WITHIN or n_turns >= MOST_TURNS:
                return file
            path.unlink()
            unfinished.keep(n_turns=turns_needed(n_turns, found))
            say(f"{cell.name}: plain decoding is level with itself within {100 * found:.1f} % after {n_turns} turns; "
                f"measuring {unfinished.n_turns}")

    def run(self, chosen):
        """Measures the cells that are not measured yet. Returns the exit code."""
        todo = [cell for cell in chosen if self.state(cell) != "measured"]
        if len(todo) < len(chosen):
            say(f"{len(chosen) - len(todo)} of {len(chosen)} cells are measured already")
        n_failed = 0
        reasons = {cell.name: self.why_not(cell) for cell in todo}
        for reason in dict.fromkeys(filter(None, reasons.values())):
            names = [name for name, other in reasons.items() if other == reason]
            say(f"left out {', '.join(names[:3])}{f' and {len(names) - 3} more' if len(names) > 3 else ''}: {reason}")
            n_failed += len(names)
        todo = [cell for cell in todo if not reasons[cell.name]]
        begin, seconds = time.monotonic(), []
        for i, cell in enumerate(todo):
            used = time.monotonic() - begin
            say(f"cell {i + 1} of {len(todo)}: {cell.name}; {duration(used)} used, {self.estimate(todo[i:], seconds)}")
            try:
                record = self.measure(cell)
            except Stopped:
                say(f"stopped in {cell.name}; the same command goes on there")
                return INTERRUPTED
            except (Failed, DataError) as error:
                n_failed += 1
                unfinished = self.partial / cell.file
                hint = f" (to begin it again, delete {unfinished})" if unfinished.exists() else ""
                say(f"{cell.name} failed: {error}{hint}")
                continue
            seconds.append(record["seconds"])
        if self.partial.is_dir() and not any(self.partial.iterdir()):
            self.partial.rmdir()
        say(f"measured {len(seconds)} of {len(seconds) + n_failed} cells into {self.out}")
        return 1 if n_failed else 0

    def estimate(self, rest, seconds):
        """From the times of an earlier run, and for cells without one from the mean of this one."""
        known = [self.record(cell).get("seconds") for cell in rest]
        times = seconds + [of_cell for of_cell in known if of_cell is not None]
        if not times:
            return "the rest is not known yet"
        mean = sum(times) / len(times)
        return f"about {duration(sum(mean if of_cell is None else of_cell for of_cell in known))} left"

    def print_list(self, chosen):
        for cell in chosen:
            why = self.why_not(cell) if self.state(cell) != "measured" else None
            print(f"{cell.name}: {self.state(cell)}{f'; {why}' if why else ''}")
            for command in cell.commands.values():
                print(f"    $ {command}")


def select(options):
    """The cells that the options name, in order."""
    if not options.cells:
        named = [cell for cell in evidence.CELLS if cell.device == options.device]
    else:
        patterns = [pattern for text in options.cells for pattern in text.split(",")]
        for pattern in patterns:
            if not any(fnmatch.fnmatch(cell.name, pattern) for cell in evidence.CELLS):
                raise DataError(f"--cells: expected a cell of --list, found {pattern}")
        named = [cell for cell in evidence.CELLS if any(fnmatch.fnmatch(cell.name, pattern) for pattern in patterns)]
    part, n_parts = options.part
    return named[part - 1::n_parts]


def part_from(text):
    found = re.fullmatch(r"(\d+)/(\d+)", text)
    if not found or not 1 <= int(found[1]) <= int(found[2]):
        raise argparse.ArgumentTypeError(f"expected a part such as 2/3, found {text}")
    return int(found[1]), int(found[2])


def parse(arguments):
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--model", type=Path, metavar="FILE", help="the default model")
    parser.add_argument("--data", type=Path, metavar="FOLDER", help="prompts as JSON Lines (docs/benchmarks.md)")
    parser.add_argument("--cells", action="append", metavar="NAME,...", help="cells to measure, * for any letters")
    parser.add_argument("--part", type=part_from, default=(1, 1), metavar="I/N", help="every Nth cell from the Ith on")
    parser.add_argument("--device", choices=("cpu", "gpu"), default="cpu", help="the cells without --cells (cpu)")
    parser.add_argument("-t", "--threads", type=int, metavar="N", help="threads of cells that name none")
    parser.add_argument("--out", type=Path, metavar="FOLDER", help="for the data files (docs/results/data)")
    parser.add_argument("--models", type=Path, metavar="FOLDER", help="for models with random weights (build/models)")
    parser.add_argument("--list", action="store_true", help="list the cells and change nothing")
    parser.add_argument("--root", type=Path, default=Path(__file__).resolve().parent.parent, help="the checkout")
    options = parser.parse_args(arguments)
    options.out = options.out or options.root / "docs/results/data"
    options.models = options.models or options.root / "build/models"
    for name in ("model", "data", "out", "models", "root"):
        if getattr(options, name):
            setattr(options, name, getattr(options, name).resolve())
    return options


def main(arguments):
    options = parse(arguments)
    try:
        chosen = select(options)
    except DataError as error:
        say(f"error: {error}")
        return 2
    campaign = Campaign(options)
    if options.list:
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # a reader may stop early
        campaign.print_list(chosen)
        return 0
    return campaign.run(chosen)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
