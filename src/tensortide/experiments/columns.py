"""Judge the columns of a table before it is cut: errors name the record of the file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from tensortide.errors import InputError
from tensortide.sources.columns import NUMBER
from tensortide.validate import check_columns_differ, check_columns_exist, check_value_apart

if TYPE_CHECKING:
    import pyarrow as pa

NESTED = ("list", "large_list", "fixed_size", "struct", "map")


def check_columns(table: pa.Table, modes: Sequence[str], value: str | None, step_by: str) -> None:
    """Refuse a table that cannot be cut into steps; `value` None: records are counted."""
    check_columns_differ(table.column_names)
    check_columns_exist(table.column_names, [*modes, *([] if value is None else [value]), step_by])
    if not table.num_rows:
        raise InputError("there are no records.")
    if value is not None and step_by == value:
        raise InputError(f"column {value!r} has the values; step by a column of dates or labels.")
    check_value_apart(value, modes)
    for name in (*modes, step_by):
        column = table[name]
        if str(column.type).startswith(NESTED):
            raise InputError(f"column {name!r} holds {column.type}, which are no labels.")
        if column.null_count:
            raise InputError(f"{name!r} is missing in {_first(column.is_null())}.")
    if value is not None:
        _check_values(table[value], value)


def _check_values(column: pa.ChunkedArray, name: str) -> None:
    """Refuse what is no number."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if column.null_count:
        raise InputError(f"{name!r} is missing in {_first(column.is_null())}.")
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        wrong = pc.invert(pc.match_substring_regex(column, NUMBER))
        if not pc.any(wrong).as_py():
            raise InputError(f"column {name!r} holds numbers as text; store them as numbers.")
        text = column.filter(wrong)[0].as_py()
        raise InputError(f"{name!r} must be a number, not {text!r} as in {_first(wrong)}.")
    if pa.types.is_floating(column.type):
        wrong = pc.invert(pc.is_finite(column))
        if pc.any(wrong).as_py():
            raise InputError(f"{name!r} is not finite in {_first(wrong)}.")


def _first(flags: pa.ChunkedArray) -> str:
    """Say which record is the first that is marked."""
    marked = np.flatnonzero(flags.to_numpy())
    more = f" and {len(marked) - 1:,} more" if len(marked) > 1 else ""
    return f"record {marked[0]:,} (the first one is 0){more}"
