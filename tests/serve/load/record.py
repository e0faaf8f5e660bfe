"""The result of a run, as JSON and as Markdown."""
import json
from dataclasses import asdict
from pathlib import Path

from spread import quantile

N_SAMPLES = 360   # in the file


def latencies(samples):
    """Median, 95th percentile and maximum of every time that was taken, in milliseconds."""
    found = {}
    for name in ("health_ms", "probe_ms"):
        values = [sample[name] for sample in samples if sample[name] is not None]
        if values:
            found[name] = {"n": len(values), "median": quantile(values, 0.5), "p95": quantile(values, 0.95), "max": max(values)}
    return found


def to_json(setting, load, samples, checks):
    seen = load.seen
    step = -(-len(samples) // N_SAMPLES) or 1
    return {"format": 1, "program": "tests/serve/load/run"} | setting | {
        "is_right": all(check.is_right for check in checks), "strategies": load.strategies, "questions": len(load.questions),
        "visits": dict(seen.visits), "answered_requests": seen.n_requests_answered, "ended": dict(seen.ended),
        "refused": {str(status): n for status, n in sorted(seen.refused.items())}, "left_requests": seen.n_left_requests,
        "late_requests": seen.n_late,
        "tokens": {"prompt": seen.n_prompt, "cached": seen.n_cached, "generated": seen.n_generated},
        "latencies": latencies(samples), "checks": [asdict(check) for check in checks], "n_faults": load.n_faults,
        "faults": load.faults, "samples": samples[::step]}


def table(head, rows):
    lines = ["| " + " | ".join(head) + " |", "| " + " | ".join("---" for _ in head) + " |"]
    return "\n".join(lines + ["| " + " | ".join(map(str, row)) + " |" for row in rows])


def markdown(record):
    number = "{:,}".format
    seconds = f"{number(round(record['seconds']))} s" + (" (interrupted)" if record["is_interrupted"] else "")
    refused = ", ".join(f"{number(n)} with {status}" for status, n in record["refused"].items())
    text = [f"{seconds} on {record['host']['n_cpus']} cores of {record['host']['cpu']}; {record['model']}; knap {record['knap']}; "
            f"`{record['command']}`.", "",
            f"{number(record['answered_requests'])} requests were answered with {number(sum(record['ended'].values()))} texts and "
            f"{number(record['tokens']['generated'])} tokens, {number(sum(record['refused'].values()))} were refused ({refused}), "
            f"and of {number(record['left_requests'])} the client left.", "",
            table(["check", "found", "expected", "right"],
                  [(check["what"], check["found"], check["expected"], "yes" if check["is_right"] else "**no**")
                   for check in record["checks"]]), "",
            table(["clients", "visits"], [(name.replace("_", " "), number(n)) for name, n in sorted(record["visits"].items())]), "",
            table(["ms", "n", "median", "95th percentile", "maximum"],
                  [(name, number(one["n"]), f"{one['median']:.1f}", f"{one['p95']:.1f}", f"{one['max']:.1f}")
                   for name, one in record["latencies"].items()])]
    return "\n".join(text) + "\n"


def write(record, paths):
    for path in map(Path, paths):
        if path.suffix == ".md":
            path.write_text(markdown(record))
        else:
            path.write_text(json.dumps(record, ensure_ascii=False, separators=(",", ":")) + "\n")
