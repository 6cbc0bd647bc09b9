"""Tables in memory, iterators of tables, DuckDB queries and database cursors as feeds."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from tensortide.data.tables import Table, is_table
from tensortide.errors import InputError
from tensortide.sources.columnar import judge_records
from tensortide.sources.columns import ColumnSpec, Piece
from tensortide.sources.resume import NAMED, KnownPlaces, ResumeAt

if TYPE_CHECKING:
    import pyarrow as pa

ROWS = 100_000


class TableFeed:
    """Records of tables, counted; with a `name` the ledger knows how many were taken."""

    unit = "record"
    path = None

    def __init__(self, source: Any, name: str | None) -> None:
        self.name = name or "tables"
        self.digest = None if name is None else f"{NAMED}{name}"
        tables = arrow_tables(source)
        first = next(tables, None)
        self._first = first
        self._tables = tables if first is None else itertools.chain([first], tables)
        self.names: list[str] = [] if first is None else first.column_names
        self.size: int | None = None
        self.done = 0

    @property
    def empty(self) -> bool:
        """Whether there is no table at all."""
        return self._first is None

    def sample(self) -> pa.Table:
        """Return the first table."""
        return self._first

    def start(self, known: KnownPlaces) -> ResumeAt:
        """Return how many records are done."""
        done = [] if self.digest is None else known.whole(self.digest)
        return ResumeAt(place=max((int(p.position or 0) for p in done), default=0))

    def pieces(self, wanted: ColumnSpec, start: ResumeAt) -> Iterator[Piece]:
        """Yield the records from a place on."""
        for table in self._tables:
            first, self.done = self.done, self.done + table.num_rows
            if self.done <= start.place:
                continue
            skip = max(start.place - first, 0)
            yield judge_records(table.select(wanted.names).slice(skip), wanted, first + skip)

    def close(self) -> None:
        """Nothing is open."""


def arrow_tables(source: Any) -> Iterator[pa.Table]:
    """Yield Arrow tables from whatever has records."""
    import pyarrow as pa

    if isinstance(source, pa.RecordBatchReader):
        yield from (_arrow_table(pa.Table.from_batches([batch])) for batch in source)
    elif type(source).__module__.split(".")[0] in ("duckdb", "_duckdb"):  # in chunks
        newer = hasattr(source, "to_arrow_reader")
        reader = source.to_arrow_reader(ROWS) if newer else source.fetch_arrow_reader(ROWS)
        yield from (_arrow_table(pa.Table.from_batches([batch])) for batch in reader)
    elif hasattr(source, "fetchmany") and hasattr(source, "description"):
        yield from _cursor_tables(source)
    elif is_table(source):
        yield _arrow_table(source)
    elif isinstance(source, Iterable):
        for table in source:
            if not is_table(table):
                raise InputError(
                    f"an iterator of tables was expected, but it yields {type(table).__name__}."
                )
            yield _arrow_table(table)
    else:
        raise InputError(
            f"records cannot be taken from {type(source).__name__}; give a path, a table, an "
            "iterator of tables, a DuckDB query or a database cursor."
        )


def _arrow_table(table: Any) -> pa.Table:
    import pyarrow as pa

    return pa.table(Table(table).columns)


def _cursor_tables(cursor: Any) -> Iterator[pa.Table]:
    """Read the rows of a DB-API cursor in chunks."""
    if cursor.description is None:
        raise InputError("the cursor has no result; execute a query first.")
    names = [column[0] for column in cursor.description]
    while rows := cursor.fetchmany(ROWS):
        columns = zip(*rows, strict=True)
        yield _arrow_table(dict(zip(names, (list(c) for c in columns), strict=True)))
