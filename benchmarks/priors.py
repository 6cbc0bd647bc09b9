"""What learned priors cost beside the paper's, by turns, with peak memory.

Each way runs in processes of its own; times are seconds of the processor, the best of all turns.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time
import warnings

import numpy as np

import tensortide as tt

RANKS, TURNS = (5, 10, 20, 40), 3
WAYS = ("paper", "learned", "learned, fibres")
PARTS = {
    "economy": ("gocpte, step of 1,000 records", "ms"),
    "history": ("gocpt, step with 1,000,000 entries", "ms"),
    "fit": ("fit of 100,000 entries to the end", "s"),
}
OTHERS = {  # losses of their own, and what is said about cells that are not listed
    "poisson": {"loss": "poisson"},
    "poisson, zeros": {"loss": "poisson", "absent": "zero"},
    "huber": {"loss": "huber"},
}


def records(rng: np.random.Generator, n: int, days: range, noise: float = 0.1) -> tt.Batch:
    """Return n records of places x kinds x days with noise."""
    loads = np.random.default_rng(7)
    rows = [loads.random((400, 5)), loads.random((200, 5)), 1.0 + 0.3 * loads.random((400, 5))]
    coords = np.column_stack(
        [rng.integers(0, 400, n), rng.integers(0, 200, n), rng.choice(np.array(days), n)]
    )
    coords = np.unique(coords, axis=0)
    values = np.prod([r[c] for r, c in zip(rows, coords.T, strict=True)], axis=0).sum(axis=1)
    return tt.Batch(coords, values + noise * rng.standard_normal(len(values)))


def model_of(rank: int, way: str, method: str, loss: str = "") -> tt.OnlineCP:
    """Return an estimator with one of the priors; fibres are remembered where that is asked."""
    prior = way.split(",", maxsplit=1)[0]
    return tt.OnlineCP(
        rank, method, prior=prior, fibres="fibres" in way, seed=0, **OTHERS.get(loss, {})
    )


def suited(batch: tt.Batch, loss: str) -> tt.Batch:
    """Return a batch with values that a loss allows."""
    if not loss.startswith("poisson"):
        return batch
    return tt.Batch(batch.coords, np.round(np.maximum(3.0 * batch.values, 0.0)))


def timed_steps(model: tt.OnlineCP, first_day: int, steps: int, loss: str) -> float:
    """Return the median time of steps of 1,000 records, each with a new day."""
    rng, times = np.random.default_rng(1), []
    for day in range(first_day, first_day + steps):
        batch = suited(records(rng, 1_000, range(day, day + 1)), loss)
        began = time.process_time()
        model.update(batch)
        times.append(time.process_time() - began)
    return float(np.median(times[2:]))


def measured(part: str, way: str, rank: int) -> float:
    """Return the seconds of one part; after a colon it names a loss."""
    rng, (part, _, loss) = np.random.default_rng(0), part.partition(":")
    if part == "fit":
        batch, model = records(rng, 100_000, range(30)), model_of(rank, way, "gocpt")
        began = time.process_time()
        model.fit(batch, progress=False)
        return time.process_time() - began
    few, method = ("economy", "gocpte") if part == "economy" else ("history", "gocpt")
    n, days = (50_000, 30) if few == "economy" else (100_000 if loss else 1_015_000, 300)
    batch, model = suited(records(rng, n, range(days)), loss), model_of(rank, way, method, loss)
    init = [
        np.random.default_rng(m).random((size, rank)) for m, size in enumerate((400, 200, days))
    ]
    model.fit(batch, init=init, max_sweeps=1, progress=False)
    return timed_steps(model, days, 40 if few == "economy" else 6, loss)


def in_child(part: str, way: str, rank: int) -> tuple[float, float]:
    """Return seconds and the peak of memory in megabytes."""
    command = [sys.executable, "-m", "benchmarks.priors", part, way, str(rank)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    seconds, peak = json.loads(done.stdout.splitlines()[-1])
    return seconds, peak


def other_losses() -> None:
    """Print a table of ratios for losses of their own, at rank 5."""
    print("\n| what, rank 5 | loss | paper | learned | ratio |")
    print("|---|---|---|---|---|")
    parts = {"economy": PARTS["economy"][0], "history": "gocpt, step with 100,000 entries"}
    for part, what in parts.items():
        for loss in OTHERS:
            turns = [[in_child(f"{part}:{loss}", way, 5) for way in WAYS[:2]] for _ in range(TURNS)]
            paper, learned = (1e3 * min(turn[k][0] for turn in turns) for k in (0, 1))
            ratio = learned / paper
            print(
                f"| {what} | {loss} | {paper:.3g} ms | {learned:.3g} ms | {ratio:.2f} |", flush=True
            )


def main() -> None:
    """Print a table of ratios for each rank."""
    print("| what | rank | paper | learned | ratio | with fibres | ratio | memory, MB |")
    print("|---|---|---|---|---|---|---|---|")
    for part, (what, unit) in PARTS.items():
        size = 1e3 if unit == "ms" else 1.0
        for rank in RANKS:
            turns = [[in_child(part, way, rank) for way in WAYS] for _ in range(TURNS)]
            best = [min(turn[k][0] for turn in turns) for k in range(len(WAYS))]
            peaks = [max(turn[k][1] for turn in turns) for k in range(len(WAYS))]
            ratios = [one / best[0] for one in best]
            print(
                f"| {what} | {rank} | {size * best[0]:.3g} {unit} | {size * best[1]:.3g} {unit} "
                f"| {ratios[1]:.2f} | {size * best[2]:.3g} {unit} | {ratios[2]:.2f} "
                f"| {', '.join(f'{peak:.0f}' for peak in peaks)} |",
                flush=True,
            )
    other_losses()


if __name__ == "__main__":
    if len(sys.argv) == 4:
        warnings.simplefilter("ignore")
        found = measured(sys.argv[1], sys.argv[2], int(sys.argv[3]))
        print(json.dumps([found, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024.0]))
    else:
        main()
