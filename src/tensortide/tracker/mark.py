"""A mark beside the ledger: which batch was committed last.

Until SQLite moves it into the database, the newest part of a ledger lies in its write-ahead log.
If that file is lost, the rest is a valid ledger of an earlier time; the mark tells that more had
been there.  It is written after a commit and never ahead of one, without waiting for the disk:
a mark that is behind is harmless.
"""

from __future__ import annotations

import json
from io import RawIOBase
from pathlib import Path
from typing import TYPE_CHECKING
from weakref import finalize

from tensortide.errors import FileError
from tensortide.tracker.chain import row_sum

if TYPE_CHECKING:
    from tensortide.tracker.ledger import Ledger

FILE = "last-commit"
_LENGTH = 90  # characters, longer than any mark


class Mark:
    """The mark of a run that is written to; its file stays open, since every step writes it."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / FILE
        self._file: RawIOBase | None = None

    def write(self, seq: int, chain: str) -> None:
        """Say that a batch is in the ledger: one write of always the same length."""
        if self._file is None:
            file = self._path.open("wb", buffering=0)
            self._release = finalize(self, file.close)  # of a run that nobody closed, too
            self._file = file
        text = json.dumps([seq, chain, row_sum((seq, chain))])
        self._file.seek(0)
        self._file.write(f"{text:{_LENGTH}}\n".encode())

    def remove(self) -> None:
        """Say nothing while the ledger changes as a whole."""
        self.close()
        self._path.unlink(missing_ok=True)

    def close(self) -> None:
        """Let go of the file."""
        if self._file is not None:
            self._file = None
            self._release()


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
