"""Bad records that were set aside: kept in the ledger with their step, shown as a CSV file."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import TYPE_CHECKING

from tensortide.atomic import write_whole

if TYPE_CHECKING:
    from tensortide.tracker.tracker import Tracker

FILE = "quarantine.csv"


def write_quarantine(tracker: Tracker) -> Path | None:
    """Write the file anew from the ledger, so that it has every bad record exactly once."""
    rows = tracker.quarantined()
    target = tracker.path / FILE
    if not rows:
        target.unlink(missing_ok=True)  # of a run that was learned again
        return None
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    writer.writerow(["source", "line", "reason", "record"])
    writer.writerows((bad.source, bad.line, bad.reason, bad.text) for bad in rows)
    write_whole(target, text.getvalue().encode())
    return target
