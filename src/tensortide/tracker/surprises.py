"""The values of all steps that fitted least.

These are raw values: a run without history keeps them only when asked.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tensortide import surprise
    from tensortide.tracker.ledger import Ledger

KEPT = 50


@dataclass(frozen=True, slots=True)
class Surprise:
    """A cell as text, what came, what was expected with its 95 % range, and how likely it was.

    `fresh` names the labels that were new then; `revised` says that a published value was
    corrected.
    """

    step: int
    cell: dict[str, str]
    value: float
    predicted: float
    fresh: list[str]
    low: float | None = None
    high: float | None = None
    probability: float | None = None
    revised: bool = False


def write_surprises(ledger: Ledger, seq: int, found: Sequence[surprise.Surprise]) -> None:
    """Keep the surprises of this step if they belong to the largest of all."""
    rows = []
    for one in found:
        cell = json.dumps({name: str(label) for name, label in one.cell.items()})
        size = -math.log10(max(one.probability, 1e-300))
        if size >= 300.0:  # beyond numbers: the farther out, the larger
            size += math.log10(1.0 + abs(one.value - one.expected) / (1.0 + abs(one.expected)))
        facts = {
            "fresh": one.fresh,
            "low": one.low,
            "high": one.high,
            "probability": one.probability,
            "revised": one.revised,
        }
        rows.append((seq, cell, one.value, one.expected, size, json.dumps(facts)))
    ledger.db.executemany("INSERT INTO surprises VALUES (?, ?, ?, ?, ?, ?)", rows)
    ledger.db.execute(
        "DELETE FROM surprises WHERE rowid NOT IN "
        "(SELECT rowid FROM surprises ORDER BY gap DESC, rowid LIMIT ?)",
        (KEPT,),
    )


def read_surprises(ledger: Ledger, count: int = KEPT) -> list[Surprise]:
    """Return the largest surprises of all steps, the least likely first."""
    rows = ledger.db.execute(
        "SELECT step, cell, value, predicted, fresh FROM surprises JOIN batches USING (seq) "
        "ORDER BY gap DESC, surprises.rowid LIMIT ?",
        (count,),
    )
    found = []
    for step, cell, value, predicted, text in rows:
        facts = json.loads(text)
        if isinstance(facts, list):  # a run that was begun before there were ranges
            facts = {"fresh": facts}
        found.append(Surprise(step, json.loads(cell), value, predicted, **facts))
    return found
