"""A step that is computed and not yet taken: what a model, or a ledger, is about to adopt."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tensortide.core.tensor.dense_box import DenseBox, box_values
from tensortide.core.tensor.factors import values_at
from tensortide.data.cells import unique_cells
from tensortide.online.info import Info
from tensortide.online.score import norm, share_missed
from tensortide.online.surprise import surprises

if TYPE_CHECKING:
    from tensortide.arrays import Floats, Positions
    from tensortide.core.steps.outcome import Outcome
    from tensortide.core.tensor.fibres import FibreChange, Fibres
    from tensortide.data.arrival import Arrival
    from tensortide.data.modes import Modes
    from tensortide.data.sketch import DistinctCells
    from tensortide.data.store import Store
    from tensortide.data.timeline import Timeline
    from tensortide.online.changes import BatchChange
    from tensortide.online.dispersion import Dispersion
    from tensortide.online.surprise import Judged


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Everything of the next state that differs from this one, and the report of the step.

    Attributes
    ----------
    arrival, retract
        What came, and the cells to be forgotten.
    change, outcome
        What the engine saw, and what it computed.
    store, seen, dispersion
        The history, the count of distinct cells and the spread of misses after the step.
    grown_last, step
        The mode that grew last, and the number of the step.
    info
        The report: whoever adopts the plan has nothing left to compute.
    line, memory_of_fibres, fibres
        The order of labels after the step, the memory of fibres, and what changes in it.
    """

    arrival: Arrival
    retract: Positions | None
    change: BatchChange
    outcome: Outcome
    store: Store | None
    seen: DistinctCells
    grown_last: int
    step: int
    dispersion: Dispersion
    info: Info
    line: Timeline | None = None
    memory_of_fibres: Fibres | None = None
    fibres: FibreChange | None = None


def report_step(
    step: int, judged: Judged, outcome: Outcome, arrival: Arrival, modes: Modes,
    learned: Floats, *, retract: Positions | None, rows_read: int,
) -> Info:  # fmt: skip
    """Say what a step does, before it is taken."""
    change, loss = judged.change, judged.loss
    cells, absorbed, values = change.cells, change.absorbed, change.values
    with np.errstate(over="ignore", invalid="ignore"):
        gap = values - judged.expected
        rest = values - loss.mean(learned)
        size, missed, left = map(norm, (values, gap, rest))
    filled = revised = unchanged = None
    if absorbed is not None:
        filled, revised, unchanged = (
            int(kind.sum()) for kind in (absorbed.filled, absorbed.revised, absorbed.unchanged)
        )
    new = zip(modes.names, arrival.fresh, strict=True)
    return Info(
        step=step, entries=len(cells.values), duplicates=cells.n_duplicates, grown=change.n_grown,
        in_old_box=len(cells.values) - change.n_grown,
        retracted=0 if retract is None else _n_distinct(retract, arrival),
        new_labels={name: len(labels) for name, labels in new},
        prequential_error=share_missed(missed, size), learned_error=share_missed(left, size),
        norm=size, missed=missed, objective=outcome.objective, alpha=outcome.alpha,
        strategy=outcome.strategy, sweeps=outcome.sweeps, rows_read=rows_read,
        rows_written=sum(len(rows) for rows in outcome.rows), largest_move=outcome.largest_move,
        filled=filled, revised=revised, unchanged=unchanged,
        surprises=surprises(judged, arrival, modes),
    )  # fmt: skip


def learned_values(change: BatchChange, outcome: Outcome) -> Floats:
    """Return the model's values of the batch's cells after the step."""
    arrived = change.arrived
    if isinstance(arrived, DenseBox):
        return box_values(arrived.last_rows(outcome.rows))
    return values_at(outcome.rows, arrived)


def _n_distinct(cells: Positions, arrival: Arrival) -> int:
    return len(unique_cells(np.ascontiguousarray(cells, np.int32), arrival.old_shape))
