"""Tables into files, by the ending of their names."""

from __future__ import annotations

from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from tensortide.atomic import writing
from tensortide.errors import InputError

if TYPE_CHECKING:
    import pyarrow as pa


def check_ending(out: Path) -> None:
    """Refuse a name that does not say how a table is to be written."""
    if out.suffix.lower() not in _WRITERS:
        *most, last = _WRITERS
        raise InputError(f"{out}: the file must end with {', '.join(most)} or {last}.")


def write_table(table: pa.Table, out: Path) -> None:
    """Write a table, whole or not at all."""
    check_ending(out)
    with writing(out) as file:
        _WRITERS[out.suffix.lower()](table, file)


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


def _write_parquet(table: pa.Table, file: IO[bytes]) -> None:
    from pyarrow import parquet

    parquet.write_table(table, file)


def _write_feather(table: pa.Table, file: IO[bytes]) -> None:
    from pyarrow import feather

    feather.write_feather(table, file)


_WRITERS = {".csv": write_csv, ".parquet": _write_parquet, ".arrow": _write_feather}
