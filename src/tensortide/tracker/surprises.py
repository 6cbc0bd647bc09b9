"""The values of all steps that fitted least.

These are raw values: a run without history keeps them only when asked.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tensortide.errors import warn_user
from tensortide.tracker.schema import SURPRISE, insert

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tensortide.online import surprise
    from tensortide.tracker.ledger import Ledger

KEPT = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptSurprise:
    """A surprise as the ledger has it: its step, and its cell as text.

    `low` to `high` is the 95 % range of what was expected, `fresh` names the labels that were new
    then, `revised` says that a published value was corrected.
    """

    step: int
    cell: dict[str, str]
    value: float
    expected: float
    fresh: list[str]
    low: float | None = None
    high: float | None = None
    probability: float | None = None
    revised: bool = False

    @property
    def predicted(self) -> float:
        """What `expected` was called before."""
        sentence = "KeptSurprise.predicted is now called expected; the next version will refuse it."
        warn_user(sentence, DeprecationWarning)
        return self.expected


def write_surprises(ledger: Ledger, seq: int, found: Sequence[surprise.Surprise]) -> None:
    """Keep the surprises of this step if they belong to the largest of all."""
    rows = []
    for one in found:
        cell = json.dumps({name: str(label) for name, label in one.cell.items()})
        size = -math.log10(max(one.probability, 1e-300))
        if size >= 300.0:  # beyond numbers: the farther out, the larger
            size += math.log10(1.0 + abs(one.value - one.expected) / (1.0 + abs(one.expected)))
        rows.append((
            seq, cell, one.value, one.expected, one.low, one.high, one.probability,
            int(one.revised), json.dumps(one.fresh), size,
        ))  # fmt: skip
    ledger.db.executemany(insert("surprises", SURPRISE), rows)
    ledger.db.execute(
        "DELETE FROM surprises WHERE rowid NOT IN "
        "(SELECT rowid FROM surprises ORDER BY size DESC, rowid LIMIT ?)",
        (KEPT,),
    )
    ledger.sum_up("surprises")


def read_surprises(ledger: Ledger, count: int = KEPT) -> list[KeptSurprise]:
    """Return the largest surprises of all steps, the least likely first."""
    ledger.verify_sum("surprises")
    rows = ledger.db.execute(
        "SELECT step, cell, value, expected, new_labels, low, high, probability, revised "
        "FROM surprises JOIN batches USING (seq) ORDER BY size DESC, surprises.rowid LIMIT ?",
        (count,),
    )
    return [
        KeptSurprise(
            step=step, cell=json.loads(cell), value=value, expected=expected,
            fresh=json.loads(fresh), low=low, high=high, probability=probability,
            revised=bool(revised),
        )
        for step, cell, value, expected, fresh, low, high, probability, revised in rows
    ]  # fmt: skip
