#!/usr/bin/env python3
"""docs_check.py on small trees: each check finds its faults and nothing else."""
import sys
import tempfile
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent))
import docs_check  # noqa: E402


class DocsCheckTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name)

    def write(self, path, text):
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_text(text)

    def faults(self, check):
        return list(check(self.root))

    def expect_fault(self, check, words):
        faults = self.faults(check)
        self.assertEqual(len(faults), 1, faults)
        self.assertIn(words, faults[0])

    def test_citations_name_headings(self):
        self.write("docs/methods.md", "# Methods\n\n## Draft&Verify\n\n### Uniform windows\n```\n# no heading\n```\n")
        self.write("src/a.h", '// x (docs/methods.md, "Draft&Verify")\n'
                              '// y (docs/methods.md,\n//    "Uniform\n// windows").\n')
        self.assertEqual(self.faults(docs_check.citations), [])
        self.write("tests/a_test.cpp", '\n// (docs/methods.md, "Uniform window")\n')
        self.expect_fault(docs_check.citations, 'tests/a_test.cpp:2: docs/methods.md has no heading "Uniform window"')
        self.write("tests/a_test.cpp", '// (docs/methods.md, "no heading")\n')
        self.expect_fault(docs_check.citations, 'has no heading "no heading"')

    def test_citations_by_number_are_found(self):
        for text in ("// as in methods 3.15\n", "// methods\n// 3.7: as published\n", "// CLaSp (methods 4)\n",
                     "// x (D5)\n", "// O7, paper: x\n", "// by the rule (methods.md 3.2)\n", "| a | W12 |\n"):
            self.write("src/a.h", text)
            self.expect_fault(docs_check.numbered, "src/a.h:1: expected a citation by heading, found ")
        self.write("src/a.h", "// two methods, 3 layers\n// docs/methods.md\n// methods\n// 3 of them\n"
                              '// W^T, x86, 3D, D\ncc -O3 "a3=W1+2" LOD2 O2x D[1]\n')
        self.assertEqual(self.faults(docs_check.numbered), [])

    def test_links_lead_to_files_and_headings(self):
        self.write("docs/b.md", "# The `knap bench` file\n# Twice\n# Twice\n")
        self.write("README.md", "[a](docs/b.md#the-knap-bench-file) [b](docs/b.md#twice-1) [c](#d-e) [w](https://x.y/z)\n"
                                "# D, e\n`[code](none.md)`\n```\n[code](none.md)\n```\n")
        self.assertEqual(self.faults(docs_check.links), [])
        self.write("README.md", "\n[a](docs/none.md)\n")
        self.expect_fault(docs_check.links, "README.md:2: expected a file docs/none.md, found none")
        self.write("README.md", "[a](docs/b.md#thrice)\n")
        self.expect_fault(docs_check.links, "README.md:1: docs/b.md has no heading #thrice")
        self.write("README.md", '<img src="docs/none.svg">\n')
        self.expect_fault(docs_check.links, "expected a file docs/none.svg")
        self.write("README.md", "[a](#none)\n")
        self.expect_fault(docs_check.links, "README.md has no heading #none")

    def test_index_lists_every_document_once(self):
        self.write("docs/a.md", "")
        self.write("docs/results/b.md", "")
        self.expect_fault(docs_check.index, "docs/index.md: expected a list of documents, found none")
        self.write("docs/index.md", "- [a](a.md)\n- [b](results/b.md#x)\n- [r](../README.md)\n")
        self.assertEqual(self.faults(docs_check.index), [])
        self.write("docs/index.md", "- [a](a.md)\n")
        self.expect_fault(docs_check.index, "expected one link to docs/results/b.md, found 0")
        self.write("docs/index.md", "- [a](a.md)\n- [a](a.md)\n- [b](results/b.md)\n")
        self.expect_fault(docs_check.index, "expected one link to docs/a.md, found 2")

    def test_counts_of_tests_are_noticed(self):
        for text in ("All 3045 tests pass.", "1,024 unit tests", "100% tests passed, 0 tests failed out of 77",
                     "`gpu_tests`, 32 of 32 pass"):
            self.write("README.md", text)
            self.expect_fault(docs_check.counts, "README.md:1: states a number of tests")
        self.write("README.md", "100% tests passed, 0 tests failed. tests/ has tests; 4 rows.\n")
        self.assertEqual(self.faults(docs_check.counts), [])

    def test_named_tests_exist(self):
        self.write("tests/a/b_test.cpp", "TEST(Files, AreRead) {\nTEST_P(Shapes,\n       AreDrawn) {\n")
        self.write("tests/a/c_test.py", "class A:\n    def test_d(self):\n")
        self.write("tests/CMakeLists.txt", "add_test(NAME Tool.Works COMMAND x)\n")
        self.write("docs/a.md", "`Files.AreRead` `Shapes.*` `Shapes.AreDrawn` `test_d` `Tool.Works` `Docs.tests` `a.B` Files.Other\n")
        self.assertEqual(self.faults(docs_check.tests), [])
        for name in ("Files.AreWritten", "Other.*", "test_e", "Docs.none"):
            self.write("docs/a.md", f"\n`{name}`\n")
            self.expect_fault(docs_check.tests, f"docs/a.md:2: no test has the name {name}")

    def test_version_is_stated_once(self):
        self.write("CMakeLists.txt", "project(knap VERSION 1.2.3 LANGUAGES CXX)\n")
        self.write("CHANGELOG.md", "# Changelog\n\n## 1.2.3 - 2026-01-31\n\n## 1.2.2 - 2025-01-31\n")
        self.write("src/a.cpp", "// ggml 11.2.3 and 1.2.3.4\n")
        self.assertEqual(self.faults(docs_check.version), [])
        self.write("include/knap/knap.h", '\nversion();  // "1.2.3"\n')
        self.expect_fault(docs_check.version, "include/knap/knap.h:2: repeats the version of CMakeLists.txt")
        (self.root / "include/knap/knap.h").unlink()
        self.write("CHANGELOG.md", "## Unreleased\n\n## 1.2.3 - 2026-01-31\n")
        self.assertEqual(self.faults(docs_check.version), [])
        self.write("CHANGELOG.md", "## 1.2.2 - 2026-01-31\n")
        self.expect_fault(docs_check.version, "expected the newest version to be 1.2.3, found 1.2.2")
        self.write("CHANGELOG.md", "## 1.2.3\n")
        self.expect_fault(docs_check.version, "expected a date")


if __name__ == "__main__":
    unittest.main()
