"""Tables from files: CSV, JSON lines, Parquet, Arrow, a folder of them, or standard input."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tensortide.errors import FileError

if TYPE_CHECKING:
    import pyarrow as pa

KINDS = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".jsonl": "json",
    ".ndjson": "json",
    ".json": "json",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
}


def read_source(source: str) -> pa.Table:
    """Return the records of a file, of all files of a folder in the order of their names, or of -.

    Standard input is read as JSON lines if it begins with a brace, else as CSV.
    """
    if source == "-":
        data = sys.stdin.buffer.read()
        kind = "json" if data.lstrip()[:1] == b"{" else "csv"
        return _parsed(io.BytesIO(data), kind, "standard input")
    path = Path(source)
    if path.is_dir():
        return _folder(path)
    if not path.is_file():
        raise FileError(f"{path}: there is no such file or folder.")
    kind = KINDS.get(path.suffix.lower(), "")
    if not kind:
        raise FileError(f"{path}: is of an unknown kind; known are {', '.join(sorted(KINDS))}.")
    return _parsed(path, kind, str(path))


def _folder(path: Path) -> pa.Table:
    import pyarrow as pa

    files = sorted(f for f in path.iterdir() if f.suffix.lower() in KINDS)
    if not files:
        raise FileError(f"{path}: has no file of a known kind ({', '.join(sorted(KINDS))}).")
    tables = [_parsed(f, KINDS[f.suffix.lower()], str(f)) for f in files]
    try:
        return pa.concat_tables(tables, promote_options="permissive")
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise FileError(f"{path}: the files do not fit together: {_line(error)}.") from None


def _parsed(where: Any, kind: str, name: str) -> pa.Table:
    try:
        return _read(where, kind)
    except (ValueError, TypeError, NotImplementedError) as error:  # Arrow's three kinds, and ours
        raise FileError(f"{name}: cannot be read as {kind}: {_line(error)}.") from None
    except OSError as error:
        reason = error.strerror or _line(error)
        raise FileError(f"{name}: cannot be read as {kind}: {reason}.") from None


def _read(where: Any, kind: str) -> pa.Table:
    if kind in ("csv", "tsv"):
        from pyarrow import csv

        data = _bytes(where)
        header = data.partition(b"\n")[0].decode(errors="replace")
        separator = "\t" if kind == "tsv" else max(",;\t", key=header.count)
        # an empty label is a missing one; "NA" may be a label, and is no number
        convert = csv.ConvertOptions(null_values=[""], strings_can_be_null=True)
        parse = csv.ParseOptions(delimiter=separator)
        table = csv.read_csv(io.BytesIO(data), parse_options=parse, convert_options=convert)
        binary = [f.name for f in table.schema if str(f.type) == "binary"]
        if binary:
            raise ValueError(f"column {binary[0]!r} is not UTF-8; save the file as UTF-8")
        return table
    if kind == "json":
        from pyarrow import json

        data = _bytes(where)
        if data.lstrip()[:1] == b"[":
            raise ValueError("it holds one list; write one object per line")
        return json.read_json(io.BytesIO(data))
    if kind == "parquet":
        import pyarrow.parquet as pq

        return pq.read_table(where)
    from pyarrow import feather

    return feather.read_table(where)


def _bytes(where: Path | io.BytesIO) -> bytes:
    return where.read_bytes() if isinstance(where, Path) else where.getvalue()


def _line(error: BaseException) -> str:
    return str(error).splitlines()[0].rstrip(".") if str(error) else type(error).__name__
