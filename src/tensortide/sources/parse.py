"""From a block of text to a piece: Arrow's parsers where all is well, else record by record.

The fast way takes a block only if every record of it is good; the slow way tells which are
not, and why.  Both read fields alike.
"""

from __future__ import annotations

import contextlib
import csv
import io
import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from tensortide.errors import ARROW_ERRORS
from tensortide.sources.columns import BadRecord, ColumnSpec, Piece, piece_of
from tensortide.sources.lines import LineSpans, fields

if TYPE_CHECKING:
    import pyarrow as pa

#: A line with more opening brackets is looked at before Arrow, whose stack has no limit, gets it.
_BRACKETS = 500
_DEEP = "it is nested too deeply to be a record"


def csv_table(
    data: bytes, names: list[str], separator: str, types: dict[str, Any] | None
) -> pa.Table:
    """Parse CSV records by Arrow; without `types` they are guessed, for all columns."""
    from pyarrow import csv as arrow_csv

    chosen = {} if types is None else {"include_columns": list(types), "column_types": types}
    # an empty label is a missing one; "NA" may be a label, and is no number
    convert = arrow_csv.ConvertOptions(null_values=[""], strings_can_be_null=True, **chosen)
    parse = arrow_csv.ParseOptions(delimiter=separator, newlines_in_values=b'"' in data)
    read = arrow_csv.ReadOptions(column_names=names, block_size=len(data) + 1, use_threads=False)
    return arrow_csv.read_csv(
        io.BytesIO(data), read_options=read, parse_options=parse, convert_options=convert
    )


def json_table(data: bytes, types: dict[str, Any] | None) -> pa.Table:
    """Parse JSON lines by Arrow; without `types` they are guessed."""
    import pyarrow as pa
    from pyarrow import json as arrow_json

    _check_depth(data)
    options = arrow_json.ParseOptions()
    if types is not None:
        schema = pa.schema([(name, _json_type(kind)) for name, kind in types.items()])
        options = arrow_json.ParseOptions(schema, unexpected_field_behavior="ignore")
    read = arrow_json.ReadOptions(block_size=len(data) + 1, use_threads=False)
    table = arrow_json.read_json(io.BytesIO(data), read_options=read, parse_options=options)
    table.validate(full=True)  # Arrow takes any bytes for text here
    if types is None:
        return table
    return table.cast(pa.schema(list(types.items())))


def _check_depth(data: bytes) -> None:
    """Refuse lines that are nested so deeply that Arrow would end the process."""
    octets = np.frombuffer(data, np.uint8)
    opening = np.flatnonzero((octets == ord("[")) | (octets == ord("{")))
    if len(opening) <= _BRACKETS:
        return
    breaks = np.flatnonzero(octets == ord("\n"))
    line = np.searchsorted(breaks, opening)
    deep = np.unique(line[_BRACKETS:][line[_BRACKETS:] == line[:-_BRACKETS]])
    starts, stops = np.append(0, breaks + 1), np.append(breaks, len(data))
    for k in deep:
        json_record(data[starts[k] : stops[k]].decode())
    # an object that goes over several lines could be as deep as there are lines
    full = np.flatnonzero(stops > starts)
    whole = (octets[starts[full]] == ord("{")) & (octets[stops[full] - 1] == ord("}"))
    for k in full[~whole]:
        text = data[starts[k] : stops[k]].strip()
        if text and not (text.startswith(b"{") and text.endswith(b"}")):
            raise ValueError("it is no JSON object with names and values")


def _json_type(kind: pa.DataType) -> pa.DataType:
    """Return how JSON writes a type: times and coded text are text."""
    import pyarrow as pa

    plain = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)
    return kind if plain else pa.string()


def parse_block(
    data: bytes,
    records: LineSpans,
    wanted: ColumnSpec,
    offset: int,
    table_of: Callable[[bytes, dict[str, Any]], pa.Table],
    record_of: Callable[[str], dict[str, Any]],
) -> Piece:
    """Turn the records of a block into a piece; places are counted from `offset` on."""
    end = offset + records.consumed
    if not len(records.starts):
        return piece_of(_empty(wanted), [], [], [], [], end)
    table = None
    if b"\0" not in data:  # Arrow takes it for text
        with contextlib.suppress(*ARROW_ERRORS):
            table = table_of(data[: records.consumed], wanted.types())
    if table is not None and _good(table, wanted, len(records.starts)):
        columns = {name: table[name] for name in wanted.names}
        starts, ends = offset + records.starts, offset + records.ends
        return piece_of(columns, records.lines, starts, ends, [], end)
    return _one_by_one(data, records, wanted, offset, record_of)


def _good(table: pa.Table, wanted: ColumnSpec, n_records: int) -> bool:
    import pyarrow.compute as pc

    if table.num_rows != n_records or any(table[name].null_count for name in wanted.names):
        return False
    if wanted.value is None:
        return True
    values = table[wanted.value]
    fits = not (wanted.bounded and wanted.excludes(values.to_numpy()).any())
    return fits and bool(pc.all(pc.is_finite(values)).as_py())


def _one_by_one(
    data: bytes, records: LineSpans, wanted: ColumnSpec, offset: int,
    record_of: Callable[[str], dict[str, Any]],
) -> Piece:  # fmt: skip
    rows: list[list[Any]] = []
    kept: list[int] = []
    bad: list[BadRecord] = []
    for i, (start, stop) in enumerate(zip(records.starts, records.ends, strict=True)):
        raw = data[start:stop]
        try:
            given = record_of(raw.decode())
            rows.append([wanted.field(name, given.get(name)) for name in wanted.names])
            kept.append(i)
        except UnicodeDecodeError as error:
            bad.append(_bad(records, i, offset, not_utf8(error), raw))
        except RecursionError:  # a label nested so deeply that it cannot even be shown
            bad.append(_bad(records, i, offset, _DEEP, raw))
        except ValueError as error:
            bad.append(_bad(records, i, offset, str(error), raw))
    import pyarrow as pa

    types = wanted.types()
    columns = {
        name: pa.array([row[k] for row in rows], _plain(types[name])).cast(types[name])
        for k, name in enumerate(wanted.names)
    }
    where = np.array(kept, np.int64)
    starts, ends = offset + records.starts[where], offset + records.ends[where]
    end = offset + records.consumed
    return piece_of(columns, records.lines[where], starts, ends, bad, end)


def not_utf8(error: UnicodeDecodeError) -> str:
    """Say what is wrong with bytes that are no text."""
    return f"byte {error.start + 1} of the line is not UTF-8; save the file as UTF-8"


def _bad(records: LineSpans, i: int, offset: int, reason: str, raw: bytes) -> BadRecord:
    text = raw.decode(errors="backslashreplace").rstrip("\r\n")
    return BadRecord(
        line=int(records.lines[i]), end=offset + int(records.ends[i]), reason=reason, text=text
    )


def _plain(kind: pa.DataType) -> pa.DataType:
    import pyarrow as pa

    return kind.value_type if pa.types.is_dictionary(kind) else kind


def _empty(wanted: ColumnSpec) -> dict[str, Any]:
    import pyarrow as pa

    return {name: pa.array([], kind) for name, kind in wanted.types().items()}


def csv_record(names: list[str], separator: str) -> Callable[[str], dict[str, Any]]:
    """Return a function that reads one CSV record."""

    def read(text: str) -> dict[str, Any]:
        if "\0" in text:
            raise ValueError("it has a NUL byte, so it is no text")
        try:
            row = fields(text, separator)
        except csv.Error as error:
            raise ValueError(f"its quotes are broken ({error})") from None
        if len(row) != len(names):
            half = " (half a line?)" if len(row) < len(names) else ""
            raise ValueError(f"it has {len(row)} fields, the header has {len(names)}{half}")
        return dict(zip(names, row, strict=True))

    return read


def json_record(text: str) -> dict[str, Any]:
    """Read one line of JSON."""
    try:
        given = json.loads(text)
    except RecursionError:
        raise ValueError(_DEEP) from None
    except ValueError as error:
        raise ValueError(f"it is not JSON ({error})") from None
    if not isinstance(given, dict):
        raise ValueError("it is no JSON object with names and values")
    return given
