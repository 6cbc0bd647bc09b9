"""How widely values are spread about what the model expected of them.

The spread comes from past misses: the squared error over the variance that the loss implies,
averaged over steps with fading, apart for cells whose labels were all known and for those with a
new one.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from tensortide.arrays import Flags, Floats
from tensortide.core.losses.standard import Bernoulli, Gamma, Loss, NegativeBinomial, Poisson

DECAY = 0.95  # of a past step, per step
OUTLIER = 25.0  # spreads squared beyond which a value does not widen the spread any more
ENOUGH = 4  # new cells of a batch from which it can be seen that one stands out
WIDE = 4.0  # times the median of squared misses, where there is nothing else to go by
FEWEST = 1e-3  # smallest expected count, so that a first case is not infinitely surprising


@dataclass(frozen=True, slots=True)
class Dispersion:
    """Faded sums of squared misses over their implied variance: known labels, new labels."""

    weights: Floats = field(default_factory=lambda: np.zeros(2))
    sums: Floats = field(default_factory=lambda: np.zeros(2))

    @classmethod
    def first(cls, loss: Loss, values: Floats, fitted: Floats) -> Dispersion:
        """Return the dispersion of a model that was just prepared: twice as wide as its fit.

        Of new labels there is no experience yet.
        """
        one = cls().after(loss, values, fitted, np.zeros(len(values), bool))
        return cls(0.5 * one.weights, 0.5 * 4.0 * one.sums)

    def of(self, new: Flags) -> Floats:
        """Return the dispersion that each cell has; NaN where there is no experience yet."""
        there = self.weights > 0.0
        ratio = np.where(there, self.sums / np.where(there, self.weights, 1.0), np.nan)
        return np.asarray(ratio[new.astype(int)])

    def guessed(self, loss: Loss, values: Floats, expected: Floats, new: Flags) -> Dispersion:
        """Return the dispersion, that of new labels taken from the batch itself.

        By its median, so that a value that stands out among four or more does not hide itself.
        """
        if int(new.sum()) < ENOUGH:
            return self
        typical = WIDE * float(np.median(_squares(loss, values[new], expected[new])))
        if not np.isfinite(typical):
            return self
        known = self.sums[0] / self.weights[0] if self.weights[0] > 0.0 else 0.0
        weights, sums = self.weights.copy(), self.sums.copy()
        weights[1], sums[1] = 1.0, max(typical, known)
        return Dispersion(weights, sums)

    def after(self, loss: Loss, values: Floats, expected: Floats, new: Flags) -> Dispersion:
        """Return the dispersion with the misses of one more step.

        A count of which nearly none was expected, and none came, says nothing about how widely
        counts are spread: it weighs what it can tell.
        """
        squares = _squares(loss, values, expected)
        telling = np.ones(len(values))
        if isinstance(loss, Poisson | NegativeBinomial):
            mean = np.maximum(expected, 0.0)
            telling = mean / (1.0 + mean)
        weights, sums = self.weights.copy(), self.sums.copy()
        for k in (0, 1):
            mine, told = squares[new == bool(k)], telling[new == bool(k)]
            if not len(mine) or not np.isfinite(mine).all() or not told.sum() > 0.0:
                continue
            clear = mine[told >= 0.5 * told.max()]
            before = sums[k] / weights[k] if weights[k] > 0.0 else WIDE * float(np.median(clear))
            limit = OUTLIER * before if before > 0.0 else np.inf
            size = min(1.0, float(told.sum()))
            weights[k] = DECAY * weights[k] + size
            mean_square = float(told @ np.minimum(mine, limit)) / float(told.sum())
            sums[k] = DECAY * sums[k] + size * mean_square
        return Dispersion(weights, sums)


def _squares(loss: Loss, values: Floats, expected: Floats) -> Floats:
    """Return squared misses over the variance that the loss implies."""
    with np.errstate(over="ignore", invalid="ignore"):
        return np.asarray((values - expected) ** 2 / variance(loss, expected))


def variance(loss: Loss, expected: Floats) -> Floats:
    """Return the variance that a loss implies, up to the dispersion."""
    mean = np.maximum(expected, FEWEST)
    if isinstance(loss, Poisson):
        return mean
    if isinstance(loss, NegativeBinomial):
        return np.asarray(mean + mean**2 / loss.size)
    if isinstance(loss, Gamma):
        return np.asarray(np.maximum(expected, np.finfo(float).tiny) ** 2)
    if isinstance(loss, Bernoulli):
        p = np.clip(expected, FEWEST, 1.0 - FEWEST)
        return np.asarray(p * (1.0 - p))
    return np.ones_like(expected)


def tails(
    loss: Loss, values: Floats, expected: Floats, dispersion: Floats
) -> tuple[Floats, Floats, Floats]:
    """Return the two-sided tail probability of each value, and the 95 % range expected.

    Counts: Poisson, or negative binomial where the past was wider; positive values: gamma; yes
    or no: the probability itself; else Student's t with five degrees of freedom.
    """
    from scipy import special  # a tenth of a second, and only where something is far out

    spread = np.where(np.isfinite(dispersion), np.maximum(dispersion, 1e-12), np.nan)
    if isinstance(loss, Bernoulli):
        p = np.clip(expected, 0.0, 1.0)
        zeros, ones = np.zeros_like(p), np.ones_like(p)
        chance = np.where(values >= 0.5, p, 1.0 - p)
        return chance, np.where(p > 0.975, ones, zeros), np.where(p < 0.025, zeros, ones)
    if isinstance(loss, Poisson | NegativeBinomial):
        mean = np.maximum(expected, FEWEST)
        ratio = np.maximum(spread * variance(loss, mean) / mean, 1.0)
        below, above, low, high = _of_counts(np.maximum(values, 0.0), mean, ratio)
    elif isinstance(loss, Gamma):
        shape, scale = 1.0 / spread, np.maximum(expected, np.finfo(float).tiny) * spread
        below, above = (
            special.gammainc(shape, values / scale),
            special.gammaincc(shape, values / scale),
        )
        low, high = (scale * special.gammaincinv(shape, q) for q in (0.025, 0.975))
    else:
        width = np.sqrt(0.6 * spread)  # a t with five degrees of freedom has variance 5 / 3
        below = special.stdtr(5, (values - expected) / width)
        above = special.stdtr(5, (expected - values) / width)
        low, high = (expected + width * special.stdtrit(5, q) for q in (0.025, 0.975))
    return np.minimum(1.0, 2.0 * np.minimum(below, above)), low, high


def _of_counts(
    values: Floats, mean: Floats, ratio: Floats
) -> tuple[Floats, Floats, Floats, Floats]:
    """Return both tails and the 95 % range of counts whose variance is `ratio` times the mean."""
    from scipy import special

    least, most = np.floor(values), np.ceil(values)
    wide = ratio > 1.0 + 1e-4
    size = mean / np.where(wide, ratio - 1.0, 1.0)
    p = 1.0 / np.where(wide, ratio, 2.0)
    below = np.where(
        wide, special.betainc(size, least + 1.0, p), special.gammaincc(least + 1.0, mean)
    )
    reach = np.maximum(most, 1e-12)  # at least `most` counts; none or more is certain
    above = np.where(wide, special.betainc(reach, size, 1.0 - p), special.gammainc(reach, mean))
    above = np.where(most > 0.0, above, 1.0)
    ends = [
        np.ceil(np.where(wide, special.nbdtrik(q, size, p), special.pdtrik(q, mean)))
        for q in (0.025, 0.975)
    ]
    return below, above, np.maximum(np.nan_to_num(ends[0]), 0.0), np.maximum(ends[1], 0.0)
