"""Cells to be asked for, from a file: labels read in the kinds that the run has."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensortide.errors import FileError, InputError
from tensortide.sources.columns import ColumnSpec, without_places
from tensortide.sources.files import open_feeds
from tensortide.sources.resume import ResumeAt
from tensortide.validate import check_columns_exist

if TYPE_CHECKING:
    import pyarrow as pa

    from tensortide.data.modes import Modes


def read_cells(modes: Modes, source: str) -> pa.Table:
    """Return the label columns of a file, of all files of a folder, or of standard input (-)."""
    import pyarrow as pa

    wanted = ColumnSpec({n: k.kind for n, k in zip(modes.names, modes.labels, strict=True)}, None)
    if any(kind == "position" for kind in wanted.kinds.values()):
        raise InputError("this run has positions, not labels; ask it from Python.")
    tables = []
    for feed in open_feeds(source):
        if feed.names:
            check_columns_exist(feed.names, wanted.names, where=f"{feed.name}: ")
        for piece in feed.pieces(wanted, ResumeAt()):
            if piece.bad:
                bad = piece.bad[0]
                raise InputError(f"{feed.name}, {feed.unit} {bad.line}: {bad.reason}.")
            tables.append(without_places(piece.table))
    if not tables:
        raise FileError(f"{source if source != '-' else 'standard input'}: there are no cells.")
    return pa.concat_tables(tables, promote_options="permissive").unify_dictionaries()
