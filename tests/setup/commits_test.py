#!/usr/bin/env python3
"""Checks the subjects of commits since this file was added: `folder: what changes`, within 72 characters.
commits_test.py ROOT checks a checkout; without an argument the script tests itself."""
import re
import subprocess
import sys

MAX_LENGTH = 72


def faults(subjects):
    for subject in subjects:
        if len(subject) > MAX_LENGTH:
            yield f"expected a subject of at most {MAX_LENGTH} characters, found {len(subject)}: {subject}"
        if not re.match(r"[a-z0-9_.,/ -]+: \S", subject):
            yield f"expected a subject such as `graph: what changes`, found: {subject}"


def git(root, *arguments):
    result = subprocess.run(["git", "-C", root, *arguments], capture_output=True, text=True)
    return result.stdout.split("\n")[:-1] if result.returncode == 0 else []


def new_subjects(root):
    """Empty in a copy without history."""
    first = git(root, "log", "--diff-filter=A", "--format=%H", "--", "tests/setup/commits_test.py")
    return git(root, "log", "--no-merges", "--format=%s", f"{first[-1]}..HEAD") if first else []


def test_faults():
    assert not list(faults(["graph: reuse built graphs", "src/kv, tests: x", "x: " + 69 * "y"]))
    assert len(list(faults(["x: " + 70 * "y", "Reuse graphs", "graph:", "WIP"]))) == 4


if len(sys.argv) < 2:
    test_faults()
    sys.exit(0)
found = list(faults(new_subjects(sys.argv[1])))
print("\n".join(found) or "no faults")
sys.exit(bool(found))
