#!/usr/bin/env python3
"""Tests of deps/licences: how it reads copyright files, and that it knows everything the build uses.

    licences_test.py ROOT [KNAP]"""
import importlib.util
import re
import subprocess
import sys
import tempfile
import unittest
from importlib.machinery import SourceFileLoader
from pathlib import Path

sys.dont_write_bytecode = True
ROOT = Path(sys.argv.pop(1)).resolve()
KNAP = sys.argv.pop(1) if len(sys.argv) > 1 else ""
loader = SourceFileLoader("licences", str(ROOT / "deps/licences"))
licences = importlib.util.module_from_spec(importlib.util.spec_from_loader("licences", loader))
sys.modules["licences"] = licences
loader.exec_module(licences)

COPYRIGHT = """Format: some
Files: debian/*
License: GPL-3

Files: *
Copyright: somebody
License: BSD-3-clause

License: GPL-3
 Much text.

License: BSD-3-clause
 Redistribution and use
"""


class LicencesTest(unittest.TestCase):
    def test_the_licence_is_that_of_all_files(self):
        self.assertEqual(licences.licence_of(COPYRIGHT), "BSD-3-clause")
        self.assertEqual(licences.licence_of("It is under the GNU General\nPublic License."), "GPL")
        self.assertEqual(licences.licence_of("All rights reserved."), licences.UNKNOWN)

    def test_long_texts_are_cut_to_what_applies(self):
        self.assertEqual(licences.shown_text(COPYRIGHT), COPYRIGHT)
        long = COPYRIGHT + "\nFiles: other\nCopyright: " + "x" * licences.LONGEST_TEXT + "\nLicense: GPL-3\n"
        self.assertEqual(licences.shown_text(long), "Files: *\nCopyright: somebody\nLicense: BSD-3-clause\n\n"
                                                    "License: BSD-3-clause\n Redistribution and use")

    def test_every_dependency_of_the_build_has_a_part(self):
        used = set(re.findall(r"find_package\((\w+)", (ROOT / "cmake/dependencies.cmake").read_text()))
        self.assertEqual(used, {*licences.HEADERS, *licences.LINKED, *licences.FROM_SOURCES})
        listed = licences.build_packages()
        for package in [*licences.HEADERS.values(), "ninja-build", "libgtest-dev", "chromium", "clang", "libclang-rt-14-dev"]:
            self.assertIn(package, listed)

    def test_parts_that_are_not_here_are_an_error_only_if_asked(self):
        self.assertEqual(licences.debian_part("no-such-package").version, licences.UNKNOWN)
        self.assertFalse(licences.debian_part("no-such-package").is_known())
        self.assertIn("| no-such-package | not here |", licences.document([("A", "b", [licences.debian_part("no-such-package")])]))

    @unittest.skipUnless(KNAP, "needs the program")
    def test_the_program_is_covered(self):
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "THIRD_PARTY.md"
            subprocess.run([ROOT / "deps/licences", "--strict", "--program", KNAP, "-o", file], check=True)
            text = file.read_text()
        for words in ("| ggml, libllama, llama-common |", "Copyright (c) 2023-2026 The ggml authors", "| libeigen3-dev |", "Mozilla Public License",
                      "Boost Software License", "### libcli11-dev", "| openai |", "| cpp-httplib, in llama-common |", "| libstdc++6 |"):
            self.assertIn(words, text)


if __name__ == "__main__":
    unittest.main()
