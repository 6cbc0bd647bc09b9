"""README and docs are true: their examples run, their commands and files exist."""

from __future__ import annotations

import doctest
import re
from pathlib import Path

import pytest

from tests.commands_page import PAGE, commands_page

HERE = Path(__file__).resolve().parents[1]
PAGES = sorted([HERE / "README.md", HERE / "CONTRIBUTING.md", *(HERE / "docs").glob("*.md")])


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_examples_run_and_print_what_is_shown(page):
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE  # lines are broken by what they hold
    failed, _ = doctest.testfile(
        str(page), module_relative=False, encoding="utf-8", optionflags=flags
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


def test_the_page_of_commands_is_what_the_commands_say():
    assert PAGE.read_text(encoding="utf-8") == commands_page()


def quick_start():
    """The commands before the README's Python part, and what it shows of their output."""
    text = (HERE / "README.md").read_text(encoding="utf-8")
    section = text.split("## Quick start")[1].split("\n## In Python")[0]
    shown: list[tuple[str, list[str]]] = []
    for line in re.findall(r"^ {4}.*$", section, flags=re.MULTILINE):
        if line.startswith("    $ "):
            shown.append((line[6:], []))
        elif shown:
            shown[-1][1].append(line[4:])
    return [(command, output) for command, output in shown if command.startswith("tensortide")]


def test_the_quick_start_is_what_a_newcomer_types_and_sees(run, tmp_path):
    """After `make demo`, whose reports lie in the folder."""
    from tensortide.cli.demo import write_reports

    (tmp_path / "tensortide-demo").mkdir()
    write_reports(tmp_path / "tensortide-demo" / "reports", seed=0)
    commands = quick_start()
    assert len(commands) >= 4
    for command, shown in commands:
        done = run(*command.split()[1:], folder=str(tmp_path), width=100)
        assert done.returncode == 0, done.stderr
        wanted = " ".join(" ".join(shown).split())  # lines are broken by what they hold
        got = " ".join((done.stderr + done.stdout).split())
        pattern = re.escape(wanted).replace(re.escape("..."), ".*?")
        assert re.fullmatch(pattern, got, flags=re.DOTALL), got
