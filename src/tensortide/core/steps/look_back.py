"""First beliefs: what the preparation tells about the outlook, label by label in their order."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from tensortide.arrays import Floats, Places, Positions
from tensortide.core.kernels.dense import thin_times, times_thin
from tensortide.core.losses.standard import Loss
from tensortide.core.steps.beliefs import DRIFTING, FEWEST, Beliefs
from tensortide.core.steps.method import SQUARED
from tensortide.core.steps.missed import UnlistedZeros
from tensortide.core.steps.outlook import DISCOUNT, PLAIN, Neighbours, mix, stable
from tensortide.core.tensor.factors import Factors, products_at
from tensortide.core.tensor.fibres import MEMORIES
from tensortide.core.tensor.packed import unpack

LONGEST = 400  # steps of a season that is looked for
OUTSTANDING = 0.5  # share of the usual distance of rows below which a season is believed


@dataclass(frozen=True, slots=True, kw_only=True)
class Past:
    """The first labels of the ordered mode in ascending order, as far as they are kept.

    `positions` are theirs, `before` what comes before each of them.
    """

    mode: int
    positions: Positions
    before: Neighbours


def find_period(rows: Floats, others: Floats) -> int | None:
    """Return the lag of a season in rows that stand in the order of labels, None if there is none.

    `others` is the product, element by element, of the other modes' mean second moments: with it
    the squared distance of two rows is that of the model's values.  A season has to be seen three
    times, and to stand out: rows a season apart are closer than neighbours, and half as far apart
    as rows at other lags are.
    """
    errors = []
    for lag in range(1, min(len(rows) // 3, LONGEST) + 1):
        gaps = rows[lag:] - rows[:-lag]
        errors.append(float(np.einsum("ir,rs,is->", gaps, others, gaps)) / len(gaps))
    best = int(np.argmin(errors)) if errors else 0
    return best + 1 if best and errors[best] < OUTSTANDING * np.median(errors) else None


def look_back(
    beliefs: Beliefs,
    factors: Factors,
    past: Past,
    cells: Places,
    values: Floats,
    recalled: Floats,
    loss: Loss = SQUARED,
    *,
    absent_zero: bool = False,
) -> Beliefs:
    """Return beliefs that know how the outlook would have done on the first data.

    `recalled` is what the memory of each cell's fibre would have said before its label came.
    With `absent_zero` cells that are not listed are zeros, and judge too.
    """
    every = factors.rows()
    rows = every[past.mode]
    ordered = rows[past.positions]
    first = max(2, min(8, len(ordered) // 2))
    n = PLAIN + past.before.ago.shape[1]
    n_before = len(rows) - len(ordered)
    start = rows.sum(axis=0) - ordered.sum(axis=0)
    sums = start + np.cumsum(ordered, axis=0)
    z = products_at(every, cells, past.mode)
    zeros = None
    if absent_zero:
        others = [other for mode, other in enumerate(every) if mode != past.mode]
        zeros = UnlistedZeros(loss, [thin_times(other, other) for other in others], others)
    order = np.argsort(cells[:, past.mode], kind="stable")
    ends = np.searchsorted(cells[order, past.mode], np.arange(len(rows) + 1))
    gram = np.zeros((n + recalled.shape[1],) * 2)
    seen, n_judged = [], 0
    counts = n_before + np.arange(1, len(ordered) + 1)
    means = np.vstack([rows[:1], sums[:-1] / counts[:-1, None]])[: len(ordered)]
    looked = past.before.candidates(rows, means)
    for k in range(first, len(ordered)):
        at, found = past.positions[k], looked[k]
        mine = order[ends[at] : ends[at + 1]]
        if len(mine) and loss.expects:
            missed = values[mine, None] - loss.mean(times_thin(z[mine], found))
            errors = np.hstack([missed, recalled[mine]])
            gram = DISCOUNT * gram + thin_times(errors, errors)
            if zeros is not None:
                gram += zeros.missed(found, z[mine])
            n_judged += len(mine)
        seen.append((at, found))
    if n_judged < FEWEST:
        gram[:] = 0.0
    drift = _drift(beliefs, factors, past.mode, seen, mix(gram[:n, :n], stable(n)))
    known = np.zeros((2 + MEMORIES,) * 2) if recalled.shape[1] else np.zeros((0, 0))
    return replace(
        beliefs, ahead=gram, known=known, drift=drift, n_drift=min(float(len(seen)), DRIFTING)
    )


def _drift(
    beliefs: Beliefs, factors: Factors, mode: int, seen: list[tuple[int, Floats]], weights: Floats
) -> Floats:
    """Return the mean of what the outlook would have missed of rows, with their covariances."""
    drift, told = np.zeros_like(beliefs.drift), factors.precisions()[mode]
    for count, (at, found) in enumerate(seen, start=1):
        gap = factors.rows()[mode][at] - weights @ found
        own = beliefs.noise * _inverse(told[at], len(gap))
        drift = drift + (np.outer(gap, gap) + own - drift) / count
    return drift


def _inverse(packed: Floats, rank: int) -> Floats:
    return np.asarray(np.linalg.inv(unpack(packed, rank)))
