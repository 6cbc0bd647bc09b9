"""The ledger: one SQLite database (WAL) in which every step is one transaction."""

from __future__ import annotations

import contextlib
import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tensortide.errors import FileError

FORMAT = "tensortide run"
VERSION = 1
FILE = "run.sqlite"

#: Small pages: a step writes rows here and there, and a page is what a row costs.
PAGE = 1024
#: Pages of the write-ahead log before SQLite moves them into the database (20 MB).
LOG_PAGES = 20_000

_SCHEMA = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE labels (mode INTEGER, position INTEGER, label NOT NULL, PRIMARY KEY (mode, position))
    WITHOUT ROWID;
CREATE TABLE factors (place INTEGER PRIMARY KEY, rows BLOB NOT NULL);
CREATE TABLE arrays (name TEXT PRIMARY KEY, dtype TEXT NOT NULL, shape TEXT NOT NULL,
    data BLOB NOT NULL);
CREATE TABLE batches (
    seq INTEGER PRIMARY KEY, batch_id TEXT UNIQUE NOT NULL, kind TEXT NOT NULL, at TEXT NOT NULL,
    source TEXT, digest TEXT, head TEXT, position INTEGER, part INTEGER, label TEXT,
    records INTEGER NOT NULL, bad INTEGER NOT NULL, step INTEGER NOT NULL, shape TEXT NOT NULL,
    report TEXT NOT NULL);
CREATE TABLE segments (seq INTEGER PRIMARY KEY, name TEXT NOT NULL, kind TEXT NOT NULL,
    checksum TEXT NOT NULL);
CREATE TABLE surprises (seq INTEGER NOT NULL, cell TEXT NOT NULL, value REAL NOT NULL,
    predicted REAL NOT NULL, gap REAL NOT NULL, fresh TEXT NOT NULL);
CREATE TABLE quarantine (seq INTEGER NOT NULL, source TEXT NOT NULL, line INTEGER NOT NULL,
    reason TEXT NOT NULL, record TEXT NOT NULL);
CREATE INDEX quarantine_by_batch ON quarantine (seq);
"""


class Ledger:
    """A connection to the database of a run; SQLite's errors come out as sentences."""

    def __init__(self, folder: Path, *, read_only: bool) -> None:
        self.folder = folder
        self.file = folder / FILE
        self.read_only = read_only
        if not self.file.is_file():
            raise FileError(f"{folder}: there is no run here (no {FILE}).")
        with sentences(folder):
            self.db = self._connected()
            try:
                self._check_format()
                if not read_only:
                    _settle(self.db)
            except BaseException:
                self.db.close()
                raise

    @classmethod
    def create(cls, folder: Path, meta: dict[str, Any]) -> None:
        """Make the database, whole or not at all: it gets its name when it is complete."""
        begun = folder / f".{FILE}.begun"
        with sentences(folder):
            for leftover in folder.glob(f"{begun.name}*"):  # of a creation that was killed
                leftover.unlink()
            for old in folder.glob(f"{FILE}*"):  # of a run that has learned nothing
                old.unlink()
            db = sqlite3.connect(begun, isolation_level=None)
            try:
                db.execute(f"PRAGMA page_size = {PAGE}")
                _settle(db)
                db.execute("BEGIN")
                for statement in _SCHEMA.split(";\n"):
                    db.execute(statement)
                facts = {"format": FORMAT, "version": VERSION, **meta}
                db.executemany(
                    "INSERT INTO meta VALUES (?, ?)",
                    [(key, json.dumps(value)) for key, value in facts.items()],
                )
                db.execute("COMMIT")
            finally:
                db.close()
            begun.rename(folder / FILE)

    def _connected(self) -> sqlite3.Connection:
        if not self.read_only:
            return sqlite3.connect(self.file, isolation_level=None, timeout=30.0)
        uri = self.file.resolve().as_uri()
        try:
            db = sqlite3.connect(f"{uri}?mode=ro", uri=True, isolation_level=None, timeout=30.0)
            db.execute("SELECT count(*) FROM sqlite_master")
        except sqlite3.OperationalError:
            # a folder that cannot be written: readable as it stands, if nobody is writing
            if Path(f"{self.file}-wal").exists():
                raise
            db = sqlite3.connect(f"{uri}?immutable=1", uri=True, isolation_level=None)
        return db

    def _check_format(self) -> None:
        meta = dict(
            self.db.execute("SELECT key, value FROM meta WHERE key IN ('format', 'version')")
        )
        if json.loads(meta.get("format", "null")) != FORMAT:
            raise FileError(f"{self.folder}: is not a Tensortide run.")
        version = json.loads(meta.get("version", "0"))
        if version != VERSION:
            advice = "upgrade Tensortide" if version > VERSION else "start a new run"
            raise FileError(
                f"{self.folder}: the run has format version {version}; this Tensortide reads "
                f"version {VERSION}, please {advice}."
            )

    @property
    def unused(self) -> bool:
        """Whether nothing has been committed yet, so that nothing is lost by beginning anew."""
        (lines,) = self.db.execute("SELECT count(*) FROM batches").fetchone()
        return not lines and self.get("facts") is None

    def get(self, key: str) -> Any:
        """Return a value of the table `meta`, or None."""
        row = self.db.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
        return None if row is None else json.loads(row[0])

    def put(self, key: str, value: Any) -> None:
        """Set a value of the table `meta`."""
        self.db.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (key, json.dumps(value)))

    @contextlib.contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """Make everything that is written within one transaction."""
        with sentences(self.folder):
            try:
                self._settled()
                self.db.execute("BEGIN IMMEDIATE")
                yield self.db
                self.db.execute("COMMIT")
            except BaseException:
                if self.db.in_transaction:
                    self.db.execute("ROLLBACK")
                raise

    @contextlib.contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """See one state of the ledger throughout, whatever is written meanwhile."""
        with sentences(self.folder):
            try:
                self._settled()
                self.db.execute("BEGIN")
                yield self.db
            finally:
                self._settled()

    def _settled(self) -> None:
        """End a transaction that an interrupt has left open."""
        if self.db.in_transaction:
            self.db.execute("ROLLBACK")

    def close(self) -> None:
        """Close the connection; the log is moved into the database."""
        with contextlib.suppress(sqlite3.Error):
            self.db.close()


def is_unused(folder: Path) -> bool:
    """Tell whether a run has learned nothing yet, so that it may be begun anew."""
    with contextlib.closing(Ledger(folder, read_only=True)) as ledger:
        return ledger.unused


def made_folder(folder: Path) -> Path:
    """Return the folder, made if need be."""
    if folder.exists() and not folder.is_dir():
        raise FileError(f"{folder}: is a file; a run is a folder.")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileError(f"{folder}: cannot be made: {error.strerror}.") from None
    return folder


def _settle(db: sqlite3.Connection) -> None:
    """Choose safety: a commit is on the disk when it returns."""
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("PRAGMA synchronous = FULL")
    db.execute("PRAGMA secure_delete = ON")  # what is deleted is gone
    db.execute(f"PRAGMA wal_autocheckpoint = {LOG_PAGES}")


@contextlib.contextmanager
def sentences(folder: Path) -> Iterator[None]:
    """Turn the errors of SQLite and of the file system into sentences that say what to do."""
    try:
        yield
    except sqlite3.Error as error:
        raise FileError(f"{folder}: {_said(error)}") from None
    except FileError:
        raise
    except OSError as error:
        raise FileError(
            f"{folder}: cannot be written: {error.strerror}. Nothing of this step was kept."
        ) from None
    except (UnicodeEncodeError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise FileError(
            f"{folder}: the ledger is damaged ({error}); `tensortide check` tells more."
        ) from None


def _said(error: sqlite3.Error) -> str:
    text = str(error)
    if "full" in text or "disk I/O" in text:
        return (
            f"the disk is full or failing ({text}). Nothing of this step was kept; make room and "
            "run the same command again."
        )
    if "readonly" in text or "unable to open" in text:
        return f"cannot be written or opened ({text}); check the permissions of the folder."
    if "locked" in text:
        return "another process is using the run; try again when it has finished."
    if "thread" in text:
        return "a tracker belongs to the thread that opened it; open it again in this one."
    return f"the ledger is damaged or no ledger at all ({text}); `tensortide check` tells more."
