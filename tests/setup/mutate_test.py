#!/usr/bin/env python3
"""Tests tests/mutate on a toy project, whose `unit_tests` is a shell script that CMake checks and copies."""
import json
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

SCRIPT = Path(__file__).resolve().parent.parent / "mutate"

CMAKE_LISTS = """
cmake_minimum_required(VERSION 3.25)
project(toy LANGUAGES NONE)
add_custom_target(unit_tests COMMAND sh -n ${PROJECT_SOURCE_DIR}/program.sh
                             COMMAND cp ${PROJECT_SOURCE_DIR}/program.sh ${PROJECT_BINARY_DIR}/unit_tests)
"""

# Has the tests Sum.IsThree and Sum.IsPositive.
PROGRAM = """#!/bin/sh
case $1 in --gtest_filter=Sum.IsThree | --gtest_filter=Sum.IsPositive) ;; *) exit 0 ;; esac
if [ "$2" = --gtest_list_tests ]; then printf 'Sum.\\n  IsSomething\\n'; exit 0; fi
sum=$((1 + 2))
[ "$1" = --gtest_filter=Sum.IsPositive ] || [ $sum -eq 3 ] || exit 1
[ $sum -gt 0 ] || exit 1
"""


def mutation(new="1 + 3", old="1 + 2", tests="Sum.IsThree", name="sum", file="program.sh"):
    return {"name": name, "file": file, "old": old, "new": new, "tests": tests, "why": "sums are right"}


class MutateTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name)
        (self.root / "tests").mkdir()
        (self.root / ".gitignore").write_text("/build/\n")
        (self.root / "CMakeLists.txt").write_text(CMAKE_LISTS)
        (self.root / "program.sh").write_text(PROGRAM)
        (self.root / "program.sh").chmod(0o755)
        subprocess.run(["git", "init", "-q", self.root], check=True)

    def mutate(self, *mutations, arguments=()):
        (self.root / "tests" / "mutations.json").write_text(json.dumps(mutations))
        done = subprocess.run([sys.executable, SCRIPT, "--root", self.root, "--timeout", "5", *arguments],
                              capture_output=True, text=True)
        return done.returncode, done.stdout + done.stderr

    def expect_error(self, message, *mutations, arguments=()):
        status, output = self.mutate(*mutations, arguments=arguments)
        self.assertEqual(status, 1)
        self.assertIn(message, output)

    def test_caught_mutations_succeed_and_leave_no_trace(self):
        status, output = self.mutate(mutation(), mutation(name="negative", new="1 - 9", tests="Sum.IsPositive"))
        self.assertEqual(status, 0, output)
        self.assertIn("2 of 2 mutations caught", output)
        self.assertEqual((self.root / "program.sh").read_text(), PROGRAM)
        self.assertEqual((self.root / "build" / "mutate" / "program.sh").read_text(), PROGRAM)

    def test_endless_test_counts_as_caught(self):
        status, output = self.mutate(mutation(new="1 + 3)); while sleep 1; do :; done; sum=$((3"),
                                     arguments=["--timeout", "1"])
        self.assertEqual(status, 0, output)

    def test_survivor_fails_the_run(self):
        self.expect_error("SURVIVED Sum.IsThree", mutation(new="2 + 1"))
        self.expect_error("SURVIVED Sum.IsPositive", mutation(tests="Sum.IsThree:Sum.IsPositive"))

    def test_mutation_that_does_not_build_fails_the_run(self):
        self.expect_error("DOES NOT BUILD", mutation(new="1 +))"))

    def test_named_tests_must_exist_and_pass_unmutated(self):
        self.expect_error("expected tests named Sum.IsFour, found none", mutation(tests="Sum.IsFour"))
        (self.root / "program.sh").write_text(PROGRAM.replace("1 + 2", "1 + 5"))
        self.expect_error("expected Sum.IsThree to pass", mutation(old="1 + 5"))

    def test_old_text_must_occur_once(self):
        self.expect_error("mutation sum: expected the old text once in program.sh, found it 0 times",
                          mutation(old="7 + 7"), arguments=["--list"])
        self.expect_error("found it 2 times", mutation(old="exit 1"))
        self.expect_error("expected a file gone.sh", mutation(file="gone.sh"))

    def test_invalid_list_is_refused(self):
        self.expect_error("expected one mutation sum, found 2", mutation(), mutation())
        self.expect_error("a different new text", mutation(new="1 + 2"))
        self.expect_error("expected texts for file", {"name": "sum"})

    def test_only_runs_the_named_mutations(self):
        both = mutation(), mutation(name="useless", new="2 + 1")
        status, output = self.mutate(*both, arguments=["--only", "sum"])
        self.assertEqual(status, 0, output)
        self.assertIn("1 of 1 mutations caught", output)
        self.expect_error("expected one of sum, useless; found other", *both, arguments=["--only", "other"])

    def test_later_run_uses_the_current_sources(self):
        self.mutate(mutation())
        (self.root / "program.sh").write_text(PROGRAM.replace("1 + 2", "2 + 1"))
        (self.root / "build" / "mutate" / "left.txt").write_text("left over")
        status, output = self.mutate(mutation(old="2 + 1"))
        self.assertEqual(status, 0, output)
        self.assertFalse((self.root / "build" / "mutate" / "left.txt").exists())


if __name__ == "__main__":
    unittest.main()
