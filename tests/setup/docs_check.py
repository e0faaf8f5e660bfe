#!/usr/bin/env python3
"""Checks the documents: their links, their index, citations of them in the sources, and numbers that go stale.

    docs_check.py ROOT CHECK...    citations, numbered, links, index, counts, tests or version"""
import re
import sys
from pathlib import Path

CITING = ("src", "include", "tools", "serve", "hub", "cli", "bench", "tests", "examples", "docs", "deps", "cmake",
          "deploy")
TEXT = {".h", ".cpp", ".py", ".sh", ".md", ".txt", ".json", ".cmake", ""}


def documents(root):
    """Markdown files of the project, except those in build folders."""
    folders = ("docs", "examples", "models", "tools", "cli", "deps", "deploy", "tests")
    return [*sorted(root.glob("*.md")), *(path for folder in folders for path in sorted((root / folder).rglob("*.md")))]


def without_code(text):
    """The text without blocks and spans of code. Line numbers stay the same."""
    text = re.sub(r"^(```|~~~).*?^\1[ \t]*$", lambda block: "\n" * block[0].count("\n"), text,
                  flags=re.MULTILINE | re.DOTALL)
    return re.sub(r"`[^`\n]*`", "", text)


def headings(text):
    """Headings of a document, except lines in code blocks."""
    text = re.sub(r"^(```|~~~).*?^\1[ \t]*$", "", text, flags=re.MULTILINE | re.DOTALL)
    return re.findall(r"^#{1,6}[ \t]+(.*?)[ \t#]*$", text, flags=re.MULTILINE)


def anchors(text):
    """Anchors of a document, named as GitHub names them."""
    found = set()
    for heading in headings(text):
        words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
        slug = re.sub(r"[^\w\- ]", "", words.lower()).replace(" ", "-")
        name, number = slug, 0
        while name in found:
            number += 1
            name = f"{slug}-{number}"
        found.add(name)
    return found | set(re.findall(r'<a (?:id|name)="([^"]+)"', text))


def line_of(text, position):
    return text.count("\n", 0, position) + 1


def joined_comments(text):
    """The text with comment marks blanked, so that a citation may continue on the next line."""
    return re.sub(r"\n[ \t]*(//|#|\*)", lambda mark: "\n" + " " * (len(mark[0]) - 1), text)


def citing_files(root):
    """(name, text) of files that may cite documents; each text with its comments joined."""
    for path in (path for folder in CITING for path in sorted((root / folder).rglob("*"))):
        if path.suffix not in TEXT or not path.is_file() or path.name.startswith("docs_check") or "data" in path.parts:
            continue
        try:
            yield path.relative_to(root), joined_comments(path.read_text())
        except UnicodeDecodeError:
            continue


def citations(root):
    """Every (docs/methods.md, "Heading") names a heading of docs/methods.md."""
    known = set(headings((root / "docs/methods.md").read_text()))
    for name, text in citing_files(root):
        for cited in re.finditer(r'docs/methods\.md,\s+\\?"([^"\\]+)\\?"', text):
            heading = " ".join(cited[1].split())
            if heading not in known:
                yield f'{name}:{line_of(text, cited.start())}: docs/methods.md has no heading "{heading}"'


def numbered(root):
    """No citation by number, such as "methods 3.15", "O13" or "D5": the sections they named do not exist."""
    patterns = (r"\bmethods(?:\.md)?(?: \d+|\s+\d+\.\d+)\b", r"(?<![\w=+/.$-])[OWD][1-9]\d?(?![\w+=/-])")
    for name, text in citing_files(root):
        for cited in (match for pattern in patterns for match in re.finditer(pattern, text)):
            yield f'{name}:{line_of(text, cited.start())}: expected a citation by heading, found "{cited[0]}"'


def links(root):
    """Links between files of the project, including pictures, lead to existing files and headings."""
    for path in documents(root):
        text = without_code(path.read_text())
        found = [*re.finditer(r"\]\(\s*<?([^)\s>]+)>?(?:\s+\"[^\"]*\")?\s*\)", text),
                 *re.finditer(r"(?:src|srcset|href)=\"([^\"]+)\"", text),
                 *re.finditer(r"^\[[^\]]+\]:\s+(\S+)", text, flags=re.MULTILINE)]
        for link in found:
            if re.match(r"[a-z]+:", link[1]):
                continue
            target, _, anchor = link[1].partition("#")
            where = f"{path.relative_to(root)}:{line_of(text, link.start())}"
            file = (path.parent / target) if target else path
            if not file.exists():
                yield f"{where}: expected a file {target}, found none"
            elif anchor and file.suffix == ".md" and anchor not in anchors(file.read_text()):
                yield f"{where}: {target or path.name} has no heading #{anchor}"


def index(root):
    """docs/index.md links to every document under docs/ once."""
    path = root / "docs/index.md"
    if not path.exists():
        yield "docs/index.md: expected a list of documents, found none"
        return
    listed = [(path.parent / target.partition("#")[0]).resolve()
              for target in re.findall(r"\]\(([^)\s]+)\)", path.read_text()) if not re.match(r"[a-z]+:", target)]
    for document in sorted((root / "docs").rglob("*.md")):
        n_links = listed.count(document.resolve())
        if document != path and n_links != 1:
            yield f"docs/index.md: expected one link to {document.relative_to(root)}, found {n_links}"


def counts(root):
    """No document states the number of tests, which the next commit may change."""
    patterns = (r"\b[1-9][\d,]*\s+(?:[a-z]+\s+)?tests\b", r"tests failed out of\s+\d+", r"tests`?,\s+\d+\s+of\s+\d+")
    for path in documents(root):
        text = path.read_text()
        for pattern in patterns:
            for count in re.finditer(pattern, text):
                yield f'{path.relative_to(root)}:{line_of(text, count.start())}: states a number of tests: "{count[0]}"'


def test_names(root):
    """The names of all tests below tests/: Suite.Test and Suite.*, and test_name and Suite.test_name of functions in Python."""
    names = set()
    for path in sorted((root / "tests").rglob("*")):
        if path.suffix not in (".cpp", ".py", ".txt", ".sh") or not path.is_file():
            continue
        text = path.read_text(errors="ignore")
        names.update(f"{suite}.{name}" for suite, name in re.findall(r"^TEST(?:_[FP])?\((\w+),\s*(\w+)\)", text, flags=re.MULTILINE))
        names.update(re.findall(r"\badd_test\(NAME\s+([\w.]+)", text))
        names.update(re.findall(r"^\s*def (test_\w+)\(", text, flags=re.MULTILINE))
    return names | {f"{name.partition('.')[0]}.*" for name in names}


def tests(root):
    """Tests that a document names in code, `Suite.Test` or `test_name`, exist."""
    known = test_names(root)
    checks = {f"Docs.{name}" for name in CHECKS}
    for path in documents(root):
        text = path.read_text()
        for named in re.finditer(r"`([A-Z][A-Za-z0-9]+\.(?:[A-Z][A-Za-z0-9]+|\*)|Docs\.[a-z]+|test_[a-z0-9_]+)`", text):
            if named[1] not in known | checks:
                yield f"{path.relative_to(root)}:{line_of(text, named.start())}: no test has the name {named[1]}"


def version(root):
    """Only CMakeLists.txt states the version; it is the newest version in CHANGELOG.md."""
    stated = re.search(r"project\(knap VERSION (\d+\.\d+\.\d+)", (root / "CMakeLists.txt").read_text())
    if not stated:
        yield "CMakeLists.txt: expected project(knap VERSION X.Y.Z ...), found none"
        return
    changes = (root / "CHANGELOG.md").read_text()
    newest = re.search(r"^## (?!Unreleased$)(\S+)(?: - (\S+))?", changes, flags=re.MULTILINE)
    if not newest or newest[1] != stated[1]:
        yield f"CHANGELOG.md: expected the newest version to be {stated[1]}, found {newest[1] if newest else 'none'}"
    elif not re.fullmatch(r"\d{4}-\d\d-\d\d", newest[2] or ""):
        yield f"CHANGELOG.md: expected a date, as in ## {stated[1]} - 2026-01-31, found {newest[2]}"
    copies = [path for folder in ("src", "include", "tools", "serve", "hub", "cli", "bench", "examples", "cmake", "deps", "completions")
              for path in sorted((root / folder).rglob("*")) if path.is_file() and path.suffix in TEXT]
    for path in [*copies, root / "README.md", root / "Makefile", root / "CMakePresets.json"]:
        text = path.read_text(errors="ignore") if path.exists() else ""
        for copy in re.finditer(rf"(?<![\d.]){re.escape(stated[1])}(?![\d.]*\d)", text):
            yield f"{path.relative_to(root)}:{line_of(text, copy.start())}: repeats the version of CMakeLists.txt"


CHECKS = {check.__name__: check for check in (citations, numbered, links, index, counts, tests, version)}


def main():
    root, names = Path(sys.argv[1]), sys.argv[2:]
    faults = [fault for name in names for fault in CHECKS[name](root)]
    print("\n".join(faults) or f"{', '.join(names)}: no faults")
    return bool(faults)


if __name__ == "__main__":
    sys.exit(main())
