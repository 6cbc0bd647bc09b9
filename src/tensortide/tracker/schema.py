"""The tables of a ledger, their version, and the steps from older versions to this one."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from typing import Any

from tensortide.tracker.chain import FIRST, link, row_sum

FORMAT = "tensortide run"
VERSION = 2

TABLES = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL, checksum INTEGER NOT NULL DEFAULT 0)
    WITHOUT ROWID;
CREATE TABLE labels (mode INTEGER, position INTEGER, label NOT NULL, PRIMARY KEY (mode, position))
    WITHOUT ROWID;
CREATE TABLE factors (place INTEGER PRIMARY KEY, rows BLOB NOT NULL);
CREATE TABLE arrays (name TEXT PRIMARY KEY, dtype TEXT NOT NULL, shape TEXT NOT NULL,
    data BLOB NOT NULL);
CREATE TABLE batches (
    seq INTEGER PRIMARY KEY, batch_id TEXT UNIQUE NOT NULL, kind TEXT NOT NULL, at TEXT NOT NULL,
    source TEXT, digest TEXT, head TEXT, position INTEGER, part INTEGER, label TEXT,
    records INTEGER NOT NULL, bad INTEGER NOT NULL, step INTEGER NOT NULL, shape TEXT NOT NULL,
    report TEXT NOT NULL, path TEXT, generation INTEGER NOT NULL DEFAULT 0, renamed TEXT,
    chain TEXT NOT NULL DEFAULT '');
CREATE TABLE segments (seq INTEGER PRIMARY KEY, name TEXT NOT NULL, kind TEXT NOT NULL,
    checksum TEXT NOT NULL);
CREATE TABLE surprises (seq INTEGER NOT NULL, cell TEXT NOT NULL, value REAL NOT NULL,
    expected REAL NOT NULL, low REAL, high REAL, probability REAL, revised INTEGER NOT NULL,
    new_labels TEXT NOT NULL, size REAL NOT NULL);
CREATE TABLE quarantine (seq INTEGER NOT NULL, source TEXT NOT NULL, line INTEGER NOT NULL,
    reason TEXT NOT NULL, record TEXT NOT NULL);
CREATE INDEX quarantine_by_batch ON quarantine (seq);
CREATE UNIQUE INDEX each_place_once ON batches (path, generation, position, ifnull(part, -1))
    WHERE path IS NOT NULL;
"""

#: The columns of a batch, in the order in which its link of the chain covers them.
BATCH = (
    "seq", "batch_id", "kind", "at", "source", "path", "generation", "renamed", "digest", "head",
    "position", "part", "label", "records", "bad", "step", "shape", "report",
)  # fmt: skip
QUARANTINE = ("seq", "source", "line", "reason", "record")
SURPRISE = (
    "seq", "cell", "value", "expected", "low", "high", "probability", "revised", "new_labels",
    "size",
)  # fmt: skip
SEGMENT = ("seq", "name", "kind", "checksum")


def insert(table: str, columns: tuple[str, ...], word: str = "INSERT") -> str:
    """Return the statement that adds a row, every column by its name.

    >>> insert("factors", ("place", "rows"))
    'INSERT INTO factors (place, rows) VALUES (?, ?)'
    """
    marks = ", ".join("?" * len(columns))
    return f"{word} INTO {table} ({', '.join(columns)}) VALUES ({marks})"


def column_names(db: sqlite3.Connection, table: str) -> list[str]:
    """Return the names of a table's columns."""
    return [row[1] for row in db.execute(f"PRAGMA main.table_info({table})")]


def create_tables(db: sqlite3.Connection) -> None:
    """Make the tables of a new ledger."""
    for statement in TABLES.split(";\n"):
        db.execute(statement)


def meta_row(key: str, value: Any) -> tuple[str, str, int]:
    """Return a row of `meta`: the value as JSON, and its checksum."""
    text = json.dumps(value)
    return key, text, row_sum((key, text))


def migrate(db: sqlite3.Connection, version: int) -> None:
    """Bring the tables of an older version to this one; the caller has a transaction open."""
    for number in range(version, VERSION):
        MIGRATIONS[number](db)
    meta = db.execute("SELECT key, value FROM meta").fetchall()
    facts = {key: json.loads(value) for key, value in meta} | {"version": VERSION}
    rows = [meta_row(key, value) for key, value in facts.items()]
    db.executemany(insert("meta", ("key", "value", "checksum"), "INSERT OR REPLACE"), rows)


def _from_1(db: sqlite3.Connection) -> None:
    """Checksums for what had none, paths of sources, columns for what surprises held as JSON."""
    db.execute("ALTER TABLE meta ADD COLUMN checksum INTEGER NOT NULL DEFAULT 0")
    db.execute("ALTER TABLE batches ADD COLUMN path TEXT")
    db.execute("ALTER TABLE batches ADD COLUMN generation INTEGER NOT NULL DEFAULT 0")
    db.execute("ALTER TABLE batches ADD COLUMN renamed TEXT")
    db.execute("ALTER TABLE batches ADD COLUMN chain TEXT NOT NULL DEFAULT ''")
    made = {words.split()[3] if words.startswith("CREATE UNIQUE") else words.split()[2]: words
            for words in map(str.strip, TABLES.split(";\n")) if words}  # fmt: skip
    db.execute(made["each_place_once"])
    _chain_all(db)
    old = db.execute(
        "SELECT seq, cell, value, predicted, gap, fresh FROM surprises ORDER BY rowid"
    ).fetchall()
    db.execute("DROP TABLE surprises")
    db.execute(made["surprises"])
    rows = []
    for seq, cell, value, expected, size, text in old:
        facts = json.loads(text)
        if isinstance(facts, list):  # of a run that was begun before there were ranges
            facts = {"fresh": facts}
        rows.append((
            seq, cell, value, expected, facts.get("low"), facts.get("high"),
            facts.get("probability"), int(facts.get("revised", False)),
            json.dumps(facts["fresh"]), size,
        ))  # fmt: skip
    db.executemany(insert("surprises", SURPRISE), rows)
    sums = {"segments": table_sum(db, "segments"), "surprises": table_sum(db, "surprises")}
    db.execute(insert("meta", ("key", "value")), ("sums", json.dumps(sums)))


def _chain_all(db: sqlite3.Connection) -> None:
    """Link batches that have no chain yet."""
    chain = FIRST
    rows = db.execute(f"SELECT {', '.join(BATCH)} FROM batches ORDER BY seq").fetchall()
    for row in rows:
        chain = link(chain, row, bad_records(db, row[0]))
        db.execute("UPDATE batches SET chain = ? WHERE seq = ?", (chain, row[0]))


def bad_records(db: sqlite3.Connection, seq: int) -> list[tuple[Any, ...]]:
    """Return the bad records that were set aside with a batch."""
    return db.execute(
        f"SELECT {', '.join(QUARANTINE)} FROM quarantine WHERE seq = ? ORDER BY rowid", (seq,)
    ).fetchall()


def table_sum(db: sqlite3.Connection, table: str) -> int:
    """Return a checksum of all rows of a small table, in whatever order they lie."""
    columns = {"segments": SEGMENT, "surprises": SURPRISE}[table]
    return sum(map(row_sum, db.execute(f"SELECT {', '.join(columns)} FROM {table}")))


MIGRATIONS: dict[int, Callable[[sqlite3.Connection], None]] = {1: _from_1}
