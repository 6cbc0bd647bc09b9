"""Tables of any library as columns of codes and distinct labels, without a loop per record."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import numpy as np

from tensortide.arrays import Floats, Positions
from tensortide.data.arrow import arrow_columns, finer_than_microseconds
from tensortide.errors import InputError
from tensortide.validate import check_columns_exist, check_values


class _WithColumns(Protocol):
    """A table of pandas, polars, pyarrow, duckdb, or what narwhals knows besides."""

    @property
    def columns(self) -> Any: ...


#: What is taken for a table of records.
TableLike: TypeAlias = Mapping[str, Any] | _WithColumns


@dataclass(frozen=True, slots=True)
class Column:
    """A column of labels: ``distinct[codes[i]]`` is the label of record i."""

    kind: str
    codes: Positions
    distinct: list[Any]


class Table:
    """Records as Arrow columns: from pandas, polars, pyarrow, duckdb or a dict of columns."""

    def __init__(self, records: Any) -> None:
        self.columns = arrow_columns(records)
        lengths = {name: len(column) for name, column in self.columns.items()}
        if len(set(lengths.values())) > 1:
            raise InputError(f"the columns have different lengths: {lengths}.")
        self.n_records = next(iter(lengths.values()), 0)

    @property
    def names(self) -> list[str]:
        """Names of the columns."""
        return list(self.columns)

    def require(self, names: tuple[str, ...], advice: str = "") -> None:
        """Refuse a table that lacks a column."""
        check_columns_exist(self.columns, names, advice=advice)

    def labels(self, name: str) -> Column:
        """Return a column of labels, hashed to codes."""
        import pyarrow as pa
        import pyarrow.compute as pc

        column = self.columns[name]
        if column.null_count:
            row = pc.index(pc.is_null(column), pa.scalar(True)).as_py()
            raise InputError(f"the label of mode {name!r} is missing in record {row}.")
        kind, column = _label_kind(column, name)
        if pa.types.is_dictionary(column.type) and _repeats(column.dictionary):
            column = column.dictionary_decode()
        coded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
        codes = np.asarray(coded.indices.to_numpy(zero_copy_only=False), np.int64)
        used, codes = _used_codes(codes, len(coded.dictionary))
        try:
            distinct = coded.dictionary.take(pa.array(used)).to_pylist()
        except (OverflowError, ValueError) as error:  # far dates, text that is no UTF-8
            raise InputError(
                f"column {name!r} holds labels that cannot be read: {error}."
            ) from None
        return Column(kind, codes, distinct)

    def values(self, name: str) -> Floats:
        """Return a column of finite numbers."""
        import pyarrow as pa
        import pyarrow.compute as pc

        column = self.columns[name]
        if pa.types.is_dictionary(column.type):
            column = column.dictionary_decode()
        kind = column.type
        if not (
            pa.types.is_integer(kind)
            or pa.types.is_floating(kind)
            or pa.types.is_decimal(kind)
            or pa.types.is_boolean(kind)
            or pa.types.is_null(kind)
        ):
            raise InputError(f"column {name!r} must hold numbers, not {kind}{_first_word(column)}.")
        if column.null_count:
            row = pc.index(pc.is_null(column), pa.scalar(True)).as_py()
            raise InputError(
                f"{name!r} is missing in record {row}; leave cells without a value out."
            )
        return check_values(
            column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False), name
        )


def is_table(records: Any) -> bool:
    """Tell whether the input has named columns."""
    return isinstance(records, Mapping) or any(
        hasattr(type(records), name) for name in ("columns", "column_names")
    )


def _first_word(column: Any) -> str:
    """Name the record that makes a column of numbers a column of text, where there is one."""
    import pyarrow as pa

    if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
        return ""
    for row, word in enumerate(column):
        try:
            float(word.as_py() if word.is_valid else 0.0)
        except UnicodeDecodeError:
            return f": record {row} has bytes that are no text"
        except ValueError:
            return f": record {row} has {word.as_py()!r}"
    return ""


def _repeats(words: Any) -> bool:
    """Tell whether a dictionary has the same word twice."""
    import pyarrow.compute as pc

    return len(pc.unique(words)) < len(words)


def _label_kind(column: Any, name: str) -> tuple[str, Any]:
    """Return the kind of label, and the column in the one form that this kind has."""
    import pyarrow as pa

    coded = pa.types.is_dictionary(column.type)
    kind = column.type.value_type if coded else column.type
    types = pa.types
    if types.is_string(kind) or types.is_large_string(kind):
        return "text", column
    if types.is_boolean(kind):
        return "boolean", column
    plain = column.dictionary_decode() if coded else column
    if types.is_integer(kind) or (types.is_decimal(kind) and kind.scale == 0):
        try:
            return "integer", plain.cast(pa.int64())
        except pa.ArrowInvalid:
            row = _first(plain, lambda n: not -(2**63) <= n < 2**63)
            raise InputError(
                f"the label of mode {name!r} in record {row} is beyond 2^63; give such numbers as "
                "text."
            ) from None
    if types.is_date(kind):
        try:
            return "date", plain.cast(pa.date32())
        except pa.ArrowInvalid:
            raise InputError(
                f"column {name!r} holds dates that are no whole days; give them as times."
            ) from None
    if types.is_timestamp(kind):  # with a time zone: as times in UTC
        return ("datetime" if kind.tz is None else "datetime UTC"), _microseconds(plain, name)
    raise InputError(
        f"column {name!r} holds {kind} values, which cannot be labels; labels are text, whole "
        "numbers (convert with astype('int64')), dates, times or booleans."
    )


def _microseconds(times: Any, name: str) -> Any:
    """Return times in microseconds; refuse those that are finer, or too far away."""
    import pyarrow as pa

    try:
        return times.cast(pa.timestamp("us", tz=times.type.tz)).cast(pa.timestamp("us"))
    except pa.ArrowInvalid:
        if times.type.unit == "ns":
            plain = times.cast(pa.timestamp("ns"))
            row = int(np.flatnonzero(plain.cast(pa.int64()).to_numpy() % 1000)[0])
            shown = np.datetime64(plain[row].value, "ns")
            raise InputError(finer_than_microseconds(name, row, shown)) from None
        raise InputError(
            f"column {name!r} holds times that cannot be read: years must lie between 1 and 9999."
        ) from None


def _first(column: Any, wrong: Callable[[Any], bool]) -> int:
    """Return the first record that is wrong, of which there is one."""
    return next(row for row, cell in enumerate(column) if wrong(cell.as_py()))


def _used_codes(codes: Positions, n_distinct: int) -> tuple[Positions, Positions]:
    """Drop distinct labels that no record has (categories of a filtered table)."""
    present = np.zeros(n_distinct, bool)
    present[codes] = True
    if present.all():
        return np.arange(n_distinct), codes
    return np.flatnonzero(present), (np.cumsum(present) - 1)[codes]
