"""The time of an economy step of 1,000 entries does not depend on the model or its past.

Rank 5, three modes.  Rows: models of 3 thousand and of 3 million rows, the same batches in
turn (in the large model at rows chosen anew for each batch, so that they are not in the
cache), so that a noisy machine is noisy for both.  Steps: a model in one mode of which 100
new labels appear at every step, timed around its 10th and around its 10,000th step.
"""

from __future__ import annotations

import time

import numpy as np

import tensortide as tt
from tensortide.core.steps.beliefs import Beliefs
from tensortide.core.tensor.factors import Factors
from tensortide.core.tensor.packed import pack
from tensortide.data.labels import PositionLabels
from tensortide.online.ahead import begun_anew, restored

ENTRIES, RANK = 1_000, 5


def model_of(n_rows: int) -> tt.OnlineCP:
    """Return an economy model with n_rows rows in all, each as sure as after some cells."""
    rng = np.random.default_rng(0)
    model = tt.OnlineCP(RANK, "gocpte").fit(rng.random((8, 8, 8)), max_sweeps=2)
    inner, sure = model._model, pack(10.0 * np.eye(RANK))
    every = [rng.random((n_rows // 3, RANK)) for _ in range(3)]
    inner.factors = Factors(every, precisions=[np.tile(sure, (len(rows), 1)) for rows in every])
    inner.modes.labels = [PositionLabels(n_rows // 3) for _ in range(3)]
    beliefs = begun_anew(Beliefs.of_memory(inner.memory), inner.factors)
    inner.memory, inner.ahead = beliefs.as_memory(), restored(beliefs, inner.modes, None)
    return model


def timed(model: tt.OnlineCP, batch: tt.Batch) -> float:
    """Return the seconds of one update."""
    began = time.perf_counter()
    model.update(batch)
    return time.perf_counter() - began


def rows(repeats: int = 400) -> dict[int, float]:
    """Return the median time of a step per number of rows."""
    rng = np.random.default_rng(1)
    models = {n: model_of(n) for n in (3_000, 3_000_000)}
    times: dict[int, list[float]] = {n: [] for n in models}
    for _ in range(repeats):
        coords, values = rng.integers(0, 1_000, (ENTRIES, 3)), rng.random(ENTRIES)
        for n, model in models.items():
            places = np.sort(rng.choice(n // 3, 1_000, replace=False))
            times[n].append(timed(model, tt.Batch(places[coords], values)))
    return {n: float(np.median(t)) for n, t in times.items()}


def steps(last: int = 10_000, window: int = 400) -> dict[int, float]:
    """Return the median time of a step around the 10th and around the last step.

    The early window is taken again from fresh models until both have as many samples, half
    of them after the long run: so both halves see the same machine.
    """
    rng = np.random.default_rng(2)

    def batch(n_labels: int) -> tt.Batch:
        coords = rng.integers(0, 1_000, (ENTRIES, 3))
        coords[:, 2] = rng.integers(max(0, n_labels - 1_000), n_labels, ENTRIES)
        coords[:100, 2] = n_labels + np.arange(100)
        return tt.Batch(coords, rng.random(ENTRIES))

    def early(samples: int) -> list[float]:
        times: list[float] = []
        while len(times) < samples:
            model = model_of(3_000)
            taken = [timed(model, batch(model.shape_[2])) for _ in range(15)]
            times += taken[5:]
        return times

    first = early(window // 2)
    model = model_of(3_000)
    late = []
    for step in range(last):
        took = timed(model, batch(model.shape_[2]))
        if step >= last - window:
            late.append(took)
    first += early(window // 2)
    return {10: float(np.median(first)), last: float(np.median(late))}


def main() -> None:
    """Print both comparisons."""
    print("| economy step of 1,000 entries | median, ms | ratio |")
    print("|---|---|---|")
    for word, times in (("rows", rows()), ("steps taken", steps())):
        (small, fast), (large, slow) = times.items()
        print(f"| {small:,} {word} | {1e3 * fast:.2f} | 1 |")
        print(f"| {large:,} {word} | {1e3 * slow:.2f} | {slow / fast:.2f} |", flush=True)


if __name__ == "__main__":
    main()
