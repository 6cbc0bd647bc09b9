"""Commands run in children that begin in no time."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

COMMAND = Path(sys.executable).with_name("tensortide")


def wait_for(condition, seconds=60):
    """Wait until something is true."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.05)


@dataclass
class Done:
    returncode: int
    stdout: str
    stderr: str


@pytest.fixture
def run(parent, tmp_path_factory):
    """Run a command to its end in a child of a process that has everything loaded."""
    folder = tmp_path_factory.mktemp("said")

    def call(*words):
        out, err = folder / "out", folder / "err"
        code = parent(command=list(words), stdout=str(out), stderr=str(err))["code"]
        return Done(code, out.read_text(), err.read_text())

    return call
