"""A run that is learned again from its files, and takes the place of the old one at once."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from tensortide.errors import InputError
from tensortide.sources.resume import KnownPlaces
from tensortide.tracker.history import FOLDER
from tensortide.tracker.schema import column_names

if TYPE_CHECKING:
    from tensortide.tracker.ledger import Ledger
    from tensortide.tracker.tracker import Tracker

BESIDE = ".learned-again"
_TABLES = ("meta", "labels", "factors", "arrays", "batches", "segments", "surprises", "quarantine")


def files_of_run(tracker: Tracker, given: list[Path]) -> list[Path]:
    """Return all files of a run in the order in which it learned them, then those that are new.

    Everything that it learned must still be there: what came by a pipe or from Python is gone.
    """
    files: dict[Path, None] = {}
    for name, file in KnownPlaces(tracker.base, tracker.places()).files().items():
        if file is None or not file.is_file():
            raise InputError(
                f"{tracker.path}: the run cannot be learned again, since {name} is no longer "
                "there; --changed-file new takes the changed file as new records."
            )
        files[file.resolve()] = None
    batches = tracker.batches().select(["kind", "source", "label"]).to_pylist()
    other = [b for b in batches if b["source"] is None]
    if other:
        what = other[0]["label"] or "records from Python"
        raise InputError(
            f"{tracker.path}: the run cannot be learned again from files: {what} did not come "
            "from one; --changed-file new takes the changed file as new records."
        )
    named = {path.resolve(): path for path in given}
    files |= dict.fromkeys(named)
    return [named.get(file, file) for file in files]


def first_steps(tracker: Tracker) -> int:
    """Return how many steps were learned together at first."""
    kinds: list[str] = tracker.batches()["kind"].to_pylist()
    return 1 + kinds.count("joined")


@contextmanager
def begin_beside(tracker: Tracker) -> Iterator[Tracker]:
    """Begin a run like this one in a folder within it, which is removed at the end."""
    folder = tracker.path / BESIDE
    shutil.rmtree(folder, ignore_errors=True)  # of a time when this was killed
    side = type(tracker).create(folder, **tracker.params)
    side.base = tracker.base
    try:
        side.set_options(**tracker.options)
        yield side
    finally:
        side.close()
        shutil.rmtree(folder, ignore_errors=True)


def adopt_ledger(ledger: Ledger, side: Path) -> list[Path]:
    """Take over all that another ledger holds, in one transaction; return what is of no use then.

    Segments have names of their own, so they can be there before the ledger names them.
    """
    old = [ledger.folder / FOLDER / n for (n,) in ledger.db.execute("SELECT name FROM segments")]
    if (side / FOLDER).is_dir():
        (ledger.folder / FOLDER).mkdir(exist_ok=True)
        for segment in sorted((side / FOLDER).iterdir()):
            segment.rename(ledger.folder / FOLDER / segment.name)
    ledger.mark.remove()  # it would say that batches are lost
    ledger.db.execute("ATTACH ? AS side", (str(side / ledger.file.name),))
    try:
        with ledger.writing() as db:
            for table in _TABLES:
                columns = ", ".join(column_names(db, table))
                db.execute(f"DELETE FROM main.{table}")
                db.execute(
                    f"INSERT INTO main.{table} ({columns}) SELECT {columns} FROM side.{table}"
                )
    finally:
        # a cursor that an interrupt left open holds the other file; it goes with the connection
        with suppress(sqlite3.OperationalError):
            ledger.db.execute("DETACH side")
    return old
