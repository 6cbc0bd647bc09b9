"""The command line as a person uses it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

COMMAND = Path(sys.executable).with_name("tensortide")


def run(*words: str, width: int = 120) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(COMMAND), *words],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "COLUMNS": str(width)},
    )


def test_demo_shows_a_table_people_can_read():
    done = run("demo", "--seed", "3")
    assert done.returncode == 0, done.stderr
    for word in (
        "step",
        "new labels",
        "grown",
        "filled",
        "revised",
        "fitness",
        "keeps no value",
        "component",
        "tt.OnlineCP",
    ):
        assert word in done.stdout
    assert "\x1b[" not in done.stdout  # no colour codes in a pipe
    rows = [line.split() for line in done.stdout.splitlines()]
    fitness = [float(r[-1]) for r in rows if len(r) == 9 and r[0].isdigit()]
    assert len(fitness) >= 5
    assert min(fitness) > 0.9


def test_demo_fits_a_narrow_terminal():
    done = run("demo", width=80)
    assert all(len(line) <= 80 for line in done.stdout.splitlines())
    assert "…" not in done.stdout
    narrow = run("demo", width=60).stdout
    assert re.search(r"0\.99\d\d", narrow)  # the figures survive


def test_methods_lists_the_registry():
    done = run("methods")
    assert done.returncode == 0
    assert "gocpte" in done.stdout
    assert "economy" in done.stdout


@pytest.mark.parametrize("words", [["--help"], ["demo", "--help"], ["methods", "--help"]])
def test_help_has_an_example(words):
    done = run(*words)
    assert done.returncode == 0
    assert "tensortide" in done.stdout


def test_mistakes_are_a_sentence_and_exit_code_two():
    assert run("frobnicate").returncode == 2
    bad = run("demo", "--rank", "0")
    assert bad.returncode == 2
    assert "--rank" in bad.stderr
    assert bad.stdout == ""
    assert run("demo", "--seed", "-1").returncode == 2


def test_version_and_module():
    version = run("--version").stdout
    assert version.startswith("tensortide 0.")
    done = subprocess.run(
        [sys.executable, "-m", "tensortide", "--version"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout == version


def test_a_pipe_that_closes_early_gets_no_traceback():
    done = subprocess.run(
        ["bash", "-c", f"{COMMAND} demo | head -n 2"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr == ""
    assert len(done.stdout.splitlines()) == 2
