"""The cells whose new value was farthest from its prediction.

These are raw values: a run without history keeps them only when asked.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tensortide.core.complete import Complete
from tensortide.core.types import Positions

if TYPE_CHECKING:
    from tensortide.ahead import Ahead
    from tensortide.data.modes import Modes
    from tensortide.tracker.ledger import Ledger

KEPT = 50


@dataclass(frozen=True, slots=True)
class Surprise:
    """A cell as text, what came, what was expected, and which of its labels were new then."""

    step: int
    cell: dict[str, str]
    value: float
    predicted: float
    fresh: list[str]


def write_surprises(ledger: Ledger, seq: int, modes: Modes, ahead: Ahead) -> None:
    """Keep the farthest cells of this step if they belong to the farthest of all."""
    values, predicted = ahead.incoming.cells.values, ahead.outcome.predicted
    gaps = np.abs(values - predicted)
    top = np.argsort(-gaps, kind="stable")[:KEPT]
    places = _places(ahead, top)
    rows = []
    for place, e in zip(places, top, strict=True):
        cell, fresh = {}, []
        for mode, (name, labels) in enumerate(zip(modes.names, modes.labels, strict=True)):
            position, known = int(place[mode]), len(labels)
            new = position >= known
            label: Any = ahead.arrival.fresh[mode][position - known] if new else None
            cell[name] = str(label if new else labels.label(position))
            fresh += [name] if new else []
        values_ = (float(values[e]), float(predicted[e]), float(gaps[e]))
        rows.append((seq, json.dumps(cell), *values_, json.dumps(fresh)))
    ledger.db.executemany("INSERT INTO surprises VALUES (?, ?, ?, ?, ?, ?)", rows)
    ledger.db.execute(
        "DELETE FROM surprises WHERE rowid NOT IN "
        "(SELECT rowid FROM surprises ORDER BY gap DESC, rowid LIMIT ?)",
        (KEPT,),
    )


def read_surprises(ledger: Ledger, count: int = KEPT) -> list[Surprise]:
    """Return the farthest cells of all steps, farthest first."""
    rows = ledger.db.execute(
        "SELECT step, cell, value, predicted, fresh FROM surprises JOIN batches USING (seq) "
        "ORDER BY gap DESC, surprises.rowid LIMIT ?",
        (count,),
    )
    return [
        Surprise(step, json.loads(cell), value, predicted, json.loads(fresh))
        for step, cell, value, predicted, fresh in rows
    ]


def _places(ahead: Ahead, top: Positions) -> Positions:
    """Return where the cells stand in the whole tensor."""
    change = ahead.incoming.change
    if isinstance(change.arrived, Complete):
        local = np.stack(np.unravel_index(top, change.arrived.shape), axis=1)
        return np.asarray(local + np.array(change.new_shape) - np.array(change.arrived.shape))
    local = change.arrived[top].astype(np.int64)
    for mode, positions in enumerate(change.positions):
        if positions is not None:
            local[:, mode] = positions[local[:, mode]]
    return np.asarray(local)
