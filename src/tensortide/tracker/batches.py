"""Batches in the ledger: what came, when, from where, and what it did."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from tensortide.data.tables import is_table
from tensortide.errors import FileError, warn_user
from tensortide.online.info import Info
from tensortide.sources.columns import BadRecord
from tensortide.sources.resume import Place
from tensortide.tracker.chain import FIRST, link
from tensortide.tracker.schema import BATCH, QUARANTINE, bad_records, insert

if TYPE_CHECKING:
    import pyarrow as pa

    from tensortide.arrays import Shape
    from tensortide.tracker.ledger import Ledger

#: What of a report goes into the ledger.  Norms and objectives stay out: of a batch with a
#: single record they would give the raw value away.
_KEPT = (
    "entries", "duplicates", "grown", "in_old_box", "filled", "revised", "unchanged", "retracted",
    "new_labels", "prequential_error", "learned_error", "strategy", "sweeps", "converged",
    "rows_read", "rows_written", "seconds",
)  # fmt: skip


_PLACE = tuple(field.name for field in fields(Place))
_NOWHERE = Place(source="")


@dataclass(frozen=True, slots=True)
class Line:
    """What the ledger says about a batch besides its report.

    `earlier` are those of further steps that it holds.
    """

    batch_id: str
    origin: Place = _NOWHERE
    bad: Sequence[BadRecord] = ()
    earlier: Sequence[Line] = ()


@dataclass(frozen=True, slots=True)
class Applied:
    """A batch that is in the ledger: its report, and how many records it had."""

    info: Info
    records: int


def known_batch(ledger: Ledger, batch_id: str) -> Applied | None:
    """Return the batch of an id, if it is in the ledger."""
    row = ledger.db.execute(
        "SELECT step, report, records FROM batches WHERE batch_id = ?", (batch_id,)
    ).fetchone()
    if row is None:
        return None
    info = Info(step=row[0], **json.loads(row[1]))
    return Applied(replace(info, batch_id=batch_id, repeated=True), row[2])


def warn_of_others(known: Applied, records: Any) -> None:
    """Warn where the records that come under a known id cannot be the same."""
    count = _count(records)
    if count is not None and count != known.records:
        warn_user(
            f"batch {known.info.batch_id!r} was applied at step {known.info.step} with "
            f"{known.records} records; now it has {count}. Nothing was done: give another id to "
            "what is new."
        )


def _count(records: Any) -> int | None:
    """Return the number of records where it can be had for nothing."""
    if isinstance(records, dict):
        records = next(iter(records.values()), ())
    elif not is_table(records):
        return None
    return len(records) if hasattr(records, "__len__") else None


def read_quarantine(ledger: Ledger) -> list[BadRecord]:
    """Return the bad records that were set aside, oldest first."""
    rows = ledger.db.execute("SELECT source, line, reason, record FROM quarantine ORDER BY rowid")
    return [
        BadRecord(source=source, line=line, reason=reason, text=text)
        for source, line, reason, text in rows
    ]


def read_places(ledger: Ledger) -> list[Place]:
    """Return where steps have ended, oldest first; refuse a ledger that is not what was written."""
    verify_chain(ledger)
    rows = ledger.db.execute(
        f"SELECT {', '.join(_PLACE)} FROM batches WHERE digest IS NOT NULL ORDER BY seq"
    )
    return [Place(**dict(zip(_PLACE, row, strict=True))) for row in rows]


def last_link(ledger: Ledger) -> tuple[int, str]:
    """Return number and link of the last line; zero before the first."""
    found = ledger.db.execute("SELECT seq, chain FROM batches ORDER BY seq DESC LIMIT 1").fetchone()
    return (0, FIRST) if found is None else (int(found[0]), str(found[1]))


def verify_chain(ledger: Ledger) -> int:
    """Refuse a ledger in which a line was changed, lost or added; return how many there are."""
    chain, number = FIRST, 0
    bad: dict[int, list[Any]] = {}
    for record in ledger.db.execute(
        f"SELECT {', '.join(QUARANTINE)} FROM quarantine ORDER BY rowid"
    ):
        bad.setdefault(record[0], []).append(record)
    rows = ledger.db.execute(f"SELECT {', '.join(BATCH)}, chain FROM batches ORDER BY seq")
    for *row, stored in rows:
        number += 1
        chain = link(chain, row, bad.pop(row[0], []))
        if chain != stored or row[0] != number:
            raise FileError(
                f"{ledger.folder}: the ledger is damaged: batch {number} is not what was written."
            )
    if bad:
        raise FileError(f"{ledger.folder}: the ledger is damaged: it has bad records of no batch.")
    return number


def next_number(ledger: Ledger) -> int:
    """Return the number of the next line in the ledger."""
    return last_link(ledger)[0] + 1


def write_batch(
    ledger: Ledger, kind: str, info: Info, shape: Shape, records: int, line: Line
) -> tuple[int, str]:
    """Add a line, with its bad records; return its number and its link."""
    last, chain = last_link(ledger)
    seq, where = last + 1, line.origin
    report = {name: getattr(info, name) for name in _KEPT}
    now = datetime.now(UTC).isoformat(timespec="milliseconds")
    row = (
        seq, line.batch_id, kind, now, where.source or None, where.path, where.generation,
        where.renamed, where.digest, where.head, where.position, where.part, where.label, records,
        len(line.bad), info.step, json.dumps(list(shape)), json.dumps(report),
    )  # fmt: skip
    ledger.db.executemany(
        insert("quarantine", QUARANTINE),
        [(seq, b.source, b.line, b.reason, b.text) for b in line.bad],
    )
    chain = link(chain, row, bad_records(ledger.db, seq) if line.bad else ())
    ledger.db.execute(insert("batches", (*BATCH, "chain")), (*row, chain))
    return seq, chain


def batches_table(ledger: Ledger) -> pa.Table:
    """Return all lines of the ledger, oldest first."""
    import pyarrow as pa

    verify_chain(ledger)
    names = ledger.get("modes") or {"names": []}
    rows = ledger.db.execute(
        "SELECT seq, batch_id, kind, at, source, position, label, records, bad, step, shape, "
        "report FROM batches ORDER BY seq"
    ).fetchall()
    columns: dict[str, list[Any]] = {name: [] for name in _COLUMNS}
    for *plain, shape, report in rows:
        for name, value in zip(_COLUMNS, plain, strict=False):
            columns[name].append(value)
        facts = json.loads(report)
        for name in _COLUMNS[len(plain) :]:
            columns[name].append(facts[name])
        for name, size in zip(names["names"], json.loads(shape) or [None] * 99, strict=False):
            columns.setdefault(f"size_{name}", []).append(size)
    return pa.table(columns)


_COLUMNS = (
    "number", "batch_id", "kind", "at", "source", "position", "label", "records", "bad", "step",
    "entries", "grown", "in_old_box", "filled", "revised", "unchanged", "retracted",
    "prequential_error", "learned_error", "duplicates", "seconds",
)  # fmt: skip


def report_of(info: Info) -> dict[str, Any]:
    """Return a report as JSON knows it, for machines."""
    report = asdict(replace(info, surprises=[]))  # raw values: they are kept apart, or not at all
    return {name: value for name, value in report.items() if value is not None and value != []}
