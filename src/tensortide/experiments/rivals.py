"""What anybody would try first: predictions that need no model, learned batch by batch.

A rival predicts a cell from what it has learned of the cell's fibre: all its labels but the one
along which steps go (`tensortide.experiments.coded`).  A fibre that never came is predicted by the
mean of all cells learned.  A cell that comes again replaces what it was.  With ``absent="zero"``
rivals know the cells that are listed and no other, as those are what is scored.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np

from tensortide.arrays import Flags, Floats, Positions
from tensortide.experiments.coded import CodedCells, CodedSteps

DRAWN = 3.0  # records that draw the effect of a label to zero
SWEEPS = 5  # over the effects of all modes, at each step


class Rival(ABC):
    """Knows the newest value of each cell, and the mean of all."""

    name: ClassVar[str]

    def __init__(self, steps: CodedSteps) -> None:
        self.value = np.full(steps.n_cells, np.nan)
        self.total, self.n_known = 0.0, 0

    @property
    def parameters(self) -> dict[str, Any]:
        """What the rival was begun with."""
        return {}

    @property
    def mean(self) -> float:
        """The mean of all cells learned."""
        return self.total / self.n_known if self.n_known else 0.0

    @property
    def nbytes(self) -> int:
        """Bytes of what is kept."""
        kept = vars(self).values()
        return sum(item.nbytes for item in kept if isinstance(item, np.ndarray))

    @abstractmethod
    def learn(self, cells: CodedCells) -> None:
        """Take cells, each of which comes once."""

    @abstractmethod
    def predict(self, cells: CodedCells) -> Floats:
        """Return what is expected of cells."""

    def _keep(self, cells: CodedCells) -> tuple[Floats, Flags]:
        """Keep values; return what cells have more than before, and which were not known."""
        before = self.value[cells.cell]
        new = np.isnan(before)
        self.value[cells.cell] = cells.values
        gained = cells.values - np.where(new, 0.0, before)
        self.total += float(gained.sum())
        self.n_known += int(new.sum())
        return gained, new


class LastValue(Rival):
    """What a cell was, where it comes again, else the value of its fibre at the newest label."""

    name = "last value"

    def __init__(self, steps: CodedSteps) -> None:
        super().__init__(steps)
        self.last = np.full(steps.n_fibres, np.nan)
        self.newest = np.full(steps.n_fibres, np.iinfo(np.int64).min)

    def predict(self, cells: CodedCells) -> Floats:
        """Return the last value of each cell, or of its fibre."""
        last = self.last[cells.fibre]
        last = np.where(np.isnan(last), self.mean, last)
        return _or_else(self.value, cells.cell, last)

    def learn(self, cells: CodedCells) -> None:
        """Take the newest values of fibres."""
        self._keep(cells)
        order = np.argsort(cells.along, kind="stable")
        order = order[cells.along[order] >= self.newest[cells.fibre[order]]]
        fibre = cells.fibre[order]  # of those that come twice the last one is assigned
        self.last[fibre], self.newest[fibre] = cells.values[order], cells.along[order]


class SeasonalNaive(LastValue):
    """The last value of a cell, else that of its fibre a season before, else the fibre's last.

    Of the seasons that the kind of label suggests it takes the one that did best within the
    preparation.
    """

    name = "seasonal naive"

    def __init__(self, steps: CodedSteps) -> None:
        super().__init__(steps)
        self.season: int | None = best_season(steps)
        self.words = "none" if self.season is None else steps.seasons[self.season]

    @property
    def parameters(self) -> dict[str, Any]:
        """The season."""
        return {"season": self.words}

    def predict(self, cells: CodedCells) -> Floats:
        """Return what each cell was, or what its fibre had a season before."""
        last = super().predict(cells)
        if self.season is None:
            return last
        before = _or_else(self.value, cells.ago[:, self.season], last)
        return _or_else(self.value, cells.cell, before)


class FibreMean(Rival):
    """The mean of what was learned of the fibre."""

    name = "fibre mean"

    def __init__(self, steps: CodedSteps) -> None:
        super().__init__(steps)
        self.sums = np.zeros(steps.n_fibres)
        self.counts = np.zeros(steps.n_fibres, np.int64)

    def predict(self, cells: CodedCells) -> Floats:
        """Return the mean of each cell's fibre."""
        counts = self.counts[cells.fibre]
        return np.where(counts > 0, self.sums[cells.fibre] / np.maximum(counts, 1), self.mean)

    def learn(self, cells: CodedCells) -> None:
        """Add to the sums of fibres."""
        gained, new = self._keep(cells)
        np.add.at(self.sums, cells.fibre, gained)
        np.add.at(self.counts, cells.fibre, new)


class AdditiveEffects(Rival):
    """A mean and an effect of each label, drawn to zero by three records.

    All cells that are known are swept at each step, so a step costs what is known by then.
    """

    name = "additive effects"

    def __init__(self, steps: CodedSteps) -> None:
        super().__init__(steps)
        self.effects = [np.zeros(size) for size in steps.shape]
        self.known: list[Positions] = []  # labels of the cells, as they came
        self.cells: list[Positions] = []

    @property
    def parameters(self) -> dict[str, Any]:
        """How effects are drawn to zero."""
        return {"drawn_by": DRAWN, "sweeps": SWEEPS}

    @property
    def nbytes(self) -> int:
        """Bytes of values, labels and effects."""
        kept = (*self.effects, *self.known, *self.cells)
        return super().nbytes + sum(item.nbytes for item in kept)

    def predict(self, cells: CodedCells) -> Floats:
        """Return the mean and the effects of each cell's labels; unknown ones have none."""
        return self.mean + self._sum(cells.labels)

    def learn(self, cells: CodedCells) -> None:
        """Sweep over the effects of all modes, from what they were."""
        _, new = self._keep(cells)
        self.known.append(cells.labels[new])
        self.cells.append(cells.cell[new])
        labels, x = np.concatenate(self.known), self.value[np.concatenate(self.cells)]
        self.known, self.cells = [labels], [np.concatenate(self.cells)]
        rest = x - self.mean - self._sum(labels)
        for _ in range(SWEEPS):
            for mode, before in enumerate(self.effects):
                at = labels[:, mode]
                counts = np.bincount(at, minlength=len(before))
                sums = np.bincount(at, rest, len(before)) + counts * before
                self.effects[mode] = sums / (counts + DRAWN)
                rest -= (self.effects[mode] - before)[at]

    def _sum(self, labels: Positions) -> Floats:
        found = np.zeros(len(labels))
        for mode, effect in enumerate(self.effects):
            found += effect[labels[:, mode]]
        return found


RIVALS: dict[str, type[Rival]] = {
    rival.name: rival for rival in (LastValue, FibreMean, AdditiveEffects, SeasonalNaive)
}


def best_season(steps: CodedSteps) -> int | None:
    """Return the season that did best within the preparation; None where labels suggest none.

    Each is judged on the cells whose fibre has a value that long before, by its errors against
    those of the value just before: other cells would speak for a season that is seldom seen.
    """
    cells = steps.first
    order = np.lexsort((cells.along, cells.fibre))
    before = np.full(len(cells), np.nan)
    same = np.flatnonzero(np.diff(cells.fibre[order]) == 0)
    before[order[same + 1]] = cells.values[order[same]]
    value = np.full(steps.n_cells, np.nan)
    value[cells.cell] = cells.values
    ratios = []
    for k in range(len(steps.seasons)):
        ago = _or_else(value, cells.ago[:, k], np.full(len(cells), np.nan))
        there = ~np.isnan(ago)
        missed, plain = (
            float(np.sum((cells.values[there] - said[there]) ** 2)) for said in (ago, before)
        )
        ratios.append(missed / plain if plain > 0.0 else np.inf)
    return int(np.argmin(ratios)) if ratios else None


def _or_else(value: Floats, cell: Positions, other: Floats) -> Floats:
    """Return the values of cells where they are known, else another one."""
    found = value[cell]
    return np.where((cell >= 0) & ~np.isnan(found), found, other)
