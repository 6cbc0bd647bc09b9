"""A step that is computed but not yet taken: what a model, or a ledger, is about to adopt."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tensortide.arrays import Floats, Places, Positions
from tensortide.core.kernels.dense import dot
from tensortide.core.tensor.dense_box import Complete, box_values
from tensortide.core.tensor.factors import values_at
from tensortide.data.cells import unique_cells
from tensortide.online.dispersion import Dispersion
from tensortide.online.info import Info
from tensortide.online.surprise import Judged, surprises

if TYPE_CHECKING:
    from tensortide.core.losses.standard import Loss
    from tensortide.core.steps.outcome import Outcome
    from tensortide.data.modes import Arrival, Modes
    from tensortide.data.sketch import DistinctCells
    from tensortide.data.store import Store
    from tensortide.online.changes import Incoming


@dataclass(frozen=True, slots=True)
class Ahead:
    """Everything of the next state that differs from this one, and where it came from.

    `expected` is the dispersion before the step, `dispersion` the one after it.
    """

    arrival: Arrival
    retract: Positions | None
    incoming: Incoming
    outcome: Outcome
    store: Store | None
    seen: DistinctCells
    grown_last: int
    step: int
    rows_read: int
    expected: Dispersion
    dispersion: Dispersion

    def _retracted(self) -> Places:
        assert self.retract is not None
        cells = np.ascontiguousarray(self.retract, np.int32)
        return unique_cells(cells, self.arrival.old_shape)

    def _learned(self) -> Floats:
        """Return the values of the batch's cells after the step."""
        arrived, rows = self.incoming.change.arrived, self.outcome.rows
        if isinstance(arrived, Complete):
            return box_values([r[-n:] for r, n in zip(rows, arrived.shape, strict=True)])
        return values_at(rows, arrived)

    def info(self, modes: Modes, loss: Loss) -> Info:
        """Say what the step does."""
        names = modes.names
        incoming, outcome = self.incoming, self.outcome
        cells, absorbed, n_grown = incoming.cells, incoming.absorbed, incoming.n_grown
        values = incoming.values
        with np.errstate(over="ignore", invalid="ignore"):
            gap = values - loss.mean(outcome.predicted)
            rest = values - loss.mean(self._learned())
            size, missed, left = (math.sqrt(dot(v, v)) for v in (values, gap, rest))
        filled = revised = unchanged = None
        if absorbed is not None:
            filled, revised, unchanged = (
                int(kind.sum()) for kind in (absorbed.filled, absorbed.revised, absorbed.unchanged)
            )
        fresh = self.arrival.fresh
        judged = Judged.of(incoming, outcome.predicted, loss, self.expected)
        return Info(
            step=self.step,
            entries=len(cells.values),
            duplicates=cells.n_duplicates,
            grown=n_grown,
            in_old_box=len(cells.values) - n_grown,
            retracted=0 if self.retract is None else len(self._retracted()),
            new_labels={name: len(labels) for name, labels in zip(names, fresh, strict=True)},
            prequential_error=missed / size if size > 0.0 else None,
            learned_error=left / size if size > 0.0 else None,
            norm=size,
            missed=missed,
            objective=outcome.objective,
            alpha=outcome.alpha,
            strategy=outcome.strategy,
            sweeps=outcome.sweeps,
            rows_read=self.rows_read,
            rows_written=sum(len(rows) for rows in outcome.rows),
            largest_move=outcome.largest_move,
            filled=filled,
            revised=revised,
            unchanged=unchanged,
            surprises=surprises(judged, self.arrival, modes),
        )
