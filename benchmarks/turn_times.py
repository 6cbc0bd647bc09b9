"""Times of one state of the package, as JSON; `benchmarks.turns` compares two states by turns.

They are seconds of the processor.  Only public names are used, so that it runs on older versions
too.
"""

from __future__ import annotations

import json
import tempfile
import time
import warnings
from collections.abc import Callable
from inspect import signature

import numpy as np

import tensortide as tt

# rows with learned priors are newer than some of the states that are compared
PAPER = {"prior": "paper"} if "prior" in signature(tt.OnlineCP).parameters else {}


def _best(work: Callable[[], object], repeats: int) -> float:
    times = []
    for _ in range(repeats):
        began = time.process_time()  # what other processes do counts less than on the clock
        work()
        times.append(time.process_time() - began)
    return min(times)


def sweep() -> float:
    """Time one sweep over a million entries, rank 10."""
    rng = np.random.default_rng(0)
    coords = rng.integers(0, 300, (1_000_000, 3))
    batch = tt.Batch(coords, rng.random(len(coords)), shape=(300, 300, 300))
    init = [rng.random((300, 10)) for _ in range(3)]
    model = tt.OnlineCP(10, "gocpt", **PAPER)
    return _best(lambda: model.fit(batch, init=init, max_sweeps=1, progress=False), 4)


def small_step() -> float:
    """Time a hundred economy steps of 200 records, each with a new day, report included."""
    rng = np.random.default_rng(1)
    places = np.array([f"place {i}" for i in range(500)])

    def day(number: int) -> dict[str, object]:
        return {
            "place": places[rng.integers(0, 500, 200)], "age": rng.integers(0, 10, 200),
            "day": np.full(200, number), "value": rng.random(200),
        }  # fmt: skip

    model = tt.OnlineCP(5, "gocpte", modes=["place", "age", "day"], duplicates="mean", **PAPER)
    model.update({name: np.concatenate([day(d)[name] for d in range(3)]) for name in day(0)})
    days = iter(range(3, 10_000))

    def steps() -> None:
        for _ in range(100):
            model.update(day(next(days)))

    return _best(steps, 5)


def tracked_step() -> float:
    """Time a hundred tracked steps of 200 records, committed one by one."""
    rng = np.random.default_rng(2)
    places = np.array([f"place {i}" for i in range(500)])
    with tempfile.TemporaryDirectory() as folder:
        run = tt.Tracker.create(f"{folder}/run", 5, modes=["place", "age", "day"], **PAPER)
        days = iter(range(10_000))

        def step() -> None:
            run.ingest({
                "place": places[rng.integers(0, 500, 200)], "age": rng.integers(0, 10, 200),
                "day": np.full(200, next(days)), "value": rng.random(200),
            })  # fmt: skip

        def steps() -> None:
            for _ in range(100):
                step()

        step()
        found = _best(steps, 5)
        run.close()
    return found


def nowcast_day() -> float:
    """Time a day of the default nowcaster on a simulated triangle, with all its intervals."""
    days = list(tt.simulate.admissions(days=60, seed=2, corrected=0.0))
    table = {name: np.concatenate([day[name] for day in days]) for name in days[0]}
    whole = tt.nowcast.Triangle.from_table(
        table, reference="date", delay="delay", count="count", strata=["place", "age"], max_delay=7
    )
    last = np.datetime64("2026-01-05") + 59
    nowcaster = tt.nowcast.Nowcaster()
    for back in range(14, 5, -1):
        nowcaster.update(whole.as_of(last - back))
    views = iter([whole.as_of(last - back) for back in range(5, -1, -1)])
    return _best(lambda: nowcaster.update(next(views)).to_table(days=7), 6)


def main() -> None:
    """Print the times."""
    warnings.simplefilter("ignore")
    parts = (sweep, small_step, tracked_step, nowcast_day)
    print(json.dumps({part.__name__: part() for part in parts}))


if __name__ == "__main__":
    main()
