"""Columns of any library as plain Arrow arrays: of one type, decoded, no two values made one."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from tensortide.errors import ARROW_ERRORS, InputError
from tensortide.validate import check_columns_differ

_WHOLE_128 = 38  # digits of the widest decimal that 128 bits hold


def arrow_columns(records: Any) -> dict[str, Any]:
    """Return the columns of a table as Arrow arrays by name."""
    if isinstance(records, Mapping):
        check_columns_differ([str(name) for name in records])
        return {str(name): _arrow_column(str(name), column) for name, column in records.items()}
    import narwhals as nw

    check_columns_differ([str(name) for name in _names(records)])
    try:
        frame = nw.from_native(records)
    except TypeError:
        raise InputError(
            f"records of type {type(records).__name__} cannot be read; give a pandas, polars or "
            "pyarrow table, a dict of columns, a Batch or an array."
        ) from None
    if isinstance(frame, nw.LazyFrame):
        frame = frame.collect()
    return {str(name): _of_series(str(name), frame.get_column(name)) for name in frame.columns}


def _names(records: Any) -> Iterable[Any]:
    """Return the names of the columns, also where two are the same; none of a lazy table."""
    if hasattr(type(records), "column_names"):  # Arrow, whose `columns` are the data
        return list(records.column_names)
    lazy = type(records).__name__ == "LazyFrame"  # polars works them out, and warns
    return [] if lazy else list(records.columns)


def _arrow_column(name: str, column: Any) -> Any:
    """Return a column of a dict: a list, an array or a series of any library."""
    import pyarrow as pa

    unordered = isinstance(column, str | bytes | set | frozenset | Mapping)
    if unordered or not hasattr(column, "__len__"):
        raise InputError(f"column {name!r} must be a list or an array, not the single {column!r}.")
    if isinstance(column, list | tuple):
        return _of_objects(name, column)
    if isinstance(column, np.ndarray):
        return _of_array(name, column)
    import narwhals as nw

    series = nw.from_native(column, series_only=True, pass_through=True)
    if isinstance(series, nw.Series):
        return _of_series(name, series)
    with _Refusing(name):
        return plain_column(name, pa.array(column))


def _of_series(name: str, series: Any) -> Any:
    """Return a series of a library that narwhals knows."""
    import narwhals as nw
    import pyarrow as pa

    native = series.to_native()
    kind = getattr(native, "dtype", None)
    if type(kind).__name__ == "SparseDtype":  # pandas: this one column of the records, dense
        series = nw.from_native(native.sparse.to_dense(), series_only=True)
        kind = series.to_native().dtype
    if isinstance(kind, np.dtype) and (kind.kind in "Oc" or kind == np.longdouble):
        return _of_array(name, series.to_numpy(), pandas=True)
    with _Refusing(name):
        if series.dtype in (nw.Int128, nw.UInt128):
            series = series.cast(nw.Decimal(_WHOLE_128, 0))
        arrow = isinstance(native, pa.ChunkedArray)  # checked chunk by chunk before they are joined
        return plain_column(name, native if arrow else series.to_arrow())


def _of_array(name: str, column: np.ndarray[Any, Any], *, pandas: bool = False) -> Any:
    """Return a NumPy array; of objects, as a list of them; in pandas NaN is a missing value."""
    import pyarrow as pa

    if column.dtype.kind == "O" and column.ndim == 1:
        return _of_objects(name, column.tolist(), pandas=pandas)
    if column.dtype.kind == "c":
        raise InputError(
            f"column {name!r} holds complex numbers, which are neither labels nor values; give "
            "the real and the imaginary part as columns of their own."
        )
    if column.dtype == np.longdouble:
        column = column.astype(np.float64)
    with _Refusing(name):
        return plain_column(name, pa.array(column, from_pandas=pandas or None))


def _of_objects(name: str, column: Sequence[Any], *, pandas: bool = False) -> Any:
    """Return a list of Python's or NumPy's values; refuse types that Arrow would make one."""
    import pyarrow as pa

    types = {kind for kind in set(map(type, column)) if kind is not type(None)}
    _check_one_type(name, column, types)
    with _Refusing(name):
        if any(issubclass(kind, np.datetime64) for kind in types):
            return plain_column(name, pa.array(_dates_of_numpy(name, column)))
        return plain_column(name, pa.array(column, from_pandas=pandas or None))


def _check_one_type(name: str, column: Sequence[Any], types: set[type]) -> None:
    """Refuse types that Arrow would make one: dates and times, zones and none, flags and numbers.

    Arrow takes the first type for all, and cuts a time to its date, a nanosecond to zero.
    """
    if any(issubclass(kind, dt.datetime) for kind in types):
        _check_times(name, column)
    numbers = [k for k in types if issubclass(k, int | np.integer) and not issubclass(k, bool)]
    if np.bool_ in types and numbers:
        raise InputError(
            f"column {name!r} mixes types: true and false with whole numbers; convert one of them."
        )


def _check_times(name: str, column: Sequence[Any]) -> None:
    zones: set[bool] = set()
    for record, value in enumerate(column):
        if not isinstance(value, dt.date) or value != value:  # noqa: PLR0124 - pandas' NaT
            continue
        if not isinstance(value, dt.datetime):
            raise InputError(
                f"column {name!r} mixes times with dates, as in record {record} ({value}); give "
                "all of them as times, or all as dates."
            )
        zones.add(value.tzinfo is not None)
        if len(zones) > 1:
            raise InputError(
                f"column {name!r} mixes times with and without a time zone, as in record {record} "
                f"({value}); give all of them with one, or none."
            )
        if getattr(value, "nanosecond", 0):
            raise InputError(finer_than_microseconds(name, record, value))


def finer_than_microseconds(name: str, record: int, value: Any) -> str:
    """Say that a time has nanoseconds, which labels have not."""
    return (
        f"column {name!r} has times finer than microseconds, first in record {record} ({value}); "
        "round them to microseconds, or give them as text, so that no two labels become one."
    )


def _dates_of_numpy(name: str, column: Sequence[Any]) -> np.ndarray[Any, Any]:
    """Return a list of NumPy's dates as an array; of several units the finest has to hold all."""
    units = {value.dtype for value in column if isinstance(value, np.datetime64)}
    array = np.array(column)
    if array.dtype.kind != "M":
        raise InputError(f"column {name!r} mixes types: dates and something else; convert them.")
    if len(units) > 1:
        years = np.array([np.datetime64(value, "Y") for value in column])
        if not np.array_equal(array.astype("datetime64[Y]"), years, equal_nan=True):
            raise InputError(
                f"column {name!r} holds times that no single unit can; convert them to "
                "datetime64[us]."
            )
    return array


class _Refusing:
    """Turn the errors of a library that converts a column into one sentence."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __enter__(self) -> None:
        """Nothing to prepare."""

    def __exit__(self, kind: type[BaseException] | None, error: Any, trace: Any) -> None:
        """Raise the sentence in place of the error."""
        if kind is None or issubclass(kind, InputError):
            return
        polars = kind.__module__.startswith("polars") and issubclass(kind, Exception)
        if polars or issubclass(kind, ARROW_ERRORS):
            raise InputError(
                f"column {self.name!r} mixes types or holds what is neither label nor number: "
                f"{(str(error) or kind.__name__).splitlines()[0].rstrip('.')}."
            ) from None


def plain_column(name: str, column: Any) -> Any:
    """Return one array without views, runs, and dictionaries in dictionaries."""
    import pyarrow as pa

    if not isinstance(column, pa.ChunkedArray):
        return _plain_chunk(name, column)
    chunks = [_plain_chunk(name, chunk) for chunk in column.chunks]
    if any(pa.types.is_dictionary(c.type) for c in chunks) and len({c.type for c in chunks}) > 1:
        chunks = [c.dictionary_decode() if pa.types.is_dictionary(c.type) else c for c in chunks]
    if not chunks:
        return _plain_chunk(name, pa.array([], column.type))
    return chunks[0] if len(chunks) == 1 else pa.chunked_array(chunks).combine_chunks()


def _plain_chunk(name: str, column: Any) -> Any:
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_run_end_encoded(column.type):
        column = pc.run_end_decode(column)
    if pa.types.is_string_view(column.type):
        return column.cast(pa.string())
    if not pa.types.is_dictionary(column.type):
        return column
    _check_indices(name, column)
    words = _plain_chunk(name, column.dictionary)
    if pa.types.is_dictionary(words.type):
        words = words.dictionary_decode()
    if words.null_count:  # a missing label is told by the record that lacks it
        return words.take(column.indices)
    if words.type == column.type.value_type:
        return column
    return pa.DictionaryArray.from_arrays(column.indices, words)


def _check_indices(name: str, column: Any) -> None:
    """Refuse indices that the dictionary does not have; Arrow would read beyond it."""
    import pyarrow.compute as pc

    size = len(column.dictionary)
    ends = pc.min_max(column.indices).as_py()
    if ends["min"] is None or (ends["min"] >= 0 and ends["max"] < size):
        return
    for record, index in enumerate(column.indices.to_pylist()):
        if index is not None and not 0 <= index < size:
            raise InputError(
                f"column {name!r} has index {index} in record {record}, but its dictionary has "
                f"{size} words; mend the column where it is made."
            )
