"""A mark beside the ledger: which batch was committed last.

Until SQLite moves it into the database, the newest part of a ledger lies in its write-ahead log.
If that file is lost, the rest is a valid ledger of an earlier time; the mark tells that more had
been there.  It is written after a commit and never ahead of one, without waiting for the disk:
a mark that is behind is harmless.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from tensortide.errors import FileError
from tensortide.tracker.chain import row_sum

if TYPE_CHECKING:
    from tensortide.tracker.ledger import Ledger

FILE = "last-commit"


def write_mark(folder: Path, seq: int, chain: str) -> None:
    """Say that a batch is in the ledger."""
    text = json.dumps([seq, chain, row_sum((seq, chain))])
    (folder / FILE).write_text(text + "\n")


def remove_mark(folder: Path) -> None:
    """Say nothing while the ledger changes as a whole."""
    (folder / FILE).unlink(missing_ok=True)


def read_mark(folder: Path) -> tuple[int, str] | None:
    """Return number and link of the batch that was committed last; None where nothing is said."""
    try:
        text = (folder / FILE).read_text()
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError):
        text = ""
    try:
        seq, chain, checksum = json.loads(text)
        if row_sum((seq, chain)) != checksum:
            raise ValueError
    except (ValueError, TypeError):
        return None  # half-written when the power failed: the ledger itself is on the disk
    return int(seq), str(chain)


def check_mark(ledger: Ledger, mark: tuple[int, str] | None) -> None:
    """Refuse a ledger that lacks what had been committed; the mark was read before it."""
    if mark is None:
        return
    seq, chain = mark
    found = ledger.db.execute("SELECT chain FROM batches WHERE seq = ?", (seq,)).fetchone()
    if found is not None and found[0] == chain:
        return
    (last,) = ledger.db.execute("SELECT ifnull(max(seq), 0) FROM batches").fetchone()
    raise FileError(
        f"{ledger.folder}: {seq} batches were committed, but the ledger has "
        f"{'another one there' if found else f'{last} of them'}: its log {ledger.file.name}-wal "
        f"was lost, or the ledger is an old copy. Put the newer files back; or delete "
        f"{FILE} in that folder to go on from what is there, and what was lost is learned again "
        "from its files."
    )
