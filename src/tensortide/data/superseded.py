"""Records of a table whose cell is reported again later: as if they were learned step by step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from tensortide.arrays import Flags, Positions

if TYPE_CHECKING:
    import pyarrow as pa


def superseded(table: pa.Table, modes: Sequence[str], steps: Positions) -> Flags:
    """Mark records whose cell is reported again at a later step; `steps` numbers each record's."""
    cells, _ = table_cells(table, modes)
    return superseded_cells(steps, cells, np.ones(len(steps), bool))


def superseded_cells(ranks: Positions, cells: Positions, prepared: Flags) -> Flags:
    """Mark records of the preparation whose cell is reported again at a later step of it.

    The preparation is learned at once; what counts is the last report, as if it had been
    learned step by step.
    """
    latest = np.zeros(int(cells.max()) + 1, np.int64)
    np.maximum.at(latest, cells[prepared], ranks[prepared])
    return prepared & (ranks < latest[cells])


def table_cells(table: pa.Table, modes: Sequence[str]) -> tuple[Positions, list[Positions]]:
    """Return a number for the cell of each record, and the codes of its labels."""
    import pyarrow.compute as pc

    cells = np.zeros(table.num_rows, np.int64)
    codes: list[Positions] = []
    for mode in modes:
        column = table[mode].unify_dictionaries().combine_chunks()
        if not str(column.type).startswith("dictionary"):
            column = column.dictionary_encode()
        # labels in ascending order, so that the order of the records decides nothing
        places = np.argsort(pc.sort_indices(column.dictionary).to_numpy())
        codes.append(places[column.indices.to_numpy(zero_copy_only=False)])
        wide = cells * (int(codes[-1].max(initial=0)) + 2) + codes[-1] + 1
        _, cells = np.unique(wide, return_inverse=True)
    return cells, codes
