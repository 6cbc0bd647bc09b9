"""One full completion sweep over ten million entries, against the machine's own limit.

1000 x 1000 x 1000, rank 10, 1e7 observed entries, two threads.  The sweep updates all rows
of all three modes: 4.2 GFLOP of sums of outer products and right-hand sides.  The limit is
the time of that many operations at the speed of a large double matrix product, measured in
the same run.  Peak memory is that of a process of its own that makes the entries, sorts
them into the three orders and sweeps.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time

import numpy as np

SIZE, RANK, ENTRIES, THREADS = 1_000, 10, 10_000_000, 2
GFLOP = 4.2


def matrix_product_speed(n: int = 3_000) -> float:
    """Return the best speed of a double matrix product in GFLOP/s."""
    rng = np.random.default_rng(0)
    a, b = rng.random((n, n)), rng.random((n, n))
    best = float("inf")
    for _ in range(4):
        began = time.perf_counter()
        a @ b
        best = min(best, time.perf_counter() - began)
    return 2.0 * n**3 / best / 1e9


def measure() -> dict[str, float]:
    """Sort ten million entries, sweep, and tell time and memory."""
    from tensortide.core.objective.data_terms import observed_rows
    from tensortide.core.steps.blocks import sweep
    from tensortide.core.tensor.entries import Entries
    from tensortide.core.tensor.workspace import Workspace
    from tensortide.methods.registry import gocpt
    from tensortide.parallel.threads import runner

    rng = np.random.default_rng(0)
    # distinct cells without a mask of 1e9: a stride that shares no divisor with the number of cells
    flat = (np.arange(ENTRIES) * 97 + rng.integers(0, 97)) % SIZE**3
    coords = np.empty((ENTRIES, 3), np.int32)
    for mode in (2, 1, 0):
        coords[:, mode] = flat % SIZE
        flat //= SIZE
    del flat
    shuffle = np.random.default_rng(1).permutation(SIZE).astype(np.int32)
    for mode in range(3):
        coords[:, mode] = shuffle[coords[:, mode]]
    values = rng.random(ENTRIES)
    shape = (SIZE, SIZE, SIZE)
    began = time.perf_counter()
    entries = Entries.listed(coords, values, shape)
    sorting = time.perf_counter() - began
    del coords, values
    work = Workspace([0, 0, 0], shape, RANK)
    work.stack[:] = rng.random(work.stack.shape)
    run = runner(THREADS)
    times = []
    for _ in range(4):
        began = time.perf_counter()
        sweep(work, entries, observed_rows, [], gocpt(), run)
        times.append(time.perf_counter() - began)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return {"sort": sorting, "sweep": min(times), "peak": peak, "bytes": entries.nbytes / ENTRIES}


def main() -> None:
    """Print the figures."""
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.sweep", "--measure"],
        capture_output=True,
        text=True,
        check=True,
    )
    found = json.loads(done.stdout)
    speed = matrix_product_speed()
    limit = GFLOP / speed
    print("| one sweep over 1e7 entries | value |")
    print("|---|---|")
    print(f"| matrix product | {speed:.0f} GFLOP/s |")
    print(f"| limit | {limit:.3f} s |")
    print(f"| sweep, {THREADS} threads | {found['sweep']:.3f} s |")
    print(f"| sweep / limit | {found['sweep'] / limit:.1f} |")
    print(f"| sorting once | {found['sort']:.2f} s |")
    print(f"| memory of the entries | {found['bytes']:.0f} bytes each |")
    print(f"| peak memory of the process | {found['peak'] / 1e6:.0f} MB |")


if __name__ == "__main__":
    if "--measure" in sys.argv:
        print(json.dumps(measure()))
    else:
        main()
