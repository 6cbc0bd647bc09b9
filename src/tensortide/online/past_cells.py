"""The cells of a history in the order of labels, and what their fibres remembered at any time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tensortide.arrays import Floats, Places, Positions
from tensortide.core.steps.horizons import LOOKED, Judges, run_on
from tensortide.core.tensor.dense_box import told_cells
from tensortide.core.tensor.factors import products_at, values_at
from tensortide.core.tensor.fibres import Fibres
from tensortide.core.tensor.residuals import Residuals
from tensortide.data.timeline import Timeline

if TYPE_CHECKING:
    from tensortide.online.model import Model


MOST_JUDGES = 100_000  # cells of the newest labels that judge; of more, every n-th one does


@dataclass(frozen=True, slots=True)
class Targets:
    """Neighbouring labels that judge a horizon: places on the line, numbers, candidates."""

    at: Positions
    numbers: Positions
    found: Floats


class PastCells:
    """All cells that a model has learned, label after label on a line."""

    def __init__(self, model: Model, line: Timeline) -> None:
        assert model.store is not None
        self._line = line
        (cells, values), rows = told_cells(model.store.entries), model.rows()
        labels = model.modes.labels[line.mode]
        self._index = Fibres.of(line.mode, cells)
        numbers = line.number(list(labels.array()))[cells[:, line.mode]]
        residuals = values - values_at(rows, cells)
        self._residuals = Residuals(self._index.find(cells), numbers, residuals)
        place = np.full(len(labels), -1)
        place[line.places] = np.arange(len(line.places))
        order = np.argsort(place[cells[:, line.mode]], kind="stable")
        newest = np.count_nonzero(place[cells[:, line.mode]] >= len(line.places) - LOOKED)
        order = order[:: -(-newest // MOST_JUDGES) or 1]
        self._cells, self._values = cells[order], values[order]
        placed = place[self._cells[:, line.mode]]
        self._bounds = np.searchsorted(placed, np.arange(len(line.places) + 1))
        self._loss = model.method.loss
        self._products = products_at(rows, self._cells, line.mode)

    def recall(self, cells: Positions | Places, numbers: Positions, horizon: int) -> Floats:
        """Return what the fibres of cells remembered some steps before their labels."""
        line, known = self._line, self._index.find(cells)
        found = self._residuals.recall(
            np.maximum(known, 0), line.cutoff(numbers, horizon),
            line.season_numbers(numbers, horizon), run_on(horizon),
        )  # fmt: skip
        found[known < 0] = 0.0
        return found

    def errors(self, targets: Targets, horizon: int, *, memory: bool) -> Floats:
        """Return the Gram matrix of what candidates, and memories, missed on targets."""
        bounds = self._bounds[targets.at[0] : targets.at[-1] + 2]
        mine = slice(int(bounds[0]), int(bounds[-1]))
        judges = Judges(bounds - bounds[0], self._values[mine], self._products[mine], self._loss)
        recalled = np.empty((len(judges.values), 0))
        if memory:
            numbers = np.repeat(targets.numbers, np.diff(bounds))
            recalled = self.recall(self._cells[mine], numbers, horizon)
        return judges.errors(targets.found, recalled)
