"""Records cut into steps: by a column, by their number, or by file."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from tensortide.errors import InputError
from tensortide.sources.columns import END, LINE, START, BadRecord, Piece, without_places

if TYPE_CHECKING:
    import pyarrow as pa

    from tensortide.sources.resume import ResumeAt


@dataclass(frozen=True, slots=True)
class Cut:
    """How records become steps: one for each value of `column`, `rows` of them, or a file."""

    column: str | None = None
    rows: int | None = None

    def __str__(self) -> str:
        """Say it in words."""
        if self.column is not None:
            return f"one step for each {self.column}"
        return "one step for each file" if self.rows is None else f"steps of {self.rows:,} records"


@dataclass(frozen=True, slots=True, kw_only=True)
class StepRecords:
    """The records of one step, where they end, and what was bad among them.

    `part` counts the records of a sorted stretch up to the end of this step; None where the
    stretch is finished or nothing had to be sorted.  `place` None: at the end of the stretch.
    """

    table: pa.Table
    bad: list[BadRecord]
    place: int | None
    part: int | None
    label: str | None
    lines: tuple[int, int]


class UnorderedError(Exception):
    """The values of the step column do not ascend."""

    def __init__(self, line: int, value: Any, before: Any) -> None:
        super().__init__(f"{value} comes after {before}")
        self.line = line


def in_order(pieces: Iterable[Piece], column: str) -> bool:
    """Tell whether a column ascends throughout."""
    last = None
    for piece in pieces:
        values = _plain(piece.table[column])
        if not len(values):
            continue
        if not _ascends(values, last):
            return False
        last = values[len(values) - 1].as_py()
    return True


def stream_steps(pieces: Iterable[Piece], cut: Cut) -> Iterator[StepRecords]:
    """Cut records that come in order; holds one step and one piece at a time.

    Bad records between two values of the column belong to the step before them.
    """
    waiting: list[pa.Table] = []
    n_waiting = 0
    bad: list[BadRecord] = []
    last: Any = None
    end = 0
    for piece in pieces:
        end = piece.end
        table, bad = piece.table, bad + piece.bad
        if piece.known:  # learned before: of a pipe that is sent again
            waiting = [_after(part, piece.known) for part in waiting]
            n_waiting = sum(part.num_rows for part in waiting)
            table, bad = _after(table, piece.known), [b for b in bad if b.end > piece.known]
        if cut.column is not None:
            ends, last = _runs(table, cut.column, last, n_waiting > 0)
        else:
            ends = _counts(table.num_rows, n_waiting, cut.rows)
        begin = 0
        for stop in ends:
            waiting.append(table.slice(begin, stop - begin))
            by_value = cut.column is not None
            place = int(table[START][stop].as_py()) if by_value else _place(waiting)
            n_bad = bisect_right(bad, place, key=lambda b: b.end)
            yield _portion(waiting, bad[:n_bad], place, cut)
            bad = bad[n_bad:]
            waiting, n_waiting, begin = [], 0, stop
        rest = table.slice(begin)
        if rest.num_rows:
            waiting.append(rest)
            n_waiting += rest.num_rows
    if n_waiting or bad:
        yield _portion(waiting, bad, end, cut)


def _after(table: pa.Table, place: int) -> pa.Table:
    import pyarrow.compute as pc

    return table.filter(pc.greater(table[END], place))


def gather_steps(pieces: Iterable[Piece], cut: Cut, start: ResumeAt) -> Iterator[StepRecords]:
    """Sort the rest of a source in memory, then cut; a stretch that was begun is finished first."""
    import pyarrow as pa
    import pyarrow.compute as pc

    assert cut.column is not None
    held = list(pieces)
    bad = [b for piece in held for b in piece.bad]
    if not held:
        return
    table = pa.concat_tables(
        [p.table for p in held], promote_options="permissive"
    ).unify_dictionaries()
    stretches: list[tuple[Any, list[BadRecord], int, int | None]] = [(table, bad, 0, None)]
    if start.until is not None:
        begun = pc.less_equal(table[END], start.until)
        stretches = [
            (
                table.filter(begun),
                [b for b in bad if b.end <= start.until],
                start.part,
                start.until,
            ),
            (table.filter(pc.invert(begun)), [b for b in bad if b.end > start.until], 0, None),
        ]
    for part, aside, done, until in stretches:
        yield from _sort_and_cut(part, aside, cut, done, until)


def _sort_and_cut(
    table: pa.Table, bad: list[BadRecord], cut: Cut, done: int, until: int | None
) -> Iterator[StepRecords]:
    import pyarrow.compute as pc

    column = str(cut.column)
    order = pc.sort_indices(_plain(table[column]), sort_keys=[("", "ascending")])
    table = table.take(order)  # stable, so records of a step keep their order
    ends, _ = _runs(table, column, None, False)
    ends = [*ends, table.num_rows] if table.num_rows else ends
    begin = 0
    for stop in ends:
        if stop > done:
            last = stop == table.num_rows
            aside = [] if begin else bad  # of which step they are cannot be told
            portion = _portion([table.slice(begin, stop - begin)], aside, until, cut)
            yield replace(portion, part=None if last else stop)
        begin = stop
    if not ends and bad:
        yield _portion([], bad, until, cut)


def _portion(
    parts: list[pa.Table], bad: list[BadRecord], place: int | None, cut: Cut
) -> StepRecords:
    import pyarrow as pa

    parts = [part for part in parts if part.num_rows]
    numbers = [b.line for b in bad]
    label = None
    table = None
    if parts:
        table = (
            parts[0] if len(parts) == 1 else pa.concat_tables(parts, promote_options="permissive")
        )
        for part in (parts[0], parts[-1]):
            numbers += [part[LINE][0].as_py(), part[LINE][part.num_rows - 1].as_py()]
        if cut.column is not None:
            label = str(table[cut.column][0].as_py())
        table = without_places(table)
    return StepRecords(
        table=table, bad=bad, place=place, part=None, label=label,
        lines=(min(numbers), max(numbers)),
    )  # fmt: skip


def _runs(table: pa.Table, column: str, last: Any, waiting: bool) -> tuple[list[int], Any]:
    """Return where the value changes; nothing in the table ends the run at its end."""
    values = _plain(table[column])
    n_records = len(values)
    if not n_records:
        return [], last
    if not _ascends(values, last):
        raise _unordered_error(table, values, last)
    changes = _changes(values)
    ends = (np.flatnonzero(changes) + 1).tolist()
    if waiting and values[0].as_py() != last:
        ends = [0, *ends]
    return ends, values[n_records - 1].as_py()


def _counts(n_records: int, n_waiting: int, rows: int | None) -> list[int]:
    if rows is None:
        return []
    return list(range(rows - n_waiting, n_records + 1, rows))


def _place(waiting: list[pa.Table]) -> int:
    filled = [t for t in waiting if t.num_rows]
    return int(filled[-1][END][filled[-1].num_rows - 1].as_py())


def _plain(column: pa.ChunkedArray) -> pa.Array:
    import pyarrow as pa

    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def _changes(values: pa.Array) -> Any:
    import pyarrow.compute as pc

    return pc.not_equal(values.slice(1), values.slice(0, len(values) - 1)).to_numpy(
        zero_copy_only=False
    )


def _ascends(values: pa.Array, last: Any) -> bool:
    import pyarrow.compute as pc

    if last is not None and values[0].as_py() < last:
        return False
    less = pc.less(values.slice(1), values.slice(0, len(values) - 1))
    return not pc.any(less).as_py()


def _unordered_error(table: pa.Table, values: pa.Array, last: Any) -> UnorderedError:
    lines = table[LINE].to_pylist()
    for i, value in enumerate(values.to_pylist()):
        if last is not None and value < last:
            return UnorderedError(lines[i], value, last)
        last = value
    raise InputError("the values of the step column cannot be compared.")
