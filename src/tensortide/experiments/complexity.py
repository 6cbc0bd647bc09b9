"""Measured growth of time and memory per step, beside the table `tb:complexity`.

One number is varied at a time: the side of a slice (its cells P grow with the square), and
the slices seen before, I.  The exponent is the slope of log cost over log size.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from tensortide import simulate
from tensortide.arrays import Floats
from tensortide.data.batch import Batch
from tensortide.experiments.scenario import Contender, Scenario, Source
from tensortide.online.estimator import OnlineCP

NOISE = 0.1  # without it, methods that iterate until nothing moves would stop at once


def run(scenario: Scenario, source: Source, contender: Contender, *, quick: bool) -> dict[str, Any]:
    """Return seconds and bytes per step for each size, and the exponents."""
    options = dict(scenario.options) | dict(source.options)
    if quick:
        options |= scenario.quick
    observed = options["observed"]
    result: dict[str, Any] = {"fitness": None, "seconds": None}
    for what in ("side", "slices"):
        sizes = options[what]
        measured = []
        for size in sizes:
            side = size if what == "side" else options["fixed_side"]
            before = size if what == "slices" else options["fixed_slices"]
            measured.append(_measure(contender, scenario.rank, side, before, observed, options))
        seconds, kept = zip(*measured, strict=True)
        cells = [s * s for s in sizes] if what == "side" else sizes
        result |= {
            f"{what}_sizes": sizes,
            f"{what}_seconds": seconds,
            f"{what}_bytes": kept,
            f"{what}_time_exponent": _slope(cells, seconds),
            f"{what}_memory_exponent": _slope(cells, kept),
        }
    return result


def _measure(
    contender: Contender, rank: int, side: int, before: int, observed: float, options: Any
) -> tuple[float, float]:
    """Return the median seconds of a step and the bytes that the model holds."""
    repeats = options["repeats"]
    shape = (side, side, before + repeats + 1)
    truth = simulate.low_rank(shape, rank, seed=side + before, noise=NOISE)
    x = truth.dense()
    mask = simulate.random_mask(x.shape, observed, seed=1)
    model = OnlineCP(rank, contender.make(), prior="paper")
    start = [f[:before] if m == 2 else f for m, f in enumerate(truth.factors)]
    model.fit(_part(x, mask, 0, before, observed), init=start, max_sweeps=0, progress=False)
    model.update(_part(x, mask, before, before + 1, observed))
    seconds = []
    for k in range(before + 1, before + 1 + repeats):
        batch = _part(x, mask, k, k + 1, observed)
        began = time.perf_counter()
        model.update(batch)
        seconds.append(time.perf_counter() - began)
    return float(np.median(seconds)), float(model.state_bytes_)


def _part(x: Floats, mask: Any, first: int, last: int, observed: float) -> Any:
    if observed == 1.0:
        return x[..., first:last]
    cells = np.argwhere(mask[..., first:last])
    cells[:, 2] += first
    return Batch(cells, x[tuple(cells.T)], shape=(*x.shape[:2], last))


def _slope(sizes: Any, costs: Any) -> float:
    return float(np.polyfit(np.log(sizes), np.log(costs), 1)[0])
