"""README and docs are true: their examples run, their commands and files exist."""

from __future__ import annotations

import doctest
import re
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parents[1]
PAGES = sorted([HERE / "README.md", HERE / "CONTRIBUTING.md", *(HERE / "docs").glob("*.md")])


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_examples_run_and_print_what_is_shown(page):
    failed, _ = doctest.testfile(
        str(page), module_relative=False, encoding="utf-8", optionflags=doctest.ELLIPSIS
    )
    assert failed == 0


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_links_lead_to_files_and_make_targets_exist(page):
    text = page.read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)#]+)\)", text):
        assert (page.parent / target).exists(), target
    makefile = (HERE / "Makefile").read_text(encoding="utf-8")
    for target in re.findall(r"(?:`|^ {4})make ([a-z]+)", text, flags=re.MULTILINE):
        assert re.search(rf"^{target}:", makefile, flags=re.MULTILINE), target


def test_the_readme_shows_examples():
    assert len(re.findall(">>>", (HERE / "README.md").read_text(encoding="utf-8"))) > 8


def test_no_placeholder_is_left():
    assert not [page.name for page in PAGES if "@@" in page.read_text(encoding="utf-8")]


def test_pages_named_in_the_code_exist():
    files = [p for d in ("src", "tests", "benchmarks") for p in (HERE / d).rglob("*.py")]
    named = {m for p in files for m in re.findall(r"docs/\w+\.md", p.read_text(encoding="utf-8"))}
    assert named
    assert not [page for page in named if not (HERE / page).exists()]
