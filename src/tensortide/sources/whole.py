"""A source as one table with all its columns, for what needs everything at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensortide.errors import FileError
from tensortide.sources.bytestream import complaints
from tensortide.sources.files import open_feeds

if TYPE_CHECKING:
    import pyarrow as pa


def read_source(source: str) -> pa.Table:
    """Return the records of a file, of all files of a folder in the order of their names, or of -.

    Standard input is read as JSON lines if it begins with a brace, else as CSV.
    """
    import pyarrow as pa

    tables = []
    for feed in open_feeds(source):
        with complaints(feed.name):
            tables.append(feed.whole())
    try:
        return pa.concat_tables(tables, promote_options="permissive")
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        reason = str(error).splitlines()[0].rstrip(".")
        raise FileError(f"{source}: the files do not fit together: {reason}.") from None
