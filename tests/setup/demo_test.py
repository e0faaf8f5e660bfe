#!/usr/bin/env python3
"""The side-by-side example colours drafted tokens, only on terminals.

    demo_test.py EXAMPLE MODEL    a model whose text repeats itself, so that lookup has something to draft"""
import os
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "docs"))
import terminal  # noqa: E402

EXAMPLE, MODEL = sys.argv[1:]
PROMPT = "Write a paragraph about the night sky."


def drawn(text):
    """The lines of the left and of the right column."""
    rows = [line.partition(" | ") for line in text.split("\n") if " | " in line]
    return [left.strip() for left, _, _ in rows], [right for _, _, right in rows]


class DemoTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        prompt = Path(folder.name) / "prompt.txt"
        prompt.write_text(PROMPT)
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})  # one thread: tests run beside this one
        cls.command = [EXAMPLE, "--strategy", "lookup", MODEL, str(prompt)]
        cls.colored = terminal.run_on_terminal(cls.command, 200)

    def test_accepted_tokens_are_green_beside_plain_text(self):
        left, right = drawn(self.colored.replace("\r\n", "\n"))
        self.assertNotIn("\033", "".join(left), "plain decoding drafts nothing")
        n_green = sum(len(piece) for piece in re.findall(r"\033\[32m(.*?)\033\[0m", "".join(right)))
        self.assertGreater(n_green, 20)
        self.assertIn("\033[33m", "".join(right), "some drafts are corrected")
        self.assertIn("\033[32mgreen\033[0m: drafted and accepted", self.colored)

    def test_colours_change_no_letter_and_columns_stay_in_line(self):
        screen = terminal.Screen(self.colored, 200).text()
        left, right = drawn(screen)
        self.assertEqual(left[1:], right[1:], "the two texts are identical, line by line")
        self.assertEqual({line.index(" | ") for line in screen.split("\n") if " | " in line}, {58})
        self.assertIn("The two texts are identical.", screen)

    def test_the_last_line_says_what_wrote_the_text(self):
        heading, line = terminal.Screen(self.colored, 200).text().rstrip().split("\n")[-2:]
        self.assertRegex(heading, r"^ *prompt +tokens +plain/s +lookup/s +faster +copies +plans +whole model$")
        found = re.search(r"prompt\.txt +\d+ +[\d.]+ +[\d.]+ +[\d.]+ +(\d+) % \((\d+) of (\d+)\) +- +(\d+) %$", line)
        copied, accepted, drafted, others = map(int, found.groups())
        self.assertAlmostEqual(copied + others, 100, delta=1)
        self.assertIn(f"{accepted} of {drafted} drafted tokens accepted", self.colored)

    def test_no_color_is_respected(self):
        self.assertNotIn("\033", terminal.run_on_terminal(self.command, 200, {"NO_COLOR": "1"}))

    def test_files_have_no_colours(self):
        environment = {name: value for name, value in os.environ.items() if name != "NO_COLOR"}
        done = subprocess.run(self.command, capture_output=True, text=True, env=environment, check=True)
        self.assertNotIn("\033", done.stdout)
        self.assertNotIn("green", done.stdout)
        self.assertIn("The two texts are identical.", done.stdout)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
