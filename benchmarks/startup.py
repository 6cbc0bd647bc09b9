"""Import and first step: what a person waits for."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time

CLOCK = "import time; began = time.perf_counter(); {}; print(time.perf_counter() - began)"
STEP = (
    "import tensortide as tt; x = tt.simulate.low_rank((6, 5, 8), 2).dense(); "
    "m = tt.OnlineCP(2, 'gocpte').fit(x[..., :7]); m.update(x[..., 7])"
)


def seconds(statement: str, **env: str) -> float:
    """Return the time of a statement in a new process."""
    done = subprocess.run(
        [sys.executable, "-c", CLOCK.format(statement)],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, **env},
    )
    return float(done.stdout)


def help_seconds() -> float:
    """Return how long a person waits for `tensortide --help`."""
    began = time.perf_counter()
    subprocess.run([sys.executable, "-m", "tensortide", "--help"], capture_output=True, check=True)
    return time.perf_counter() - began


def main() -> None:
    """Print the table."""
    numpy = min(seconds("import numpy") for _ in range(5))
    package = min(seconds("import numpy, tensortide") for _ in range(5))
    model = min(seconds("import tensortide as tt; tt.OnlineCP(2)") for _ in range(5))
    with tempfile.TemporaryDirectory() as empty:
        cold = seconds(STEP, NUMBA_CACHE_DIR=empty)
        warm = min(seconds(STEP, NUMBA_CACHE_DIR=empty) for _ in range(3))
    print("| start | seconds |")
    print("|---|---|")
    print(f"| import numpy | {numpy:.3f} |")
    print(f"| import tensortide adds | {package - numpy:.3f} |")
    print(f"| import and make a model, in all | {model:.3f} |")
    helped = [help_seconds() for _ in range(5)]
    print(f"| tensortide --help, best and worst of 5 | {min(helped):.2f}, {max(helped):.2f} |")
    print(f"| first fit and step on a new machine (compiles) | {cold:.1f} |")
    print(f"| first fit and step in a later process | {warm:.2f} |")


if __name__ == "__main__":
    main()
