"""Reads benchmark files: those of `knap bench -o FILE.json` (docs/benchmarks.md) and those of the programs in bench/
(`--json FILE`). Computes the statistics of tables and charts the way the programs do."""
import json
import math
import re
from pathlib import Path

# 97.5 % quantiles of Student's t for 1, 2, ... degrees of freedom (tools/measure/statistics.cpp).
STUDENT_T = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201)

# Settings of `knap bench` as flags, in the order in which `knap report` prints them (cli/report/rerun.cpp).
FLAGS = {"data": "--data", "depths": "-d", "strategies": "--strategies", "n_predict": "-n", "limit": "--limit",
         "skip": "--skip", "max_prompt_tokens": "--max-prompt-tokens", "repeat": "--repeat", "threads": "-t", "n_ctx": "-c",
         "adapter": "--adapter", "cache_type_k": "-ctk", "cache_type_v": "-ctv", "kernels": "--kernels",
         "assume_acceptance": "--assume-acceptance", "peer": "--peer"}
SAMPLING_FLAGS = {"temperature": "--temp", "top_k": "--top-k", "top_p": "--top-p", "min_p": "--min-p",
                  "seed": "--seed", "acceptance": "--acceptance"}


PLAIN, PEER = "autoregressive", "llama"  # strategies of rows: plain decoding as its own control, libllama
# A prompt loops when fewer of its answer's runs of three tokens are distinct (docs/methods.md, "Text that loops").
LOOPS_BELOW = 0.5
# What `knapspec` could have been in hindsight, beside plain decoding: copies alone, and windows that never change.
SIMPLE = re.compile(r"lookup|static/\d+/a=w\d+\+\d+")


class DataError(Exception):
    """A message of one line that begins with the file at fault."""


def load(path):
    """The content of a data file, plus its file name as `name`."""
    try:
        data = json.loads(Path(path).read_text())
    except OSError:
        raise DataError(f"{path}: expected a data file, found none") from None
    except ValueError as error:
        raise DataError(f"{path}: expected JSON: {error}") from None
    if not isinstance(data, dict) or data.get("format") != 1 or not data.get("rows"):
        raise DataError(f"{path}: expected `format` 1 and `rows`, found neither")
    if data.get("is_complete") is False:
        raise DataError(f"{path}: expected a complete benchmark, found an interrupted one: continue with --resume")
    return {**data, "name": Path(path).name}


def quantile(values, q):
    values = sorted(values)
    place = q * (len(values) - 1)
    below = int(place)
    above = min(below + 1, len(values) - 1)
    return values[below] + (values[above] - values[below]) * (place - below)


def median(values):
    return quantile(values, 0.5)


def spread(values):
    """Half the distance between the quartiles, relative to the median."""
    return (quantile(values, 0.75) - quantile(values, 0.25)) / 2 / median(values)


def geometric_mean(ratios):
    """The mean, and the ends of its 95 % interval (None with a single value)."""
    logs = [math.log(ratio) for ratio in ratios]
    n = len(logs)
    mean = sum(logs) / n
    if n < 2:
        return math.exp(mean), None, None
    freedom = n - 1
    t = STUDENT_T[freedom - 1] if freedom <= len(STUDENT_T) else 1.960 + 2.372 / freedom + 2.823 / freedom**2
    half = t * math.sqrt(sum((log - mean) ** 2 for log in logs) / freedom / n)
    return math.exp(mean), math.exp(mean - half), math.exp(mean + half)


def paired_ratios(numerators, denominators):
    """Ratios of runs that took turns: what slows the machine for a while slows both sides of a pair."""
    return [a / b for a, b in zip(numerators, denominators, strict=True)]


def is_bench(data):
    """True for files of `knap bench`, False for those of a program in bench/."""
    return "settings" in data


def shell_word(text):
    return text if re.fullmatch(r"[A-Za-z0-9_\-+=./,:@%]+", text) else "'" + text.replace("'", "'\\''") + "'"


def flag_text(value):
    if isinstance(value, list):
        joined = ",".join(flag_text(element) or "0" for element in value)
        return "" if joined == "built-in" else joined
    if value is None or value == 0:
        return ""
    return value if isinstance(value, str) else json.dumps(value)


def command(data):
    """The command line that repeats the measurement."""
    if not is_bench(data):
        return data["command"]
    settings = data["settings"]
    flags = FLAGS | (SAMPLING_FLAGS if settings["temperature"] > 0 else {})
    words = {name: f"{flag} {shell_word(flag_text(settings[name]))}" for name, flag in flags.items()
             if flag_text(settings.get(name))}
    parallel = settings.get("parallel", 1)
    switches = [f"--parallel {parallel}"] if parallel > 1 else []
    switches += ["--exact off"] if settings.get("exact") is False else []
    switches += ["--fresh-strategies"] if settings.get("fresh_strategies") is True else []
    switches += ["--profile none"] if settings.get("profile") is False else []
    switches += ["--memory on"] if settings.get("memory") is True else []
    settings_of_cell = re.match(r"(?:[A-Z_]+=\S+ )*", data.get("cell", {}).get("command", ""))[0]
    return " ".join([f"{settings_of_cell}knap bench -m", shell_word(data["model"]["file"]),
                     *(text for name, text in words.items() if name in FLAGS), *switches,
                     *(text for name, text in words.items() if name in SAMPLING_FLAGS),
                     "-o", shell_word(data["name"])])


def machine(data):
    """The device that computed: "2 threads of Intel Xeon (avx512)", "NVIDIA H200"."""
    host = data["host"]
    if data["device"] != host["cpu"]:
        return data["device"]
    n_threads = data["settings"]["threads"] if is_bench(data) else data["threads"]
    name = re.sub(r"\((R|TM)\)", "", host["cpu"])
    return f"{n_threads} thread{'s' * (n_threads != 1)} of {' '.join(name.split())} ({host['isa']})"


def models(data):
    return [data["model"]["file"]] if is_bench(data) else [model["file"] for model in data["models"]]


def rows_of(data, what):
    """Rows of a program in bench/ whose field `what` has this value."""
    rows = [row for row in data["rows"] if row.get("what") == what]
    if not rows:
        raise DataError(f"{data['name']}: expected rows of `what` \"{what}\", found none")
    return rows


def best_peer(row):
    """The times of libllama's faster flash attention setting in a row of decode_bench."""
    peers = [times for name, times in row["times_ms"].items() if name.startswith("llama")]
    if not peers:
        raise DataError("a row of decode_bench: expected times of llama, found none")
    return min(peers, key=median)


def prompt_key(row):
    """Identifies the prompt of a row among the rows of several files."""
    return row["data"], row["id"], row["depth"], row["n_prompt"]


def distinct_trigrams(rows):
    """The median over rows; None when a row does not tell."""
    shares = [row.get("distinct_trigrams") for row in rows]
    return None if None in shares or not shares else median(shares)


def without_loops(rows):
    """The rows of prompts that plain decoding answers without a loop; none when that is not known."""
    shares = {prompt_key(row): row.get("distinct_trigrams") for row in rows if row["strategy"] == PLAIN}
    return [row for row in rows if (shares.get(prompt_key(row)) or 0) >= LOOPS_BELOW]


def hindsight(rows):
    """The simple way that is fastest on these prompts together, its mean speed over plain decoding, and the speed of
    `knapspec` over it with its interval; None without rows of `knapspec` and of `lookup`."""
    speeds = {}
    for row in rows:
        if row["strategy"] == "knapspec" or SIMPLE.fullmatch(row["strategy"]):
            speeds.setdefault(row["strategy"], {})[prompt_key(row)] = row["speedup"]["mean"]
    ours = speeds.pop("knapspec", {})
    if not ours or "lookup" not in speeds:
        return None
    ways = {PLAIN: dict.fromkeys(ours, 1.0), **{name: found for name, found in speeds.items() if found.keys() >= ours.keys()}}
    means = {name: geometric_mean([found[key] for key in ours])[0] for name, found in ways.items()}
    best = max(means, key=means.get)
    return best, means[best], geometric_mean([speed / ways[best][key] for key, speed in ours.items()])


def paired_speed(rows, ours, theirs):
    """The speed of one strategy over that of another on the same prompts, with its interval; None without both."""
    speeds = {name: {prompt_key(row): row["speedup"]["mean"] for row in rows if row["strategy"] == name} for name in (ours, theirs)}
    keys = [key for key in speeds[ours] if key in speeds[theirs]]
    return geometric_mean([speeds[ours][key] / speeds[theirs][key] for key in keys]) if keys else None


def request_speedup(row, prefill_ms):
    """The whole request over that of plain decoding, which reads the prompt in `prefill_ms`."""
    if "request_speedup" in row:
        return row["request_speedup"]["mean"]
    return geometric_mean([(prefill_ms + turn["plain_ms"]) / (row["prefill_ms"] + turn["decode_ms"])
                           for turn in row["turns"]])[0]


def request_speedups(rows, strategy):
    """One speed-up of whole requests per row of `strategy`. `rows` has the rows of plain decoding too."""
    prefills = {prompt_key(row): row["prefill_ms"] for row in rows if row["strategy"] == PLAIN}
    return [request_speedup(row, prefills.get(prompt_key(row), row["prefill_ms"]))
            for row in rows if row["strategy"] == strategy]


def request_seconds(row):
    """Reading the prompt and decoding the answer; the geometric mean over the turns."""
    return geometric_mean([(row["prefill_ms"] + turn["decode_ms"]) / 1000 for turn in row["turns"]])[0]


def context_groups(files):
    """(length, rows) in ascending order: a group per file of `knap bench`, or per depth in files of synthetic prompts.
    The length is the limit that prompts were cut at, or the depth."""
    groups = []
    for file in files:
        for depth in sorted({row["depth"] for row in file["rows"] if row["depth"] is not None}) or [None]:
            rows = [row for row in file["rows"] if row["depth"] == depth]
            longest = max(row["n_prompt"] for row in rows)
            groups.append((depth or file["settings"]["max_prompt_tokens"] or longest, rows))
    return sorted(groups, key=lambda group: group[0])


def summary(rows):
    """Totals over rows of one strategy, as `knap bench` computes them (tools/measure/report/bench_summary.cpp). A single
    row keeps the interval over its turns, as in `knap report` (cli/report/series.h)."""
    n_drafted = sum(row["n_drafted"] for row in rows)
    n_rounds = sum(row["rounds"] for row in rows)
    n_tokens = sum(row["rounds"] * row["mean_accepted_length"] for row in rows)
    speedups = [row["speedup"]["mean"] for row in rows]
    single = rows[0]["speedup"]
    return {"speedup": geometric_mean(speedups) if len(rows) > 1 else (single["mean"], single["low"], single["high"]),
            "lowest": min(speedups),
            "tokens_per_second": geometric_mean([row["tokens_per_second"] for row in rows])[0],
            "acceptance_rate": sum(row["n_accepted"] for row in rows) / n_drafted if n_drafted else None,
            "mean_accepted_length": n_tokens / n_rounds if n_rounds else None}
