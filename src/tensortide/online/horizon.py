"""Values of labels that have not come: weights for each horizon, found by looking back.

One step ahead is what the model says before it learns.  Further ahead the candidates of
`tensortide.core.steps.horizons` are weighed by how they would have done on the newest labels: on
the cells of the history, where there is one; else on the rows, each by its precision.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from itertools import accumulate
from typing import TYPE_CHECKING, Any

import numpy as np

from tensortide.arrays import Floats, Positions
from tensortide.core.kernels.entries import predict_cells
from tensortide.core.steps.horizons import (
    BASIC,
    FARTHEST,
    LOOKED,
    decayed,
    errors_of_rows,
    persistence,
    pooled,
    weights_of,
)
from tensortide.core.steps.outlook import mixed_row, recalled_too, weighted
from tensortide.core.tensor.packed import unpack
from tensortide.core.tensor.residuals import BASIC as BASIC_MEMORIES
from tensortide.online.ahead import counted_anew, seen_along
from tensortide.online.past_cells import PastCells, Targets

if TYPE_CHECKING:
    from tensortide.online.model import Model


class Outlook:
    """What a model sees ahead along a mode, for any horizon.

    The steps of the model count labels as its first data suggested; here they are counted as all
    of its labels suggest by now.
    """

    def __init__(self, model: Model, mode: int) -> None:
        self._model, self._positive = model, model.method.loss.positive
        self._beliefs, self._told, self._fibres = seen_along(model, mode)
        self.line = counted_anew(model, self._told)
        self._rows = model.rows()[mode]
        self._mean = model.factors.means()[mode]
        self._n_candidates = BASIC + 2 * len(self.line.periods)
        self._weights: list[tuple[Floats, Floats]] = []
        self._grams = pooled(self._errors())

    def values(self, cells: Positions, label: Any) -> Floats:
        """Return the values of cells at a label ahead; their position in the mode is not read."""
        number = self.line.number([label])
        if self.line.is_next(int(number[0])):
            return self._next(cells, label)
        horizon = self.line.horizon(int(number[0]))
        mixed, recalling = self._weigh(min(horizon, FARTHEST))
        sight = self.line.sight(number, horizon)
        found = sight.candidates(self._rows, self._mean[None])[0]
        values = self._with_row(cells, mixed_row(mixed, found, positive=self._positive))
        if self._fibres is None:
            return values
        if self._past is not None:
            at = np.full(len(cells), number[0])
            said = weighted(self._past.recall(cells, at, horizon), recalling)
        else:
            mixed, one_ahead = self._beliefs.weights_ahead()
            left = persistence(self._beliefs.ahead, mixed)
            at, old = self._told.place([label]), np.zeros(1, bool)
            remembered, _ = self._fibres.recall(cells, at, old)
            said = weighted(remembered, decayed(one_ahead, left, horizon))
        return recalled_too(values, said, positive=self._positive)

    @cached_property
    def _past(self) -> PastCells | None:
        """The cells that judge; where zeros are not listed, rows do."""
        listed = self._model.store is not None and not self._model.rules.absent_zero
        listed = listed and self._model.method.loss.expects
        return PastCells(self._model, self.line) if listed else None

    def _next(self, cells: Positions, label: Any) -> Floats:
        """Return what the model says of the next label before it learns it."""
        mixed, recalling = self._beliefs.weights_ahead()
        number = self._told.number([label])
        found = self._told.before(number).candidates(self._rows, self._mean)[0]
        values = self._with_row(cells, mixed_row(mixed, found, positive=self._positive))
        if self._fibres is None:
            return values
        at, old = self._told.place([label]), self._told.is_old(number)
        recalled, plain = self._fibres.recall(cells, at, old)
        found = recalled_too(values, weighted(recalled, recalling), positive=self._positive)
        return self._beliefs.blended(found, plain, known=False)

    def _with_row(self, cells: Positions, row: Floats) -> Floats:
        """Return the values of cells whose label along the mode has a row, as a step adds up."""
        rows = [row[None] if m == self.line.mode else r for m, r in enumerate(self._model.rows())]
        places = np.ascontiguousarray(cells, np.int32)
        places[:, self.line.mode] = 0
        firsts = np.array([0, *accumulate(map(len, rows))])
        values = np.empty(len(cells))
        predict_cells(places, firsts, np.concatenate(rows), values)
        return values

    def _weigh(self, horizon: int) -> tuple[Floats, Floats]:
        """Return the weights of candidates and of memories at a horizon."""
        while len(self._weights) < horizon:
            self._weights.append(weights_of(next(self._grams), self._n_candidates))
        return self._weights[horizon - 1]

    def _errors(self) -> Iterator[Floats]:
        """Yield for each horizon the Gram matrix of errors on the labels that judge it."""
        size = self._n_candidates
        if self._past is not None and self._fibres is not None:
            size += BASIC_MEMORIES + len(self.line.periods)
        for horizon in range(1, FARTHEST + 1):
            targets = self._targets(horizon)
            if not len(targets.at):
                yield np.zeros((size, size))
            elif self._past is not None:
                yield self._past.errors(targets, horizon, memory=self._fibres is not None)
            else:
                places = self.line.places[targets.at]
                told = self._model.factors.precisions()[self.line.mode][places]
                certain = unpack(told, self._model.rank)
                yield errors_of_rows(targets.found, self._rows[places], certain)

    def _targets(self, horizon: int) -> Targets:
        """Return the newest labels before which enough others were known at a horizon."""
        line = self.line
        at = np.arange(max(len(line.numbers) - LOOKED, 0), len(line.numbers))
        known = line.sight(line.numbers[at], horizon).known
        at = at[known >= max(2, min(8, len(line.numbers) // 2))]
        sight = line.sight(line.numbers[at], horizon)
        ordered = self._rows[line.places]
        # the mean row at any time: all rows of labels that came before the line begins, and on
        start = self._rows.sum(axis=0) - ordered.sum(axis=0)
        sums = start + np.cumsum(ordered, axis=0)
        count = len(self._rows) - len(ordered) + sight.known
        means = sums[sight.known - 1] / count[:, None]
        return Targets(at, line.numbers[at], sight.candidates(self._rows, means))
