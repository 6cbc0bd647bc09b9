"""One writer at a time: a lock that goes away with its process, however that ends."""

from __future__ import annotations

import os
import sqlite3
from datetime import datetime
from pathlib import Path

from tensortide.errors import FileError
from tensortide.tracker.ledger import sentences

FILE = "lock.sqlite"


class Lock:
    """A write transaction held open on a database of its own, so that readers are not disturbed.

    SQLite's locks work on every system and are released by the system when a process dies.
    """

    def __init__(self, folder: Path, *, wait: float) -> None:
        with sentences(folder):
            self._db = sqlite3.connect(folder / FILE, isolation_level=None, timeout=wait)
            try:
                self._db.execute("BEGIN IMMEDIATE")
                self._db.execute("CREATE TABLE IF NOT EXISTS holder (pid INTEGER, since TEXT)")
                self._db.execute("DELETE FROM holder")
                since = datetime.now().isoformat(" ", "seconds")
                self._db.execute("INSERT INTO holder VALUES (?, ?)", (os.getpid(), since))
                self._db.execute("COMMIT")
                self._db.execute("BEGIN IMMEDIATE")
            except sqlite3.OperationalError as error:
                holder = self._holder()
                self._db.close()
                if "locked" not in str(error):
                    raise
                raise FileError(
                    f"{folder}: {holder} is writing to this run; wait until it has finished, or "
                    "use another folder."
                ) from None

    def _holder(self) -> str:
        try:
            row = self._db.execute("SELECT pid, since FROM holder").fetchone()
        except sqlite3.Error:
            row = None
        return "another process" if row is None else f"process {row[0]} (since {row[1]})"

    def release(self) -> None:
        """Let the next one write."""
        self._db.close()
