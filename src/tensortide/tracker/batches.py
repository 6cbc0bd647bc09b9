"""Batches in the ledger: what came, when, from where, and what it did."""

from __future__ import annotations

import json
import warnings
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from tensortide.data.tables import is_table
from tensortide.errors import TensortideWarning
from tensortide.info import Info

if TYPE_CHECKING:
    import pyarrow as pa

    from tensortide.core.types import Shape
    from tensortide.tracker.ledger import Ledger

#: What of a report goes into the ledger.  Norms and objectives stay out: of a batch with a
#: single record they would give the raw value away.
_KEPT = (
    "entries", "duplicates", "grown", "in_old_box", "filled", "revised", "unchanged", "retracted",
    "new_labels", "prequential_error", "learned_error", "strategy", "sweeps", "converged",
    "rows_read", "rows_written", "seconds",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Origin:
    """Where the records of a step end in their source, by its content.

    `digest` is that of the first `position` bytes of a text (`head`: of its beginning), or of a
    whole file with `position` records taken.  `part` counts records of a stretch that is not
    finished.
    """

    source: str
    digest: str | None = None
    position: int | None = None
    part: int | None = None
    label: str | None = None
    head: str | None = None

    @property
    def batch_id(self) -> str | None:
        """The id that the content gives, or None."""
        if self.digest is None:
            return None
        return f"{self.digest}@{self.position}{'' if self.part is None else f'#{self.part}'}"


@dataclass(frozen=True, slots=True)
class BadRecord:
    """A record that cannot be learned, and why."""

    line: int
    reason: str
    text: str
    source: str


@dataclass(frozen=True, slots=True)
class Line:
    """What the ledger says about a batch besides its report.

    `earlier` are the ends of further steps that it holds.
    """

    batch_id: str
    origin: Origin = Origin("")
    bad: Sequence[BadRecord] = ()
    earlier: Sequence[Origin] = ()


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
        warnings.warn(
            f"batch {known.info.batch_id!r} was applied at step {known.info.step} with "
            f"{known.records} records; now it has {count}. Nothing was done: give another id to "
            "what is new.",
            TensortideWarning,
            stacklevel=4,
        )


def _count(records: Any) -> int | None:
    """Return the number of records where it can be had for nothing."""
    if isinstance(records, dict):
        records = next(iter(records.values()), ())
    elif not is_table(records):
        return None
    return len(records) if hasattr(records, "__len__") else None


def read_quarantine(ledger: Ledger) -> list[tuple[str, int, str, str]]:
    """Return the bad records that were set aside: source, line, reason, record."""
    return ledger.db.execute(
        "SELECT source, line, reason, record FROM quarantine ORDER BY rowid"
    ).fetchall()


def read_places(ledger: Ledger) -> list[tuple[int, str, int | None, str | None, str]]:
    """Return where steps have ended: position, digest, part, head, source."""
    return ledger.db.execute(
        "SELECT position, digest, part, head, source FROM batches "
        "WHERE digest IS NOT NULL ORDER BY seq"
    ).fetchall()


def next_number(ledger: Ledger) -> int:
    """Return the number of the next line in the ledger."""
    (last,) = ledger.db.execute("SELECT max(seq) FROM batches").fetchone()
    return 1 if last is None else int(last) + 1


def write_batch(
    ledger: Ledger,
    seq: int,
    kind: str,
    info: Info,
    shape: Shape,
    records: int,
    line: Line,
) -> None:
    """Add a line, with its bad records."""
    where = line.origin
    report = {name: getattr(info, name) for name in _KEPT}
    now = datetime.now(UTC).isoformat(timespec="milliseconds")
    ledger.db.execute(
        "INSERT INTO batches VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            seq, line.batch_id, kind, now, where.source or None, where.digest, where.head,
            where.position, where.part, where.label, records, len(line.bad), info.step,
            json.dumps(list(shape)), json.dumps(report),
        ),
    )  # fmt: skip
    ledger.db.executemany(
        "INSERT INTO quarantine VALUES (?, ?, ?, ?, ?)",
        [(seq, b.source, b.line, b.reason, b.text) for b in line.bad],
    )


def batches_table(ledger: Ledger) -> pa.Table:
    """Return all lines of the ledger, oldest first."""
    import pyarrow as pa

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
