"""Commands that run beside a test."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from pathlib import Path

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
