#!/usr/bin/env python3
"""docs/terminal.py: escape sequences, and pictures of screens."""
import subprocess
import sys
import unittest
import xml.etree.ElementTree
from pathlib import Path

sys.dont_write_bytecode = True
ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "docs"))
import terminal  # noqa: E402

SVG = "{http://www.w3.org/2000/svg}"


def screen(text, n_columns=40):
    return terminal.Screen(text, n_columns)


def styles(line):
    return [(text, style.color, style.is_bold) for _, text, style in terminal.runs(line)]


class ScreenTest(unittest.TestCase):
    def test_colours_and_bold_begin_and_end(self):
        found = styles(screen("a\033[32mgreen\033[0m b\033[1mbold\033[22m \033[1;33mboth\033[39;22m c").lines[0])
        green, yellow = terminal.COLORS[2], terminal.COLORS[3]
        self.assertEqual(found, [("a", None, False), ("green", green, False), ("b", None, False),
                                 ("bold", None, True), ("both", yellow, True), ("c", None, False)])
        self.assertEqual(styles(screen("\033[94mx\033[mx").lines[0]),
                         [("x", terminal.COLORS[12], False), ("x", None, False)])

    def test_cursor_moves(self):
        self.assertEqual(screen("one\r\ntwo").text(), "one\ntwo")
        self.assertEqual(screen("[1/9] compiling\r\033[K[9/9] done\r\n").text(), "[9/9] done")
        self.assertEqual(screen("abc\b\bX").text(), "aXc")
        self.assertEqual(screen("a\tb").text(), "a       b")
        self.assertEqual(screen("one\r\ntwo\033[A\rX").text(), "Xne\ntwo")
        self.assertEqual(screen("abc\033[2Cd\033[2Ge\033[1K").text(), "     d")

    def test_long_lines_go_on_in_the_next(self):
        self.assertEqual(screen("abcdef", 4).text(), "abcd\nef")
        self.assertEqual(screen("abcd\r\nef", 4).text(), "abcd\nef")

    def test_codes_that_draw_nothing_are_left_out(self):
        self.assertEqual(screen("\033[?25l\033[2J\033(B\033[1;7mx\033]").text(), "x")

    def test_empty_lines_at_the_end_are_dropped(self):
        self.assertEqual(len(screen("a\r\n\r\n  \r\n").lines), 1)


class TerminalPictureTest(unittest.TestCase):
    def test_picture_is_valid_and_keeps_the_grid(self):
        picture = terminal.draw(screen("\033[32mgreen <&>\033[0m\r\n  x", 20), "a title", "words on it")
        root = xml.etree.ElementTree.fromstring(picture)
        texts = {element.text: element for element in root.iter(f"{SVG}text")}
        self.assertEqual(texts["green <&>"].get("fill"), terminal.COLORS[2])
        self.assertEqual(float(texts["green <&>"].get("textLength")), round(9 * terminal.CELL_WIDTH, 1))
        self.assertEqual(float(texts["x"].get("x")), round(terminal.MARGIN + 2 * terminal.CELL_WIDTH, 1))
        self.assertEqual(root.find(f"{SVG}title").text, "a title")
        self.assertEqual(root.find(f"{SVG}desc").text, "words on it")
        self.assertNotRegex(picture, "<script|@import|url\\(|href")

    def test_program_sees_a_terminal_of_that_width(self):
        script = "import os, sys; print(sys.stdout.isatty(), os.get_terminal_size().columns, 'NO_COLOR' in os.environ)"
        text = terminal.run_on_terminal([sys.executable, "-c", script], 77)
        self.assertEqual(text, "True 77 False\r\n")

    def test_failure_is_raised_with_what_was_written(self):
        with self.assertRaises(subprocess.CalledProcessError) as caught:
            terminal.run_on_terminal(["sh", "-c", "echo why; exit 3"], 40)
        self.assertEqual((caught.exception.returncode, caught.exception.output), (3, "why\r\n"))


if __name__ == "__main__":
    unittest.main()
