"""README and docs are true: their examples run, their commands and files exist."""

from __future__ import annotations

import doctest
import re
import shlex
import tomllib
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
def test_links_lead_to_files_and_headings_and_make_targets_exist(page):
    text = page.read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)]+)\)", text):
        name, _, heading = target.partition("#")
        file = page.parent / name if name else page
        assert file.exists(), target
        assert not heading or heading in headings(file), target
    makefile = (HERE / "Makefile").read_text(encoding="utf-8")
    for target in re.findall(r"(?:`|^ {4})make ([a-z]+)", text, flags=re.MULTILINE):
        assert re.search(rf"^{target}:", makefile, flags=re.MULTILINE), target


def headings(page):
    """The names under which a page's headings can be linked to."""
    found = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return {re.sub(r"[^\w -]", "", words.lower()).replace(" ", "-") for words in found}


@pytest.mark.parametrize("page", [p for p in PAGES if p != PAGE], ids=lambda p: p.name)
def test_lines_can_be_read_in_a_terminal(page):
    """Prose is wrapped; tables, pictures, and what a command prints are as wide as they are."""
    long = []
    shown = False  # within an example
    for line in page.read_text(encoding="utf-8").splitlines():
        shown = not shown if line.startswith("```") else shown
        if not shown and not line.startswith(("|", "!", "    ")) and len(line) > 100:
            long.append(line)
    assert not long


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_source_files_that_a_page_names_exist(page):
    text = page.read_text(encoding="utf-8")
    for name in re.findall(r"`((?:[a-z_]+/)+[a-z_]+\.py)`", text):
        assert any((place / name).exists() for place in (HERE, HERE / "src/tensortide")), name
    for name in re.findall(r"`(tensortide(?:\.[a-z_]+)+)`", text):
        found = HERE / "src" / name.replace(".", "/")
        assert found.is_dir() or found.with_suffix(".py").is_file(), name


def test_the_tree_of_the_architecture_names_every_module():
    page = (HERE / "docs" / "architecture.md").read_text(encoding="utf-8")
    tree = page.split("## The tree")[1].split("\n## ")[0]
    source = HERE / "src" / "tensortide"
    named = set(re.findall(r"\w+", tree))
    commands = {"cli", "__main__"}  # a file for each command
    for path in sorted(source.rglob("*.py")):
        parts = path.relative_to(source).with_suffix("").parts
        if path.name != "__init__.py" and parts[0] not in commands:
            assert not set(parts) - named, path


@pytest.mark.parametrize("name", ["CONTRIBUTING.md", "docs/architecture.md"])
def test_layers_are_those_that_the_import_contract_has(name):
    page = (HERE / name).read_text(encoding="utf-8")
    contract = tomllib.loads((HERE / "pyproject.toml").read_text(encoding="utf-8"))
    layers = contract["tool"]["importlinter"]["contracts"][0]["layers"]
    shown = [re.escape(layer.replace("tensortide.", "")) for layer in layers]
    assert re.search("^" + r"\n".join(f" {{4}}{layer}" for layer in shown), page, re.MULTILINE)


def test_the_architecture_names_the_leaves_of_the_import_contract():
    page = (HERE / "docs" / "architecture.md").read_text(encoding="utf-8")
    contract = tomllib.loads((HERE / "pyproject.toml").read_text(encoding="utf-8"))
    leaves = contract["tool"]["importlinter"]["contracts"][2]["source_modules"]
    listed = page.split("are leaves")[1].split("\n\n")[0]
    assert set(re.findall(r"`(\w+)`", listed)) == {name.split(".")[-1] for name in leaves}


def test_the_readme_shows_examples():
    assert len(re.findall(">>>", (HERE / "README.md").read_text(encoding="utf-8"))) >= 8


def test_no_placeholder_is_left():
    assert not [page.name for page in PAGES if "@@" in page.read_text(encoding="utf-8")]


def test_pages_named_in_the_code_exist():
    files = [p for d in ("src", "tests", "benchmarks") for p in (HERE / d).rglob("*.py")]
    named = {m for p in files for m in re.findall(r"docs/\w+\.md", p.read_text(encoding="utf-8"))}
    assert named
    assert not [page for page in named if not (HERE / page).exists()]


def test_the_page_of_commands_is_what_the_commands_say():
    assert PAGE.read_text(encoding="utf-8") == commands_page()


def commands_of_the_readme():
    """The commands that the README shows, and what it shows of their output (None: nothing)."""
    shown: list[tuple[str, list[str] | None]] = []
    for line in re.findall(r"^ {4}.*$", (HERE / "README.md").read_text("utf-8"), re.MULTILINE):
        if line.startswith("    $ tensortide"):
            shown.append((line[6:], []))
        elif line.startswith("    tensortide"):
            shown.append((line[4:], None))
        elif shown and shown[-1][1] is not None:
            shown[-1][1].append(line[4:])
    return shown


def test_the_commands_of_the_readme_are_what_a_newcomer_types_and_sees(run, tmp_path):
    """After `make demo`, whose reports lie in the folder."""
    from tensortide.cli.demo import write_reports

    (tmp_path / "tensortide-demo").mkdir()
    write_reports(tmp_path / "tensortide-demo" / "reports", seed=0)
    (tmp_path / "cells.csv").write_text("place,age,date,delay\nKiel,80+,2026-05-04,3\n")
    commands = commands_of_the_readme()
    assert len(commands) >= 7
    for command, shown in commands:
        words = shlex.split(command, comments=True)[1:]
        done = run(*words, folder=str(tmp_path), width=100)
        assert done.returncode == 0, done.stderr
        if shown is None:
            continue
        wanted = " ".join(" ".join(shown).split())  # lines are broken by what they hold
        got = " ".join((done.stderr + done.stdout).split())
        pattern = re.escape(wanted).replace(re.escape("..."), ".*?")
        assert re.fullmatch(pattern, got, flags=re.DOTALL), got
