"""Settings for all tests: reproducible Hypothesis, the folder of real data, commands."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile(
    "tensortide",
    deadline=None,
    derandomize=True,
    max_examples=60,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.load_profile("tensortide")


@pytest.fixture(scope="session")
def real_data() -> Path:
    here = Path(__file__).resolve().parents[1]
    folder = Path(os.environ.get("TENSORTIDE_DATA", here.parent / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip("the folder of real data is absent (set TENSORTIDE_DATA to have it)")
    return folder


class Parent:
    """Gives orders to `tests/commands.py`, which runs commands in children."""

    def __init__(self):
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.commands"],
            cwd=Path(__file__).resolve().parents[1],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        assert json.loads(self.process.stdout.readline())["ready"]

    def __call__(self, **order):
        limit = threading.Timer(600.0, self.process.kill)  # ends a hang
        limit.start()
        try:
            self.process.stdin.write(json.dumps(order) + "\n")
            self.process.stdin.flush()
            return json.loads(self.process.stdout.readline())
        finally:
            limit.cancel()

    def close(self):
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait(600)


@pytest.fixture(scope="session")
def parent():
    if not hasattr(os, "fork"):
        pytest.skip("needs processes that fork")
    made = Parent()
    yield made
    made.close()


@dataclass
class Done:
    returncode: int
    stdout: str
    stderr: str


@pytest.fixture
def run(parent, tmp_path_factory):
    """Run a command to its end in a child of a process that has everything loaded.

    What is `given` comes through a pipe.
    """
    folder = tmp_path_factory.mktemp("said")

    def call(*words, **more):
        out, err = folder / "out", folder / "err"
        order = {"command": [*map(str, words)], "stdout": str(out), "stderr": str(err)}
        code = parent(**order, **more)["code"]
        return Done(code, out.read_text(), err.read_text())

    return call
