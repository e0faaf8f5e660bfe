"""The report: a Markdown table and a JSON file, with the machine and the versions. docs/tables.py reads the file too, as it
reads those of `knap bench`."""
import json
import platform
import subprocess
from dataclasses import asdict
from pathlib import Path


def cpu_name():
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.machine()


def physical_cores():
    """Cores without the second threads of each, as far as the kernel says."""
    cores = {path.read_text() for path in Path("/sys/devices/system/cpu").glob("cpu[0-9]*/topology/thread_siblings_list")}
    return len(cores) or 1


def version_of(program):
    """The first line of --version that has a number. llama.cpp writes its own to standard error."""
    done = subprocess.run([program, "--version"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    lines = [line.strip() for line in done.stdout.splitlines() if any(letter.isdigit() for letter in line)]
    return next((line for line in lines if "version" in line), lines[0] if lines else "unknown")


def described(names, options):
    """What `knap bench` says about itself, the machine and the model, and the command."""
    words = ["bench", "-m", options.model, "-t", options.threads, "-d", 8, "-n", 2, "-r", 1, "--strategies", "autoregressive",
             "--profile", "none", "--json"]
    done = subprocess.run([options.knap, *map(str, words)], check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    found = json.loads(done.stdout)
    return {"format": found["format"], "program": "bench/serve/run.py", "knap": found["knap"], "command": command(names, options),
            "host": found["host"], "device": found["device"], "threads": options.threads, "models": [found["model"]]}


def command(names, options):
    """The command line that repeats the measurement, without folders."""
    parts = ["bench/serve/run.py --knap build/knap --model", Path(options.model).name, "--only", ",".join(names), "-t",
             options.threads, "--prompts", options.n_prompts, "-n", options.n_tokens, "--edits", options.n_edits, "--forms",
             options.n_forms]
    parts += ["--data", Path(options.data).name] if options.data else []
    parts += ["--peer", Path(options.peer).name] if options.peer else []
    return " ".join(map(str, parts))


def setting(options):
    versions = {"knap": version_of(options.knap)}
    if options.peer:
        versions["llama.cpp"] = version_of(options.peer)
    return {"cpu": cpu_name(), "threads": options.threads, "model": Path(options.model).name, "versions": versions,
            "client": options.client, "data": Path(options.data).name if options.data else "built-in texts",
            "n_prompts": options.n_prompts, "n_tokens": options.n_tokens}


def number(value, unit):
    return f"{value:.3g}" if unit == "x" else f"{value:.1f} {unit}"


def goal(row):
    if row.least is not None:
        return f"at least {number(row.least, row.unit)}"
    return f"at most {number(row.most, row.unit)}" if row.most is not None else ""


def markdown(setting_, rows):
    lines = ["| what | median | quartiles | n | goal | reached |", "|---|---|---|---|---|---|"]
    for row in rows:
        has_goal = row.least is not None or row.most is not None
        low, high = number(row.spread.low, row.unit), number(row.spread.high, row.unit)
        lines.append(f"| {row.what} | {number(row.spread.median, row.unit)} | {low} to {high} | {row.spread.n} | "
                     f"{goal(row)} | {('yes' if row.is_reached else 'no') if has_goal else ''} |")
    versions = ", ".join(f"{name}: {version}" for name, version in setting_["versions"].items())
    lines += ["", f"{setting_['cpu']}, {setting_['threads']} threads; {setting_['model']}; {versions}; "
              f"answers of {setting_['n_tokens']} tokens, greedy; prompts: {setting_['data']}; "
              f"client: {setting_['client']}."]
    return "\n".join(lines) + "\n"


def to_json(described_, setting_, rows):
    return described_ | {"setting": setting_, "rows": [asdict(row) | {"is_reached": row.is_reached} for row in rows]}
