"""The ledger: one SQLite database (WAL) in which every step is one transaction."""

from __future__ import annotations

import contextlib
import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tensortide.errors import FileError, TensortideError, warn_user
from tensortide.tracker.chain import row_sum
from tensortide.tracker.mark import Mark, check_mark, read_mark
from tensortide.tracker.schema import (
    FORMAT,
    VERSION,
    create_tables,
    insert,
    meta_row,
    migrate,
    table_sum,
)

FILE = "run.sqlite"

#: Small pages: a step writes rows here and there, and a page is what a row costs.
PAGE = 1024
#: Pages of the write-ahead log before SQLite moves them into the database (20 MB).
LOG_PAGES = 20_000
#: Commits after which the log is moved into the database, however small it is.
LOG_COMMITS = 64


_META = ("key", "value", "checksum")


class Ledger:
    """A connection to the database of a run; SQLite's errors come out as sentences."""

    def __init__(self, folder: Path, *, read_only: bool) -> None:
        self.folder = folder
        self.file = folder / FILE
        self.read_only = read_only
        self.mark = Mark(folder)
        self._remembered = False  # whether the log still has what was deleted
        if not self.file.is_file():
            raise FileError(f"{folder}: there is no run here (no {FILE}).")
        self._commits = 0
        with sentences(folder), _damage(folder):
            mark = read_mark(folder)  # before the ledger, so that it cannot be ahead of it
            self.db = self._connect()
            try:
                version = self._check_format()
                if not read_only:
                    _settle(self.db)
                if version < VERSION:
                    self._migrate(version)
                try:
                    check_mark(self, mark)
                except FileError:  # a run that was learned again meanwhile has fewer batches
                    check_mark(self, read_mark(folder))
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
                create_tables(db)
                sums = {"segments": 0, "surprises": 0}
                facts = {"format": FORMAT, "version": VERSION, "sums": sums, **meta}
                rows = [meta_row(key, value) for key, value in facts.items()]
                db.executemany(insert("meta", _META), rows)
                db.execute("COMMIT")
            finally:
                db.close()
            begun.rename(folder / FILE)

    def _connect(self) -> sqlite3.Connection:
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

    def _check_format(self) -> int:
        """Return the version of a run that can be read."""
        meta = dict(
            self.db.execute("SELECT key, value FROM meta WHERE key IN ('format', 'version')")
        )
        if json.loads(meta.get("format", "null")) != FORMAT:
            raise FileError(f"{self.folder}: is not a Tensortide run.")
        version = json.loads(meta.get("version", "0"))
        if not isinstance(version, int) or version < 1:
            raise FileError(f"{self.folder}: the ledger is damaged (its version is {version!r}).")
        if version > VERSION:
            raise FileError(
                f"{self.folder}: the run has format version {version}; this Tensortide reads up "
                f"to version {VERSION}, please upgrade Tensortide."
            )
        return version

    def _migrate(self, version: int) -> None:
        """Bring an older ledger up to date: on the disk, or a copy in memory for a reader."""
        if self.read_only:
            copy = sqlite3.connect(":memory:", isolation_level=None)
            self.db.backup(copy)
            self.db.close()
            self.db = copy
        self.db.execute("BEGIN IMMEDIATE")
        try:
            migrate(self.db, version)
            self.db.execute("COMMIT")
        except (LookupError, TypeError, ValueError) as error:
            raise FileError(
                f"{self.folder}: the run of format version {version} is damaged "
                f"({type(error).__name__}: {error})."
            ) from None

    @property
    def unused(self) -> bool:
        """Whether nothing has been committed yet, so that nothing is lost by beginning anew."""
        (lines,) = self.db.execute("SELECT count(*) FROM batches").fetchone()
        return not lines and self.get("facts") is None

    def get(self, key: str) -> Any:
        """Return a value of the table `meta`, or None."""
        with sentences(self.folder):
            row = self.db.execute(
                "SELECT value, checksum FROM meta WHERE key = ?", (key,)
            ).fetchone()
            if row is None:
                return None
            if row_sum((key, row[0])) != row[1]:
                raise FileError(
                    f"{self.folder}: the ledger is damaged: {key!r} is not what was written."
                )
            return json.loads(row[0])

    def put(self, key: str, value: Any) -> None:
        """Set a value of the table `meta`."""
        self.db.execute(insert("meta", _META, "INSERT OR REPLACE"), meta_row(key, value))

    def sum_up(self, table: str) -> None:
        """Remember the checksum of a small table, after it was written."""
        self.put("sums", self.get("sums") | {table: table_sum(self.db, table)})

    def verify_sum(self, table: str) -> None:
        """Refuse a small table that is not what was written."""
        if table_sum(self.db, table) != self.get("sums")[table]:
            raise FileError(
                f"{self.folder}: the ledger is damaged: its {table} are not those that were "
                "written."
            )

    def mark_commit(self, seq: int, chain: str) -> None:
        """Say beside the ledger what it holds; now and then move the log into the database."""
        with contextlib.suppress(OSError):  # a mark that is behind is harmless
            self.mark.write(seq, chain)
        self._commits += 1
        if self._commits % LOG_COMMITS == 1:  # the first ones of a process too
            with contextlib.suppress(sqlite3.Error):
                self.db.execute("PRAGMA wal_checkpoint(PASSIVE)")

    @contextlib.contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """Make everything that is written within one transaction."""
        with sentences(self.folder):
            try:
                self._roll_back()
                self.db.execute("BEGIN IMMEDIATE")
                yield self.db
                self.db.execute("COMMIT")
            except BaseException:
                if self.db.in_transaction:
                    self.db.execute("ROLLBACK")
                raise
            if self._remembered:
                with contextlib.suppress(FileError):  # the step itself is on the disk
                    self._empty_log()

    def forget(self, what: str) -> None:
        """Take what was deleted out of the log too, where it would be until the run is closed.

        That cannot be while somebody reads an earlier state: it is said, and commits try again.
        """
        if not self._empty_log():
            warn_user(
                f"{self.folder}: another process is reading the run, and its log keeps {what} "
                "until that has finished and the next step is learned."
            )

    def _empty_log(self) -> bool:
        self._remembered = True
        with sentences(self.folder):
            self.db.execute("PRAGMA busy_timeout = 0")
            try:
                (busy, *_) = self.db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
            finally:
                self.db.execute("PRAGMA busy_timeout = 30000")
        self._remembered = bool(busy)
        return not self._remembered

    @contextlib.contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """See one state of the ledger throughout, whatever is written meanwhile."""
        with sentences(self.folder), _damage(self.folder):
            try:
                self._roll_back()
                self.db.execute("BEGIN")
                yield self.db
            finally:
                self._roll_back()

    def _roll_back(self) -> None:
        """End a transaction that an interrupt has left open."""
        if self.db.in_transaction:
            self.db.execute("ROLLBACK")

    def close(self) -> None:
        """Close the connection; the log is moved into the database."""
        with contextlib.suppress(sqlite3.Error, FileError):
            if self._remembered:
                self._empty_log()
        with contextlib.suppress(sqlite3.Error):
            self.db.close()
        self.mark.close()


@contextlib.contextmanager
def _damage(folder: Path) -> Iterator[None]:
    """Say that what was read makes no sense."""
    try:
        yield
    except TensortideError:
        raise
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        raise FileError(
            f"{folder}: the ledger is damaged ({type(error).__name__}: {error}); `tensortide "
            "check` tells more."
        ) from error


def is_unused(folder: Path) -> bool:
    """Tell whether a run has learned nothing yet, so that it may be begun anew."""
    with contextlib.closing(Ledger(folder, read_only=True)) as ledger:
        return ledger.unused


def make_folder(folder: Path) -> Path:
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
        raise FileError(f"{folder}: {_sentence(error)}") from None
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


def _sentence(error: sqlite3.Error) -> str:
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
