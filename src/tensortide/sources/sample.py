"""The columns of a source: their names, and kinds that Arrow does not guess as people mean them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from tensortide.errors import FileError
from tensortide.validate import check_columns_differ

if TYPE_CHECKING:
    import pyarrow as pa

#: More columns are a table that is wide, or no table.
MOST_COLUMNS = 10_000


def check_names(source: str, names: Sequence[str]) -> None:
    """Refuse a name that comes twice, and more columns than any table of records has."""
    if len(names) > MOST_COLUMNS:
        raise FileError(
            f"{source}: has {len(names):,} columns; at most {MOST_COLUMNS:,} are read. Is the "
            "table wide? One row a value is needed."
        )
    check_columns_differ(names, where=f"{source}: ", error=FileError)


def codes_as_text(table: pa.Table, read: Callable[[dict[str, Any]], pa.Table]) -> pa.Table:
    """Leave numbers with leading zeros, such as postcodes, the text that they are.

    `read` reads columns of the same records with the types that it is given.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    whole = [field.name for field in table.schema if pa.types.is_integer(field.type)]
    if not whole:
        return table
    texts = read(dict.fromkeys(whole, pa.string()))
    codes = {
        name: column
        for name, column in zip(whole, texts.columns, strict=True)
        if pc.any(pc.match_substring_regex(column, r"^\s*-?0\d")).as_py()
    }
    return _replace(table, codes)


def mostly_dates(table: pa.Table) -> pa.Table:
    """Take text that nearly always is a date for dates; the rest are bad records."""
    import pyarrow as pa
    import pyarrow.compute as pc

    dates = {}
    for field, column in zip(table.schema, table.columns, strict=True):
        if not pa.types.is_string(field.type) or not table.num_rows:
            continue
        dated = pc.match_substring_regex(column, r"^\d{4}-\d\d-\d\d$")
        if (pc.sum(dated).as_py() or 0) >= 0.9 * table.num_rows:
            dates[field.name] = pa.nulls(table.num_rows, pa.date32())
    return _replace(table, dates)


def _replace(table: pa.Table, columns: dict[str, Any]) -> pa.Table:
    """Return a table with other columns in some places, made at once: it may be wide."""
    import pyarrow as pa

    if not columns:
        return table
    pairs = zip(table.column_names, table.columns, strict=True)
    return pa.table({name: columns.get(name, column) for name, column in pairs})
