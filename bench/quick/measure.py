"""Runs the programs of bench/ and `knap bench`, and takes from their files the ratios that may not rot. Each is a speed over
another that was measured beside it, so that more is better and the speed of the machine cancels."""
import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(1, str(Path(__file__).resolve().parents[2] / "docs"))
from bench_data import DataError, best_peer, load, median, paired_ratios, rows_of, spread  # noqa: E402

DEPTHS = (16, 2048)
PREFILL = 512
ROWS = ("4", "8")
# Of the texts built into `knap bench`: words to repeat, a translation, and a question about a long diary.
TEXTS = ["--skip", "5", "--limit", "3"]
N_TOKENS = 96    # of each answer
N_TURNS = 3      # of `knap bench`
N_ROUNDS = 3     # of all programs: pauses between them show what one start of a program does not


class MeasureError(Exception):
    """A message of one line."""


@dataclass(frozen=True)
class Ratio:
    """The median of `n` ratios, and half the distance between their quartiles, relative to it."""
    median: float
    spread: float
    n: int


def programs(build, model, threads):
    """The command lines of a round, by the name of the file that each writes."""
    depths = ",".join(map(str, DEPTHS))
    common = [model, "--threads", str(threads)]

    def verify(cache):
        return [f"{build}/verify_bench", *common, "--cache", cache, "--depths", depths, "--json"]
    return {"decode": [f"{build}/decode_bench", *common, "--prefill", str(PREFILL), "--depths", depths, "--json"],
            "rows-f16": verify("f16"), "rows-q8_0": verify("q8_0"),
            "texts": [f"{build}/knap", "bench", "-m", model, "-t", str(threads), *TEXTS, "-n", str(N_TOKENS), "-r", str(N_TURNS),
                      "--strategies", "knapspec", "--profile", "none", "-o"]}


def run_round(build, model, threads, folder, say):
    """Runs every program, and returns the content of their files by name."""
    files = {}
    for name, command in programs(build, model, threads).items():
        path = Path(folder) / f"{name}.json"
        path.unlink(missing_ok=True)
        say(f"{Path(command[0]).name} ({name})")
        try:
            done = subprocess.run([*command, str(path)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        except OSError as error:
            raise MeasureError(f"{command[0]}: expected a program of the build: {error.strerror}") from None
        if done.returncode != 0:
            last = (done.stderr.strip() or done.stdout.strip() or "nothing").splitlines()[-1]
            raise MeasureError(f"{Path(command[0]).name}: expected exit code 0, found {done.returncode}: {last}")
        files[name] = load(path)
    return files


def _peer_ratios(data):
    for what in ("prefill", "decode"):
        for row in rows_of(data, what):
            name = f"{what} of {row['depth']}" if what == "prefill" else f"decoding at {row['depth']}"
            yield f"{name}, knap / libllama", paired_ratios(best_peer(row), row["times_ms"]["knap"])


def _row_ratios(data):
    for row in rows_of(data, "verify"):
        times = row["times_ms"]
        for n_rows in ROWS:
            ratios = paired_ratios(times["1"], times[n_rows])
            yield f"{n_rows} rows at {row['depth']}, together / one by one", [int(n_rows) * ratio for ratio in ratios]


def _cache_ratios(f16, int8):
    """Of two processes, so their medians count."""
    for first, second in zip(rows_of(f16, "verify"), rows_of(int8, "verify"), strict=True):
        yield f"a row at {first['depth']}, int8 / f16 cache", [median(first["times_ms"]["1"]) / median(second["times_ms"]["1"])]


def _text_ratios(data):
    for row in data["rows"]:
        if row["strategy"] == "knapspec":
            turns = row["turns"]
            yield (f"text {row['id']}, knapspec / plain",
                   [turn["plain_ms"] / turn["decode_ms"] for turn in turns])


def ratios(rounds):
    """Every ratio by its name, over the runs of all rounds."""
    found = {}
    for files in rounds:
        for part in (_peer_ratios(files["decode"]), _row_ratios(files["rows-f16"]),
                     _cache_ratios(files["rows-f16"], files["rows-q8_0"]), _text_ratios(files["texts"])):
            for name, values in part:
                found.setdefault(name, []).extend(values)
    return {name: Ratio(round(median(values), 4), round(spread(values), 4), len(values)) for name, values in found.items()}


def setting(rounds, model):
    """What ratios depend on, so that only those of the same kind are compared."""
    data = rounds[0]["decode"]
    return {"cpu": data["host"]["cpu"], "isa": data["host"]["isa"], "threads": data["threads"], "model": Path(model).name}


def to_json(values):
    return json.dumps(values, indent=1, ensure_ascii=False) + "\n"
