"""The command may be interrupted at any time, and its output may be cut off: no stack is shown."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
#: Sends Ctrl-C to its own process when a module is first imported, or at the very end.
HOOK = """
import atexit, os, signal, sys
class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == os.environ.get("INTERRUPT_AT"):
            sys.meta_path.remove(self)
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Finder())
if os.environ.get("INTERRUPT_AT") == "the end":
    atexit.register(os.kill, os.getpid(), signal.SIGINT)
"""


def entry_point():
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]
    module, _, function = scripts["tensortide"].partition(":")
    return ["-c", f"import sys; from {module} import {function}; sys.exit({function}())"]


STARTS = {"script": entry_point(), "module": ["-m", "tensortide"]}


def interrupted(folder, start, at, *words):
    (folder / "sitecustomize.py").write_text(HOOK)
    paths = [str(folder), str(ROOT / "src")]
    env = os.environ | {"PYTHONPATH": os.pathsep.join(paths), "INTERRUPT_AT": at}
    return subprocess.run(
        [sys.executable, *STARTS[start], *words],
        env=env, capture_output=True, text=True, check=False,
    )  # fmt: skip


COMPARE = "tensortide.experiments.compare"


@pytest.mark.parametrize("start", STARTS)
@pytest.mark.parametrize(
    "at", ["tensortide.cli.main", "typer", "rich", "numpy", "pyarrow", "numba", COMPARE]
)
def test_an_interrupt_while_modules_are_imported_is_one_sentence(tmp_path, start, at):
    source = tmp_path / "a.csv"
    source.write_text("place,day,value\n" + "".join(f"Kiel,{d},2\nUlm,{d},3\n" for d in range(9)))
    done = interrupted(tmp_path, start, at, "compare", str(source), "--modes", "place,day")
    assert (done.returncode, done.stdout) == (130, "")
    assert done.stderr == "tensortide: stopped.\n"


@pytest.mark.parametrize("start", STARTS)
def test_an_interrupt_when_all_is_done_shows_nothing(tmp_path, start):
    done = interrupted(tmp_path, start, "the end", "--version")
    assert done.returncode == -signal.SIGINT
    assert done.stdout.startswith("tensortide ")
    assert done.stderr == ""


def closed_output(*words):
    """Run a command whose output nobody reads."""
    reading, writing = os.pipe()
    os.close(reading)
    env = os.environ | {"PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run(
        [sys.executable, "-m", "tensortide", *words],
        env=env, stdout=writing, stderr=subprocess.PIPE, text=True, check=False,
    )  # fmt: skip
    os.close(writing)
    return done


@pytest.mark.parametrize("words", [["--version"], ["--help"], ["methods"], ["methods", "--json"]])
def test_a_pipe_that_is_closed_is_no_mistake(words):
    done = closed_output(*words)
    assert (done.returncode, done.stderr) == (1, "")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_output_that_cannot_be_written_is_a_sentence():
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "tensortide", "--version"],
            stdout=full, stderr=subprocess.PIPE, text=True, check=False,
        )  # fmt: skip
    assert done.returncode == 1
    assert done.stderr == ("tensortide: the output cannot be written: No space left on device.\n")


def test_the_entry_imports_nothing_heavy():
    code = (
        "import sys; import tensortide.cli.entry; print(len(sys.modules), 'typer' in sys.modules)"
    )
    plain = "import sys; import importlib, signal, typing; print(len(sys.modules))"
    env = os.environ | {"PYTHONPATH": str(ROOT / "src")}

    def said(text):
        return subprocess.check_output([sys.executable, "-c", text], env=env, text=True).split()

    (n_modules, typer), (n_plain,) = said(code), said(plain)
    assert typer == "False"
    assert int(n_modules) <= int(n_plain) + 6


def test_completion_works_as_before():
    env = os.environ | {
        "PYTHONPATH": str(ROOT / "src"),
        "_TENSORTIDE_COMPLETE": "complete_bash",
        "COMP_WORDS": "tensortide comp",
        "COMP_CWORD": "1",
    }
    code = "import sys; sys.argv[0] = 'tensortide'\n" + STARTS["script"][1]  # as its file is named
    done = subprocess.run(
        [sys.executable, "-c", code], env=env, capture_output=True, text=True, check=False
    )
    assert done.stdout.split() == ["components", "compare"]
    assert done.returncode == 0
