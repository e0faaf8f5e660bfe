#!/usr/bin/env python3
"""Checks that the library's messages name option fields, not flags, and that every such field has a flag. A ChatRequest
comes from programs, so its fields need none."""
import re
import sys
from pathlib import Path

root = Path(sys.argv[1])
headers = "".join(path.read_text() for path in (root / "include").rglob("*.h")) + (root / "tools/worker/worker.h").read_text()
flags = (root / "cli/flags/option_names.cpp").read_text()
chat_request = re.search(r"struct ChatRequest {(.*?)\n};", headers, re.DOTALL)[1]
without_flag = {"settings", *re.findall(r"(\w+)(?:{}| = \w[\w:]*);", chat_request)}
found = []
n_fields = 0
for path in sorted((root / "src").rglob("*.*")):
    for number, line in enumerate(path.read_text().split("\n"), 1):
        for literal in re.findall(r'"((?:[^"\\]|\\.)*)"', line.split("//")[0]):
            if re.search(r"(?<![\w-])--[a-z]", literal):
                found.append(f"{path}:{number}: expected a field such as `.draft_max`, found a flag in \"{literal}\"")
            for field in re.findall(r"`\.([a-z_]+)", literal):
                n_fields += 1
                if not re.search(rf"\b{field}\b", headers):
                    found.append(f"{path}:{number}: no options have a field {field}")
                if f'".{field}"' not in flags and field not in without_flag:
                    found.append(f"{path}:{number}: cli/flags/option_names.cpp has no flag for {field}")
if n_fields == 0:
    found.append("no message names a field: this test looks for the wrong thing")
print("\n".join(found) or f"{n_fields} mentions of fields, all with a flag")
sys.exit(bool(found))
