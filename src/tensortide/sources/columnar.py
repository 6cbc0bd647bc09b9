"""Parquet and Arrow files, batch by batch: a place is a number of records."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tensortide.data.arrow import plain_column
from tensortide.errors import ARROW_ERRORS, FileError, InputError
from tensortide.sources.bytestream import complaints, file_digest
from tensortide.sources.columns import BadRecord, ColumnSpec, Piece, piece_of
from tensortide.sources.resume import KnownPlaces, ResumeAt, Verdict
from tensortide.sources.sample import check_names

if TYPE_CHECKING:
    import pyarrow as pa

_ROWS = 1 << 17


class ColumnarFeed:
    """Records of one file of columns, which is known by the hash of all of it."""

    unit = "record"

    def __init__(self, path: Path, kind: str) -> None:
        self.path, self.name = path, str(path)
        self.digest = file_digest(path)
        with complaints(self.name):
            self._file = _Parquet(path) if kind == "parquet" else _arrow(path)
        self.names = self._file.names
        self.size: int | None = self._file.n_records
        self.done = 0
        try:
            check_names(self.name, self.names)
        except FileError:
            self.close()
            raise

    @property
    def empty(self) -> bool:
        """Whether there is no record."""
        return not self.size

    def sample(self) -> pa.Table:
        """Return the first records with all their columns."""
        import pyarrow as pa

        with complaints(self.name):
            for batch in self._file.batches(self.names, 10_000):
                return pa.Table.from_batches([batch])
        return pa.table({name: [] for name in self.names})

    def whole(self) -> pa.Table:
        """Return all records with all their columns."""
        import pyarrow as pa

        batches = list(self._file.batches(self.names, _ROWS))
        return pa.Table.from_batches(batches) if batches else self.sample()

    def start(self, known: KnownPlaces) -> ResumeAt:
        """Return how many records of this file are done, and what it is beside others."""
        own = known.of(self.path)
        if own and own[-1].digest != self.digest:
            return ResumeAt(verdict=Verdict.CHANGED, earlier=own[-1], generation=own[-1].generation)
        resume = ResumeAt(verdict=Verdict.KNOWN)
        if not own:
            resume = known.judge(known.whole(self.digest), self.path)
            own = known.of(self.path)
        if not own:
            return resume
        taken = int(own[-1].position or 0)
        return replace(resume, place=taken, generation=own[-1].generation)

    def pieces(self, wanted: ColumnSpec, start: ResumeAt) -> Iterator[Piece]:
        """Yield the records from a place on."""
        import pyarrow as pa

        at = 0
        with complaints(self.name):
            for batch in self._file.batches(wanted.names, _ROWS):
                first, at = at, at + batch.num_rows
                self.done = at
                if at <= start.place:
                    continue
                skip = max(start.place - first, 0)
                table = pa.Table.from_batches([batch]).slice(skip)
                yield self._judge(table, wanted, first + skip)

    def _judge(self, table: pa.Table, wanted: ColumnSpec, first: int) -> Piece:
        try:
            return judge_records(table, wanted, first)
        except InputError as error:
            raise InputError(f"{self.name}, from record {first + 1} on: {error}") from None

    def close(self) -> None:
        """Close the file."""
        self._file.close()


class _Parquet:
    def __init__(self, path: Path) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        with path.open("rb") as handle:
            schema = pq.read_schema(handle)
        texts = [f.name for f in schema if pa.types.is_string(f.type)]
        self._handle = path.open("rb")
        self._file = pq.ParquetFile(self._handle, read_dictionary=texts, pre_buffer=False)
        self.names: list[str] = self._file.schema_arrow.names
        facts = self._file.metadata
        self.n_records = sum(facts.row_group(i).num_rows for i in range(facts.num_row_groups))
        if self.n_records != facts.num_rows:
            self.close()
            raise FileError(
                f"{path}: is damaged: it says that it has {facts.num_rows:,} records, and has "
                f"{self.n_records:,}."
            )

    def batches(self, names: list[str], rows: int) -> Iterator[Any]:
        """Yield record batches of some columns."""
        yield from map(_valid, self._file.iter_batches(rows, columns=names, use_threads=False))

    def close(self) -> None:
        """Close the file."""
        self._handle.close()


class _Arrow:
    """An Arrow file of record batches; the compressed ones too."""

    def __init__(self, path: Path) -> None:
        import pyarrow as pa

        self._handle = pa.OSFile(str(path))
        self._file = pa.ipc.open_file(self._handle)
        self.names: list[str] = self._file.schema.names
        self._counts = [
            self._file.get_batch(i).num_rows for i in range(self._file.num_record_batches)
        ]
        self.n_records = sum(self._counts)

    def batches(self, names: list[str], rows: int) -> Iterator[Any]:
        """Yield record batches of some columns."""
        for i in range(self._file.num_record_batches):
            batch = _valid(self._file.get_batch(i).select(names))
            for first in range(0, batch.num_rows, rows):
                yield batch.slice(first, rows)

    def close(self) -> None:
        """Close the file."""
        self._handle.close()


class _ArrowStream:
    """Arrow's stream format in a file: how many records there are shows at the end only."""

    def __init__(self, path: Path) -> None:
        import pyarrow as pa

        self._path = path
        with pa.OSFile(str(path)) as handle, pa.ipc.open_stream(handle) as reader:
            self.names: list[str] = reader.schema.names
            self.n_records = sum(batch.num_rows for batch in reader)

    def batches(self, names: list[str], rows: int) -> Iterator[Any]:
        """Yield record batches of some columns."""
        import pyarrow as pa

        with pa.OSFile(str(self._path)) as handle, pa.ipc.open_stream(handle) as reader:
            for whole in reader:
                batch = _valid(whole.select(names))
                for first in range(0, batch.num_rows, rows):
                    yield batch.slice(first, rows)

    def close(self) -> None:
        """Nothing is left open."""


def _valid(batch: Any) -> Any:
    """Refuse a batch whose parts do not fit together: Arrow reads them as they are."""
    batch.validate(full=True)
    return batch


def _arrow(path: Path) -> _Arrow | _ArrowStream:
    with path.open("rb") as file:
        magic = file.read(6)
    if magic.startswith(b"FEA1"):
        raise FileError(f"{path}: is Feather of version 1; write it anew as version 2.")
    return _Arrow(path) if magic == b"ARROW1" else _ArrowStream(path)


def judge_records(table: pa.Table, wanted: ColumnSpec, first: int) -> Piece:
    """Set records aside that miss a field or whose value is not finite."""
    import pyarrow as pa
    import pyarrow.compute as pc

    table = pa.table({name: plain_column(name, table[name]) for name in wanted.names})
    n_records = table.num_rows
    numbers = np.arange(first + 1, first + n_records + 1)
    wrong, misfits = np.zeros(n_records, bool), np.zeros(n_records, bool)
    reasons: list[tuple[str, Any]] = []
    for name in wanted.names:
        column = table[name]
        if column.null_count:
            reasons.append((f"{name!r} is missing", column.is_null().to_numpy()))
        if name == wanted.value and pa.types.is_floating(column.type):
            finite = pc.fill_null(pc.is_finite(column), True).to_numpy()
            if not finite.all():
                reasons.append((f"{name!r} is not finite", ~finite))
        if name == wanted.value and wanted.bounded:
            values = _numbers(column)
            misfits = wanted.excludes(values)
    for flags in (misfits, *(flags for _, flags in reasons)):
        wrong |= flags
    if not wrong.any():
        columns = {n: table[n] for n in wanted.names}
        return piece_of(columns, numbers, numbers - 1, numbers, [], int(numbers[-1]))
    bad = []
    for row in np.flatnonzero(wrong):
        found = (why for why, flags in reasons if flags[row])
        reason = next(found, None) or wanted.misfit(values[row])
        number = int(numbers[row])
        text = _record_text(table, int(row))
        bad.append(BadRecord(line=number, end=number, reason=reason, text=text))
    good = table.filter(pa.array(~wrong))
    kept = numbers[~wrong]
    columns = {n: good[n] for n in wanted.names}
    return piece_of(columns, kept, kept - 1, kept, bad, int(numbers[-1]))


def _numbers(column: pa.ChunkedArray) -> Any:
    """Return values as floats, NaN where there is none; what is no number is judged later."""
    import pyarrow as pa

    with suppress(*ARROW_ERRORS):
        return column.cast(pa.float64()).to_numpy()
    return np.full(len(column), np.nan)


def _record_text(table: pa.Table, row: int) -> str:
    """Return a record as JSON, whatever it holds."""
    fields = {}
    for name in table.column_names:
        try:
            fields[name] = table[name][row].as_py()
        except (ValueError, OverflowError):  # a date far away
            fields[name] = str(table[name][row])
    return json.dumps(fields, default=str)
