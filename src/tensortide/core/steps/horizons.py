"""Forecasts further ahead than one step: candidates at a horizon, and how they would have done.

Candidates for a row that lies `h` steps ahead: the mean row, the last one, the means of the last
2, 4 and 8, one damped trend, and for each season the row one season ago and the mean of four.  They
are judged where they could have been made before: from each of the newest labels one looks back
1, 2, ..., h steps.  The Gram matrices of the errors, each divided by its trace, are added up.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from tensortide.arrays import Floats, Positions
from tensortide.core.kernels.dense import thin_times, times_thin
from tensortide.core.kernels.near import suggest_near
from tensortide.core.losses.standard import Loss
from tensortide.core.steps.outlook import DISCOUNT, LAST, NEAR, mix, mix_jointly

SEASONS = 4  # of which a seasonal mean is taken
DAMPED = 0.5  # share of a trend that is left after each step
BASIC = 6  # candidates besides the seasons
LOOKED = 100  # newest labels that judge
FARTHEST = 60  # horizons that are judged; beyond, the weights stay


@dataclass(frozen=True, slots=True, kw_only=True)
class Sight:
    """What is known of some rows `horizon` steps before them: positions, -1 where none is.

    `recent` are the labels known by then, newest first; `seasons` those one and more whole
    seasons before the row, for each season; `known` is how many labels are known by then.
    """

    horizon: int
    recent: Positions
    seasons: Positions
    known: Positions

    def candidates(self, rows: Floats, means: Floats) -> Floats:
        """Return the candidates for each row; `means` are the mean rows known by then."""
        near = np.empty((len(self.recent), NEAR, rows.shape[1]))
        suggest_near(rows, self.recent, means, near)
        found, last, second = list(near.swapaxes(0, 1)), near[:, LAST], self.recent[:, 1]
        before = np.where(second[:, None] >= 0, rows[np.maximum(second, 0)], last)
        found.append(last + run_on(self.horizon) * (last - before))
        for season in range(self.seasons.shape[1]):
            at = self.seasons[:, season]
            seen = at >= 0
            past = np.where(seen[:, :, None], rows[np.maximum(at, 0)], 0.0)
            count = seen.sum(axis=1)[:, None]
            found.append(np.where(seen[:, 0, None], past[:, 0], last))
            found.append(np.where(count > 0, past.sum(axis=1) / np.maximum(count, 1), last))
        return np.stack(found, axis=1)


def run_on(horizon: int) -> float:
    """Return how far a damped trend runs in some steps, in units of its last move.

    >>> run_on(1), run_on(2)
    (0.5, 0.75)
    """
    return DAMPED * (1.0 - DAMPED**horizon) / (1.0 - DAMPED)


def faded(count: int) -> Floats:
    """Return the weights of labels that judge, oldest first."""
    return np.asarray(DISCOUNT ** np.arange(count - 1, -1, -1, dtype=np.float64))


def errors_of_rows(found: Floats, rows: Floats, certain: Floats) -> Floats:
    """Return the Gram matrix of what candidates miss of rows, each by its own precision.

    The squared distance ``(a - c)' T (a - c)`` is that of the values on the row's cells.
    """
    gaps = rows[:, None] - found
    weights = faded(len(rows))
    gram = np.zeros((found.shape[1],) * 2)
    for gap, told, weight in zip(gaps, certain, weights, strict=True):
        gram += weight * times_thin(times_thin(gap, told), gap)
    return gram


@dataclass(frozen=True, slots=True)
class Judges:
    """Cells that judge, label after label: bounds, values, products of the other modes' rows."""

    bounds: Positions
    values: Floats
    products: Floats
    loss: Loss

    def errors(self, found: Floats, recalled: Floats) -> Floats:
        """Return the Gram matrix of what candidates miss, beside what was remembered."""
        n = found.shape[1] + recalled.shape[1]
        gram, weights = np.zeros((n, n)), faded(len(found))
        for k, weight in enumerate(weights):
            mine = slice(int(self.bounds[k]), int(self.bounds[k + 1]))
            y = self.loss.mean(times_thin(self.products[mine], found[k]))
            missed = self.values[mine, None] - y
            both = np.hstack([missed, recalled[mine]])
            gram += weight * thin_times(both, both)
        return gram


def pooled(grams: Iterator[Floats]) -> Iterator[Floats]:
    """Yield for each horizon the sum of the Gram matrices up to it, each divided by its trace."""
    total: Floats | None = None
    for gram in grams:
        size = float(np.trace(gram))
        one = gram / size if 0.0 < size < float("inf") else np.zeros_like(gram)
        total = one if total is None else total + one
        yield total


def weights_of(gram: Floats, n_candidates: int) -> tuple[Floats, Floats]:
    """Return the weights of candidates, and of memories if the Gram matrix knows them."""
    if len(gram) > n_candidates:
        return mix_jointly(gram, n_candidates)
    return mix(gram), np.empty(0)


def persistence(errors: Floats, weights: Floats) -> float:
    """Return how much of a fibre's last residual is left after a step, beside its mean.

    `errors` is the Gram matrix of one step: candidates, then nothing, the last residual, the faded
    mean, the mean of all.  Least squares of ``e - mean`` on ``last - mean``, within 0 and 1.
    """
    n = len(weights)
    link, kept = weights @ errors[:n, n:], errors[n:, n:]
    size = kept[1, 1] - 2.0 * kept[1, 3] + kept[3, 3]
    share = link[1] - link[3] - kept[1, 3] + kept[3, 3]
    return float(np.clip(share / size, 0.0, 1.0)) if size > 0.0 else 0.0


def decayed(recalling: Floats, left: float, horizon: int) -> Floats:
    """Return the weights of memories some steps ahead: what fades goes over to the mean.

    >>> decayed(np.array([0.2, 0.4, 0.4, 0.0]), 0.5, 2).tolist()
    [0.2, 0.2, 0.2, 0.4]
    """
    out = recalling.copy()
    out[1:3] *= left ** (horizon - 1)
    out[3] += recalling[1:3].sum() - out[1:3].sum()
    return out
