#!/usr/bin/env python3
"""What docs/stability.md promises is still there: every command and flag, every HTTP path, and every field of requests and answers that is
listed in interface.txt.

    interface_test.py ROOT KNAP            compares; new ones are no fault, until a release lists them
    interface_test.py ROOT KNAP --write    lists what there is"""
import json
import re
import subprocess
import sys
from pathlib import Path


def help_of(knap, *command):
    return subprocess.run([knap, *command, "--help"], capture_output=True, text=True, check=True).stdout


def commands(knap):
    """The names after "Commands:"."""
    listed = help_of(knap).partition("Commands:\n")[2].split("\n\n")[0]
    return re.findall(r"^  ([a-z][a-z-]*) ", listed, flags=re.MULTILINE)


def flags(text):
    """All spellings: a line that describes a flag begins with them."""
    for line in re.findall(r"^  (-.*)$", text, flags=re.MULTILINE):
        spelled = re.match(r"-[\w-]+(?:,\s*-[\w-]+)*", line)[0]
        yield from re.split(r",\s*", spelled)


def command_line(knap):
    for command in commands(knap):
        yield f"knap {command}"
        yield from (f"knap {command} {flag}" for flag in flags(help_of(knap, command)))


def properties(schema):
    """The names of fields, at any depth."""
    if isinstance(schema, list):
        for part in schema:
            yield from properties(part)
    if isinstance(schema, dict):
        for name, value in schema.items():
            if name == "properties":
                yield from value
            yield from properties(value)


def http(root):
    description = json.loads((root / "serve/api/openapi.json").read_text())
    for path, methods in description["paths"].items():
        yield from (f"{method.upper()} {path}" for method in methods if method in ("get", "post"))
    for name, schema in description["components"]["schemas"].items():
        yield from (f"field {name}.{field}" for field in properties(schema))


def main():
    root, knap = Path(sys.argv[1]), sys.argv[2]
    now = {*command_line(knap), *http(root)}
    file = root / "tests/upgrade/interface.txt"
    if "--write" in sys.argv:
        file.write_text("".join(f"{line}\n" for line in sorted(now)))
        return 0
    promised = set(file.read_text().splitlines())
    if len(promised) < 100:
        print(f"{file}: expected what is promised, found {len(promised)} lines")
        return 1
    gone = sorted(promised - now)
    print("\n".join(f"{line}: promised in {file.name}, and gone" for line in gone) or f"all {len(promised)} are there")
    return bool(gone)


if __name__ == "__main__":
    sys.exit(main())
