"""Scores of quantile forecasts: the weighted interval score and its parts, coverage, bias."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tensortide.arrays import Floats, Positions
from tensortide.errors import InputError

LEVELS = (0.025, 0.1, 0.25, 0.5, 0.75, 0.9, 0.975)  # those of the German Nowcast Hub


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Scores:
    """Scores of single forecasts, one number each.

    ``wis = dispersion + overprediction + underprediction``; `covered` by level of interval;
    `error` is median less truth.
    """

    wis: Floats
    dispersion: Floats
    overprediction: Floats
    underprediction: Floats
    error: Floats
    covered: dict[float, Floats]


def check_levels(levels: Sequence[float]) -> Floats:
    """Return rising quantile levels that lie symmetrically about the median."""
    found = np.asarray(levels, float)
    if found.ndim != 1 or not len(found) or not ((found > 0.0) & (found < 1.0)).all():
        raise InputError(f"quantile levels must lie between 0 and 1, not {levels!r}.")
    if (np.diff(found) <= 0.0).any():
        raise InputError("quantile levels must rise.")
    if not np.allclose(found + found[::-1], 1.0) or len(found) % 2 == 0:
        raise InputError("quantile levels must be the median and pairs about it, as .1 .5 .9.")
    return found


def scores(quantiles: Floats, truth: Floats, levels: Sequence[float] = LEVELS) -> Scores:
    """Score quantile forecasts (Bracher et al. 2021), last axis the levels.

    ``WIS = (|y - m| / 2 + sum_k alpha_k / 2 IS_k) / (K + 1 / 2)`` with the interval score
    ``IS_k = (u - l) + 2 / alpha_k (l - y)_+ + 2 / alpha_k (y - u)_+``.

    >>> scores(np.array([[1.0, 2.0, 4.0]]), np.array([5.0]), [0.25, 0.5, 0.75]).wis.tolist()
    [2.1666666666666665]
    """
    tau = check_levels(levels)
    quantiles, truth = np.asarray(quantiles, float), np.asarray(truth, float)
    if quantiles.shape != (*truth.shape, len(tau)):
        raise InputError(
            f"quantiles of shape {quantiles.shape} do not fit a truth of shape {truth.shape} and "
            f"{len(tau)} levels."
        )
    pairs = len(tau) // 2
    median = quantiles[..., pairs]
    weight = 1.0 / (pairs + 0.5)
    spread = np.zeros(truth.shape)
    over = 0.5 * np.maximum(median - truth, 0.0)
    under = 0.5 * np.maximum(truth - median, 0.0)
    covered = {}
    for k in range(pairs):
        lower, upper, alpha = quantiles[..., k], quantiles[..., -1 - k], 2.0 * tau[k]
        spread += 0.5 * alpha * (upper - lower)
        over += np.maximum(lower - truth, 0.0)
        under += np.maximum(truth - upper, 0.0)
        inside = (lower <= truth) & (truth <= upper)
        covered[round(1.0 - alpha, 6)] = inside.astype(float)
    parts = [weight * part for part in (spread, over, under)]
    total = parts[0] + parts[1] + parts[2]
    return Scores(
        wis=total, dispersion=parts[0], overprediction=parts[1], underprediction=parts[2],
        error=median - truth, covered=covered,
    )  # fmt: skip


def on_log_scale(quantiles: Floats, truth: Floats) -> tuple[Floats, Floats]:
    """Return forecasts and truth as ``log(1 + x)``: errors become relative."""
    return np.log1p(np.maximum(quantiles, 0.0)), np.log1p(np.maximum(truth, 0.0))


def block_bootstrap(
    mine: Floats, theirs: Floats, *, block: int = 14, draws: int = 2000, seed: int = 0
) -> tuple[float, float]:
    """Return a 95 % interval of the ratio of two means, of series whose neighbours are alike.

    Whole blocks of neighbours are drawn with replacement (circularly), both series together, so
    the dependence of forecasts of successive days is kept.  Blocks are no longer than a
    fifth of the series: fewer than five blocks say nothing about their spread (NaN).

    >>> block_bootstrap(np.full(50, 2.0), np.ones(50))
    (2.0, 2.0)
    """
    n = len(mine)
    if n == 0 or len(theirs) != n:
        raise InputError("two series of the same length, not empty, are needed.")
    if n < 5:
        return np.nan, np.nan
    block = max(1, min(block, n // 5))
    rng = np.random.default_rng(seed)
    starts = rng.integers(0, n, (draws, -(-n // block)))
    places: Positions = (starts[:, :, None] + np.arange(block)) % n
    chosen = places.reshape(draws, -1)[:, :n]
    base = np.asarray(theirs)[chosen].mean(axis=1)
    live = base > 0.0
    if not live.any():
        return np.nan, np.nan
    ratios = np.asarray(mine)[chosen].mean(axis=1)[live] / base[live]
    return float(np.quantile(ratios, 0.025)), float(np.quantile(ratios, 0.975))
