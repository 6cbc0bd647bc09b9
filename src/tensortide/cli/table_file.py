"""Tables into files, by the ending of their names."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tensortide.atomic import writing
from tensortide.errors import InputError

if TYPE_CHECKING:
    import pyarrow as pa


ENDINGS = (".csv", ".parquet", ".arrow")


def check_ending(out: Path) -> None:
    """Refuse a name that does not say how a table is to be written."""
    if out.suffix.lower() not in ENDINGS:
        *most, last = ENDINGS
        raise InputError(f"{out}: the file must end with {', '.join(most)} or {last}.")


def write_table(table: pa.Table, out: Path) -> None:
    """Write a table, whole or not at all."""
    from pyarrow import feather, parquet

    check_ending(out)
    writers = (write_csv, parquet.write_table, feather.write_feather)
    with writing(out) as file:
        writers[ENDINGS.index(out.suffix.lower())](table, file)


def tell_written(table: pa.Table, out: Path) -> None:
    """Write a table and say so."""
    write_table(table, out)
    print(f"{out}: {table.num_rows:,} rows", file=sys.stderr)


def write_csv(table: pa.Table, file: Any) -> None:
    """Write a table as text; labels that are kept as numbers are written out."""
    import pyarrow as pa
    from pyarrow import csv

    plain = [
        c.cast(c.type.value_type) if pa.types.is_dictionary(c.type) else c for c in table.columns
    ]
    csv.write_csv(
        pa.table(plain, names=table.column_names), file, csv.WriteOptions(quoting_style="needed")
    )
