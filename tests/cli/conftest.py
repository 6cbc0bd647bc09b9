"""Commands run in children that begin in no time."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

COMMAND = Path(sys.executable).with_name("tensortide")


LAST_RESORT = 600.0  # seconds; ends a hang, and is far from what a busy machine needs


def wait_for(condition, process):
    """Wait until something is true that a process brings about."""
    while not condition():
        assert process.poll() is None, "it ended before"
        time.sleep(0.05)


@contextmanager
def started(*words, **streams):
    """A command that runs beside the test, and ends with it."""
    with subprocess.Popen(
        [str(COMMAND), *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, **streams
    ) as process:
        limit = threading.Timer(LAST_RESORT, process.kill)
        limit.start()
        try:
            yield process
        finally:
            limit.cancel()
            process.kill()


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
