"""From a file to a committed ledger: records per second, where the time goes, memory, commits.

us_flights (needs the real data): 3 million flights, origin x destination x day, mean delay a cell,
economy method, rank 5, one step a day.  The kernels are compiled before the clock starts.  A
profile of where the time goes comes from a second run, since measuring slows it down.  Memory is
the peak of a process of its own, for the first million records and for all of them.

Commits: 100 records at random among 3 million factor rows.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import tensortide as tt
from tensortide import datasets
from tensortide.errors import NoDataError

MODES = ["origin", "destination", "day"]
_PEAK = """
import resource, sys
from benchmarks.tracker import tracked
tracked(sys.argv[1], sys.argv[2])
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


def flights(folder: Path, n_records: int) -> Path:
    """Write the flights with a column for the day."""
    table = datasets.us_flights().table.slice(0, n_records)
    day = pa.array(table["minute"].to_numpy() // 1440)
    file = folder / f"flights-{n_records}.parquet"
    pq.write_table(
        table.select(["origin", "destination", "delay_min"]).append_column("day", day), file
    )
    return file


def tracked(source: str, run: str) -> tt.Tracker:
    """Track one file by day."""
    with tt.Tracker.create(
        run, 5, "gocpte", modes=MODES, value="delay_min", duplicates="mean"
    ) as tracker:
        tracker.track(source, step_by="day")
        return tracker


@contextmanager
def watched(spent: dict[str, float]) -> Iterator[None]:
    """Add up the seconds spent in label encoding, in steps and in commits."""
    from tensortide.data.labels import NamedLabels
    from tensortide.data.tables import Table
    from tensortide.online.model import Model
    from tensortide.tracker import tracker as run

    parts = [
        (Table, "labels", "label encoding"),
        (NamedLabels, "encode", "label encoding"),
        (Model, "plan", "the step itself"),
        (run, "commit_step", "commit"),
        (run, "commit_first", "commit"),
    ]
    before = [getattr(owner, name) for owner, name, _ in parts]
    for (owner, name, word), inner in zip(parts, before, strict=True):
        setattr(owner, name, _timed(inner, word, spent))
    try:
        yield
    finally:
        for (owner, name, _), inner in zip(parts, before, strict=True):
            setattr(owner, name, inner)


def _timed(inner: Callable[..., Any], word: str, spent: dict[str, float]) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        began = time.perf_counter()
        try:
            return inner(*args, **kwargs)
        finally:
            spent[word] = spent.get(word, 0.0) + time.perf_counter() - began

    return call


def shares(source: Path, run: Path) -> dict[str, float]:
    """Return which share of the time of a run goes where."""
    spent: dict[str, float] = {}
    began = time.perf_counter()
    with watched(spent):
        tracked(str(source), str(run))
    total = time.perf_counter() - began
    return {word: seconds / total for word, seconds in spent.items()}


def peak(source: Path, run: Path) -> float:
    """Return the peak memory in MB of a process that tracks a file."""
    done = subprocess.run(
        [sys.executable, "-c", _PEAK, str(source), str(run)],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    return int(done.stdout) / 1024


def throughput() -> None:
    """Print the table of flights."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        try:
            whole, third = (flights(folder, n) for n in (3_000_000, 1_000_000))
        except NoDataError as error:
            print(f"left out: {error}")
            return
        tracked(str(flights(folder, 50_000)), str(folder / "warm"))
        print("| us_flights, economy, rank 5, by day | measured |")
        print("|---|---|")
        for run in range(3):
            began = time.perf_counter()
            tracked(str(whole), str(folder / f"run{run}"))
            seconds = time.perf_counter() - began
            print(f"| 3,000,000 records, run {run + 1} | {3e6 / seconds:,.0f} records a second |")
        for word, share in shares(whole, folder / "shares").items():
            print(f"| {word} | {share:.0%} of the time |")
        small, large = peak(third, folder / "third"), peak(whole, folder / "whole")
        print(f"| peak memory, 1 and 3 million records | {small:.0f} and {large:.0f} MB |")


def commits(n_rows: int = 3_000_000, repeats: int = 300) -> None:
    """Print the time of an ingest of 100 records among many rows."""
    rng = np.random.default_rng(0)
    size = n_rows // 3
    with tempfile.TemporaryDirectory() as name:
        with tt.Tracker.create(Path(name) / "run", 5, "gocpte") as tracker:
            first = tt.Batch(rng.integers(0, 50, (5_000, 3)), rng.random(5_000), shape=(50, 50, 50))
            tracker.ingest(first)
            places = rng.integers(0, size, (20_000, 3))
            tracker.ingest(tt.Batch(places, rng.random(20_000), shape=(size, size, size)))
            steps, alone = [], []
            for _ in range(repeats):
                batch = tt.Batch(rng.integers(0, size, (100, 3)), rng.random(100))
                spent: dict[str, float] = {}
                began = time.perf_counter()
                with watched(spent):
                    tracker.ingest(batch)
                steps.append(1e3 * (time.perf_counter() - began))
                alone.append(1e3 * spent["commit"])
        print(
            f"\n| 100 records at random among {n_rows:,} rows | commit, ms | step and commit, ms |"
        )
        print("|---|---|---|")
        for word, of in (
            ("median", np.median),
            ("mean", np.mean),
            ("nine of ten below", lambda took: np.quantile(took, 0.9)),
            ("longest: the log goes into the database", np.max),
        ):
            print(f"| {word} | {of(alone):.1f} | {of(steps):.1f} |")


def main() -> None:
    """Print both."""
    throughput()
    commits()


if __name__ == "__main__":
    main()
