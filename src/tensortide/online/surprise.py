"""How surprising a value is: its tail probability under what the model expected before learning it.

How widely values are spread about what is expected is learned in `tensortide.online.dispersion`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tensortide.arrays import Flags, Floats, Positions
from tensortide.core.losses.standard import Bernoulli, Gamma, Loss, NegativeBinomial, Poisson
from tensortide.online.dispersion import FEWEST, Dispersion, tails
from tensortide.online.info import MOST

if TYPE_CHECKING:
    import pyarrow as pa

    from tensortide.data.arrival import Arrival
    from tensortide.data.modes import Modes
    from tensortide.online.changes import BatchChange

RARE = 1e-3  # tail probability below which a value is a surprise
FALSE = 0.05  # share of a step's list that may be there by chance


@dataclass(frozen=True, slots=True, kw_only=True)
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """A batch beside what was expected of it: values, expectations, which cells are new.

    `dispersion` is the experience before it, `spread` what its cells are judged by.
    """

    change: BatchChange
    values: Floats
    expected: Floats
    new: Flags
    loss: Loss
    dispersion: Dispersion
    spread: Dispersion

    @classmethod
    def of(
        cls, change: BatchChange, predicted: Floats, loss: Loss, dispersion: Dispersion
    ) -> Judged:
        """Compare a batch with the model's values before it is learned."""
        new, live = change.new_cells(), change.live()
        values, expected = change.values, loss.mean(predicted)
        spread = dispersion
        if dispersion.weights[1] == 0.0 and _one_new_label(change, np.flatnonzero(new & live)):
            spread = dispersion.guessed(loss, values[live], expected[live], new[live])
        return cls(
            change=change, values=values, expected=expected, new=new, loss=loss,
            dispersion=dispersion, spread=spread,
        )  # fmt: skip

    def experience(self) -> Dispersion:
        """Return the dispersion with the misses of this batch."""
        live = self.change.live()
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
        return np.where(self.change.live(), far, 0.0)

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
    fit = np.flatnonzero(chance[order] <= FALSE * ranks / judged.change.live().sum())
    order = order[: fit[-1] + 1] if len(fit) else order[:0]
    order = order[chance[order] < RARE][:most]
    absorbed = judged.change.absorbed
    found = []
    for k, place in zip(order, judged.change.places(top[order]), strict=True):
        at, cell, new = top[k], {}, []
        for mode, (name, position) in enumerate(zip(modes.names, place.tolist(), strict=True)):
            cell[name] = _label(arrival, modes, mode, position)
            new += [name] if position >= arrival.old_shape[mode] else []
        one = Surprise(
            cell=cell, value=float(judged.values[at]), expected=float(judged.expected[at]),
            low=float(low[k]), high=float(high[k]), probability=float(chance[k]),
            revised=bool(absorbed is not None and absorbed.revised[at]), fresh=new,
        )  # fmt: skip
        found.append(one)
    return found


def judged_table(judged: Judged, arrival: Arrival, modes: Modes) -> pa.Table:
    """Return a row per cell: labels, value, expected, low, high, probability."""
    import pyarrow as pa

    every = np.arange(len(judged.values))
    chance, low, high = judged.tails(every) if len(every) else (np.empty(0),) * 3
    places = judged.change.places(every)
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


def _one_new_label(change: BatchChange, cells: Positions) -> bool:
    """Tell whether all new cells are of one new label, as those of a new day are.

    Several new labels may be of any size, so one that stands out is no surprise.
    """
    if not len(cells):
        return False
    places = change.places(cells)
    same = (places == places[0]).all(axis=0)
    return bool((same & (places[0] >= np.array(change.old_shape))).any())


def _label(arrival: Arrival, modes: Modes, mode: int, position: int) -> Any:
    label = modes.label(mode, position, arrival)
    return label.item() if isinstance(label, np.generic) else label
