"""Bad records that were set aside: kept in the ledger with their step, shown as a CSV file."""

from __future__ import annotations

import csv
import os
from pathlib import Path
from typing import TYPE_CHECKING

from tensortide.tracker.ledger import sentences

if TYPE_CHECKING:
    from tensortide.tracker.tracker import Tracker

FILE = "quarantine.csv"


def write_quarantine(tracker: Tracker) -> Path | None:
    """Write the file anew from the ledger, so that it has every bad record exactly once."""
    rows = tracker.quarantined()
    target = tracker.path / FILE
    if not rows:
        return None
    begun = tracker.path / f".{FILE}.begun"
    with sentences(tracker.path):
        with begun.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(["source", "line", "reason", "record"])
            writer.writerows(rows)
        os.replace(begun, target)
    return target
