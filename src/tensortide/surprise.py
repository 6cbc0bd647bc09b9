"""How surprising a value is: its tail probability under what the model expected before learning it.

The expected value comes from the model, the spread from its past misses: the squared error over
the variance that the loss implies, averaged over steps with fading, apart for cells whose labels
were all known and for those with a new one.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from tensortide.core.losses import Bernoulli, Gamma, Loss, NegativeBinomial, Poisson
from tensortide.core.types import Flags, Floats, Positions
from tensortide.info import MOST

if TYPE_CHECKING:
    import pyarrow as pa

    from tensortide.data.modes import Arrival, Modes
    from tensortide.incoming import Incoming

FADING = 0.95  # of a past step, per step
OUTLIER = 25.0  # spreads squared beyond which a value does not widen the spread any more
RARE = 1e-3  # tail probability below which a value is a surprise
FALSE = 0.05  # share of a step's list that may be there by chance
ENOUGH = 4  # new cells of a batch from which it can be seen that one stands out
WIDE = 4.0  # times the median of squared misses, where there is nothing else to go by
FEWEST = 1e-3  # smallest expected count, so that a first case is not infinitely surprising


@dataclass(frozen=True, slots=True)
class Surprise:
    """A value that does not fit: its cell, what came, what was expected, with 95 % range.

    `probability` is that of a value at least as far out; `revised` says that a published value
    was corrected (known to methods that keep history), `fresh` which labels were new.
    """

    cell: dict[str, Any]
    value: float
    expected: float
    low: float
    high: float
    probability: float
    revised: bool
    fresh: list[str]

    def __str__(self) -> str:
        """Return one line for people."""
        where = ", ".join(f"{name} {label}" for name, label in self.cell.items())
        what = "corrected to" if self.revised else "is"
        return (
            f"{where} {what} {self.value:g}; expected {self.expected:.4g} "
            f"({self.low:.4g} to {self.high:.4g})"
        )


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

    def or_guessed(self, loss: Loss, values: Floats, expected: Floats, new: Flags) -> Dispersion:
        """Return the dispersion, that of new labels taken from the batch itself.

        By its median, so that a value that stands out among four or more does not hide itself.
        """
        if int(new.sum()) < ENOUGH:
            return self
        with np.errstate(over="ignore", invalid="ignore"):
            squares = (values[new] - expected[new]) ** 2 / variance(loss, expected[new])
        typical = WIDE * float(np.median(squares))
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
        with np.errstate(over="ignore", invalid="ignore"):
            squares = (values - expected) ** 2 / variance(loss, expected)
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
            weights[k] = FADING * weights[k] + size
            mean_square = float(told @ np.minimum(mine, limit)) / float(told.sum())
            sums[k] = FADING * sums[k] + size * mean_square
        return Dispersion(weights, sums)


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


@dataclass(frozen=True, slots=True)
class Judged:
    """A batch beside what was expected of it: values, expectations, which cells are new.

    `dispersion` is the experience before it, `spread` what its cells are judged by.
    """

    incoming: Incoming
    values: Floats
    expected: Floats
    new: Flags
    loss: Loss
    dispersion: Dispersion
    spread: Dispersion

    @classmethod
    def of(
        cls, incoming: Incoming, predicted: Floats, loss: Loss, dispersion: Dispersion
    ) -> Judged:
        """Compare a batch with the model's values before it is learned."""
        new, live = incoming.new_cells(), incoming.live()
        values, expected = incoming.values, loss.mean(predicted)
        spread = dispersion
        if dispersion.weights[1] == 0.0 and _one_new_label(incoming, np.flatnonzero(new & live)):
            spread = dispersion.or_guessed(loss, values[live], expected[live], new[live])
        return cls(incoming, values, expected, new, loss, dispersion, spread)

    def experience(self) -> Dispersion:
        """Return the dispersion with the misses of this batch."""
        live = self.incoming.live()
        values, expected = self.values[live], self.expected[live]
        return self.dispersion.after(self.loss, values, expected, self.new[live])

    def tails(self, which: Positions) -> tuple[Floats, Floats, Floats]:
        """Return tail probability and range of some cells; NaN without experience."""
        spread = self.spread.of(self.new[which])
        found = tails(self.loss, self.values[which], self.expected[which], spread)
        blind = np.isnan(spread)
        chance, low, high = (np.where(blind, np.nan, part) for part in found)
        return chance, low, high

    def distances(self) -> Floats:
        """Return how far out each cell is, in the order of tail probabilities: deviances.

        Zero for cells that do not count, and where there is no experience yet.
        """
        loss, x = self.loss, self.values
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            spread = self.spread.of(self.new)
            if isinstance(loss, Bernoulli):
                p = np.clip(self.expected, 1e-300, 1.0)
                far = -np.log(np.where(x >= 0.5, p, np.maximum(1.0 - p, 1e-300)))
            elif isinstance(loss, Poisson | NegativeBinomial):
                mean = np.maximum(self.expected, FEWEST)
                far = loss.value(x, mean) / np.maximum(spread, 1.0)
            elif isinstance(loss, Gamma):
                far = loss.value(x, np.maximum(self.expected, np.finfo(float).tiny)) / spread
            else:
                far = (x - self.expected) ** 2 / spread
        far = np.nan_to_num(np.asarray(far, np.float64), nan=0.0, posinf=np.finfo(float).max)
        return np.where(self.incoming.live(), far, 0.0)

    def farthest(self, most: int) -> Positions:
        """Return the cells that are farthest out."""
        far = self.distances()
        top = np.argsort(-far, kind="stable")[:most]
        return np.asarray(top[far[top] > 0.0])


def surprises(judged: Judged, arrival: Arrival, modes: Modes, most: int = MOST) -> list[Surprise]:
    """Return the values of a step that do not fit, the least likely first.

    Among many values some are rare by chance: the list is cut so that of its members one in
    twenty at most is expected to be one of those (Benjamini and Hochberg).
    """
    top = judged.farthest(4 * most)
    if not len(top):
        return []
    chance, low, high = judged.tails(top)
    order = np.argsort(chance, kind="stable")
    ranks = np.arange(1, len(order) + 1)
    fit = np.flatnonzero(chance[order] <= FALSE * ranks / judged.incoming.live().sum())
    order = order[: fit[-1] + 1] if len(fit) else order[:0]
    order = order[chance[order] < RARE][:most]
    absorbed = judged.incoming.absorbed
    found = []
    for k, place in zip(order, judged.incoming.places(top[order]), strict=True):
        cell, fresh = _named(arrival, modes, place)
        at = top[k]
        found.append(
            Surprise(
                cell, float(judged.values[at]), float(judged.expected[at]), float(low[k]),
                float(high[k]), float(chance[k]),
                bool(absorbed is not None and absorbed.revised[at]), fresh,
            )
        )  # fmt: skip
    return found


def judged_table(judged: Judged, arrival: Arrival, modes: Modes) -> pa.Table:
    """Return a row per cell: labels, value, expected, low, high, probability."""
    import pyarrow as pa

    every = np.arange(len(judged.values))
    chance, low, high = judged.tails(every) if len(every) else (np.empty(0),) * 3
    places = judged.incoming.places(every)
    columns: dict[str, Any] = {}
    for mode, name in enumerate(modes.names):
        used, which = np.unique(places[:, mode], return_inverse=True)
        columns[name] = pa.array([_label(arrival, modes, mode, int(p)) for p in used]).take(which)
    found = {
        "value": judged.values, "expected": judged.expected, "low": low, "high": high,
        "probability": chance,
    }  # fmt: skip
    taken = set(modes.names)  # a mode may have such a name: then the judgement gives way
    return pa.table(columns | {f"{n}_" if n in taken else n: v for n, v in found.items()})


def _named(arrival: Arrival, modes: Modes, place: Positions) -> tuple[dict[str, Any], list[str]]:
    """Return the labels of a cell, and the modes in which its label is new."""
    cell, fresh = {}, []
    for mode, name in enumerate(modes.names):
        position = int(place[mode])
        if position >= arrival.old_shape[mode]:
            fresh.append(name)
        cell[name] = _label(arrival, modes, mode, position)
    return cell, fresh


def _one_new_label(incoming: Incoming, cells: Positions) -> bool:
    """Tell whether all new cells are of one new label, as those of a new day are.

    Several new labels may be of any size, so one that stands out is no surprise.
    """
    if not len(cells):
        return False
    places = incoming.places(cells)
    same = (places == places[0]).all(axis=0)
    return bool((same & (places[0] >= np.array(incoming.change.old_shape))).any())


def _label(arrival: Arrival, modes: Modes, mode: int, position: int) -> Any:
    labels, old = modes.labels[mode], arrival.old_shape[mode]
    known = position < len(labels)
    label = labels.label(position) if known else arrival.fresh[mode][position - old]
    return label.item() if isinstance(label, np.generic) else label
