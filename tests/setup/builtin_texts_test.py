#!/usr/bin/env python3
"""The texts of `knap bench` are frozen, because results depend on every byte, and the program holds them unchanged.

    builtin_texts_test.py ROOT BUILD_FOLDER
"""
import hashlib
import sys
from pathlib import Path

FROZEN = {
    "document": "da906f6c2a04ebb4d9c2104a0c0af1cf82fc39640f1f6eeafa47b28f5f52c6fd",
    "source": "41886763b6f51c953e7c5984aadcf04514e016fe44b90225b69a1036db7f1697",
}

root, build = Path(sys.argv[1]), Path(sys.argv[2])
generated = (build / "generated/builtin_texts.cpp").read_bytes()
found = []
for name, expected in FROZEN.items():
    path = root / f"cli/bench/texts/{name}.txt"
    text = path.read_bytes()
    if hashlib.sha256(text).hexdigest() != expected:
        found.append(f"{path}: expected the text that results were measured with: a change needs a new file name")
    if b'builtin_%s() {\n    return R"knap-text(%s)knap-text";' % (name.encode(), text) not in generated:
        found.append(f"{path}: the program holds another text")
known = {root / f"cli/bench/texts/{name}.txt" for name in FROZEN}
found += [f"{path}: expected its checksum in this test" for path in sorted(root.glob("cli/bench/texts/*.txt")) if path not in known]
print("\n".join(found) or f"{len(FROZEN)} texts, as they were")
sys.exit(bool(found))
