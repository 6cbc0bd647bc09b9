"""The process that runs commands in children which can be killed."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


class Parent:
    """Gives orders to `killing.py`."""

    def __init__(self):
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.tracker.killing"],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        assert json.loads(self.process.stdout.readline())["ready"]

    def __call__(self, **order):
        self.process.stdin.write(json.dumps(order) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def close(self):
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait(60)


@pytest.fixture(scope="session")
def parent():
    made = Parent()
    yield made
    made.close()
