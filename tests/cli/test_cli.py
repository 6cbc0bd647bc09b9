"""The command line as a person uses it."""

from __future__ import annotations

import json
import re
import subprocess
import sys

import pytest

import tensortide as tt
from tests.cli.conftest import COMMAND


def test_demo_tells_the_whole_story(run, tmp_path):
    done = run("demo", "-o", str(tmp_path / "demo"), width=80)
    assert done.returncode == 0, done.stderr
    story = " ".join(done.stdout.split())
    for words in (
        "120 days of hospital reports",
        "killed after step",
        "goes on where the ledger ends",
        "Who is in each component",
        "95 % interval",
        "report.html",
        "tensortide track your.csv --into run",
    ):
        assert words in story
    assert "\x1b[" not in done.stdout  # no colour codes in a pipe
    step = int(re.search(r"killed after step (\d+)", story)[1])
    told = " ".join(done.stderr.split())
    assert f"goes on after step {step}; one step for each file" in told
    assert f"done: {107 - step} steps" in told
    with tt.Tracker.open(tmp_path / "demo" / "run", read_only=True) as tracker:
        assert tracker.model.n_steps_ == 107
        assert len(set(tracker.batches()["batch_id"].to_pylist())) == 120
    assert (tmp_path / "demo" / "report.html").stat().st_size > 1_000_000
    number = r" +([\d,]+)"
    rows = re.findall(rf"\d{{4}}-\d\d-\d\d{number}{number}{number} to{number}{number}", done.stdout)
    assert len(rows) == 4
    for row in rows:
        known, near, low, high, real = (int(n.replace(",", "")) for n in row)
        assert abs(near - real) < 0.15 * real  # the nowcast sees through the delay
        assert known < 1.05 * real
        assert 0.97 * low < real < 1.03 * high
    assert (tmp_path / "demo" / "nowcast.html").stat().st_size > 1_000_000
    longest = [line for line in done.stdout.splitlines() if len(line) > 80]
    assert all("tensortide" in line or ".html" in line for line in longest)  # to be copied


def test_demo_is_made_anew_but_never_over_something_else(run, tmp_path):
    (tmp_path / "mine").mkdir()
    done = run("demo", "-o", str(tmp_path / "mine"))
    assert done.returncode == 2
    assert "not from a demo" in done.stderr


def test_methods_lists_the_registry(run):
    done = run("methods")
    assert done.returncode == 0
    assert "gocpte" in done.stdout
    assert "economy" in done.stdout
    found = json.loads(run("methods", "--json").stdout)
    assert [m["method"] for m in found] == list(tt.METHODS)
    assert [m["method"] for m in found if m["history"]][:1] == ["gocpt"]


@pytest.mark.parametrize("words", [["--help"], ["demo", "--help"], ["methods", "--help"]])
def test_help_has_an_example(run, words):
    done = run(*words)
    assert done.returncode == 0
    assert "tensortide" in done.stdout


def test_mistakes_are_a_sentence_and_exit_code_two(run):
    assert run("frobnicate").returncode == 2
    bad = run("demo", "--rank", "0")
    assert bad.returncode == 2
    assert "--rank" in bad.stderr
    assert bad.stdout == ""
    assert run("demo", "--seed", "-1").returncode == 2


def test_version_and_module(run):
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
        ["bash", "-c", f"{COMMAND} methods | head -n 2"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr == ""
    assert len(done.stdout.splitlines()) == 2


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["trak"], "'trak'"),
        (["nowcast"], "'source'. See `tensortide nowcast --help`."),
        (["track", "x.csv", "--into", "r", "--rank", "0"], "'--rank'"),
        (["nowcast", "x.csv", "--max-delay", "0"], "'--max-delay'"),
    ],
)
def test_a_mistake_in_the_words_is_one_sentence(run, words, told):
    done = run(*words)
    assert done.returncode == 2
    assert told in done.stderr
    assert done.stderr.count("\n") == 1
