"""A step that is computed but not yet taken: what a model, or a ledger, is about to adopt."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tensortide.core.complete import Complete, box_values
from tensortide.core.factors import values_at
from tensortide.core.products import dot
from tensortide.core.types import Floats, Places, Positions
from tensortide.data.cells import unique_cells
from tensortide.info import Info

if TYPE_CHECKING:
    from tensortide.core.outcome import Outcome
    from tensortide.data.modes import Arrival
    from tensortide.data.sketch import DistinctCells
    from tensortide.data.store import Store
    from tensortide.incoming import Incoming


@dataclass(frozen=True, slots=True)
class Ahead:
    """Everything of the next state that differs from this one, and where it came from."""

    arrival: Arrival
    retract: Positions | None
    incoming: Incoming
    outcome: Outcome
    store: Store | None
    seen: DistinctCells
    grown_last: int
    step: int
    rows_read: int

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

    def info(self, names: Sequence[str]) -> Info:
        """Say what the step does; `names` are those of the modes."""
        incoming, outcome = self.incoming, self.outcome
        cells, absorbed, n_grown = incoming.cells, incoming.absorbed, incoming.n_grown
        with np.errstate(over="ignore", invalid="ignore"):
            gap = cells.values - outcome.predicted
            rest = cells.values - self._learned()
            size, missed, left = (math.sqrt(dot(v, v)) for v in (cells.values, gap, rest))
        filled = revised = unchanged = None
        if absorbed is not None:
            filled, revised, unchanged = (
                int(kind.sum()) for kind in (absorbed.filled, absorbed.revised, absorbed.unchanged)
            )
        fresh = self.arrival.fresh
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
        )
