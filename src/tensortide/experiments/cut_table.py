"""Cut a table of records into steps, and keep some cells back to judge by."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from tensortide.arrays import Flags, Floats, Positions
from tensortide.data.superseded import superseded_cells, table_cells
from tensortide.errors import InputError
from tensortide.experiments.columns import check_columns

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class Held:
    """Cells of a step that are never learned: their labels and values."""

    labels: pa.Table
    values: Floats


@dataclass(frozen=True, kw_only=True)
class Steps:
    """Preparation and batches; `labels` are the values of the column that makes the steps.

    Of the records, `within` repeat a cell of the same step and `across` one of an earlier step;
    `complete` says that the preparation has no hole.
    """

    first: pa.Table
    batches: list[pa.Table]
    held: list[Held]
    labels: list[Any]
    within: int
    across: int
    complete: bool

    @property
    def n_held(self) -> int:
        """How many cells are kept back."""
        return sum(len(h.values) for h in self.held)


def cut(
    table: pa.Table, modes: Sequence[str], value: str, step_by: str, start: float, *,
    duplicates: str = "last", hold_out: float | None = None, seed: int = 0,
) -> Steps:  # fmt: skip
    """Cut the records: one step for each value of a column, in ascending order.

    The leading share `start` of the values is the preparation.  A share `hold_out` of the cells
    that come later is kept back, in every step that reports them.  None means a tenth, unless
    the preparation has no hole: then nothing, since some methods take complete slices only.
    """
    counting = duplicates == "count"
    check_columns(table, modes, None if counting else value, step_by)
    ranks = _rank(table[step_by], step_by)
    n_first = min(max(1, round(start * (int(ranks.max()) + 1))), int(ranks.max()))
    groups = np.maximum(ranks - n_first + 1, 0)
    cells, codes = table_cells(table, modes)
    of_step = ranks * (int(cells.max()) + 1) + cells
    n_reports = len(np.unique(of_step))
    if duplicates == "error" and n_reports < len(cells):
        _refuse_repeats(of_step)
    prepared = groups == 0
    complete = _complete(cells[prepared], [c[prepared] for c in codes])
    if hold_out is None:
        hold_out = 0.0 if complete else 0.1
    aside = _aside(cells, codes, prepared, hold_out, seed)
    order = np.argsort(ranks, kind="stable")
    order = order[~superseded_cells(ranks, cells, prepared)[order]]
    ends = np.searchsorted(groups[order], np.arange(int(groups.max()) + 2))
    _, where = np.unique(ranks, return_index=True)
    chosen = table.select(list(dict.fromkeys([*modes, *([] if counting else [value])])))
    parts = [order[a:b] for a, b in pairwise(ends)]
    return Steps(
        first=chosen.take(parts[0]),
        batches=[chosen.take(part[~aside[part]]) for part in parts[1:]],
        held=[_held(chosen, modes, value, part, cells, aside, duplicates) for part in parts[1:]],
        labels=table[step_by].take(where[n_first:]).to_pylist(),
        within=len(cells) - n_reports,
        across=n_reports - len(np.unique(cells)),
        complete=complete,
    )


def _rank(column: pa.ChunkedArray, name: str) -> Positions:
    """Return the number of the value of each record, in ascending order."""
    import pyarrow.compute as pc

    if str(column.type).startswith("dictionary"):
        column = column.cast(column.type.value_type)
    ranks = pc.rank(column, sort_keys="ascending", tiebreaker="dense").to_numpy()
    codes: Positions = ranks.astype(np.int64) - 1
    n_values = int(codes.max()) + 1
    if n_values < 3:
        raise InputError(
            f"column {name!r} has {n_values} distinct {'value' if n_values == 1 else 'values'}; a "
            "comparison needs at least 3 steps."
        )
    return codes


def _complete(cells: Positions, codes: Sequence[Positions]) -> bool:
    """Whether every combination of the labels is there."""
    sizes = [len(np.unique(c)) for c in codes]
    return len(np.unique(cells)) == prod(sizes)


def _aside(
    cells: Positions, codes: Sequence[Positions], prepared: Flags, share: float, seed: int
) -> Flags:
    """Mark the records of the cells that are kept back: none that the preparation has.

    A label that would otherwise never be learned gets all its cells back.
    """
    chosen = np.random.default_rng([seed, 3]).random(int(cells.max()) + 1) < share
    chosen[cells[prepared]] = False
    for code in codes:
        learned = np.zeros(int(code.max()) + 2, bool)
        learned[code[~chosen[cells]] + 1] = True
        chosen[cells[~learned[code + 1]]] = False
    return chosen[cells]


def _refuse_repeats(of_step: Positions) -> None:
    order = np.argsort(of_step, kind="stable")
    again = np.flatnonzero(np.diff(of_step[order]) == 0)
    later = again[np.argmin(order[again + 1])]
    first, second = int(order[later]), int(order[later + 1])
    raise InputError(
        f"records {first} and {second} (the first one is 0) are for the same cell in the same "
        "step; say what several records of a cell mean: --duplicates last, sum, mean or count."
    )


def _held(
    table: pa.Table, modes: Sequence[str], value: str, part: Positions, cells: Positions,
    aside: Flags, duplicates: str,
) -> Held:  # fmt: skip
    """Return the cells of a step that are kept back, each once, by the rule for duplicates."""
    rows = part[aside[part]]
    places, last, inverse, counts = np.unique(
        cells[rows][::-1], return_index=True, return_inverse=True, return_counts=True
    )
    picked = rows[::-1][last]
    labels = table.select(list(modes)).take(picked)
    if duplicates == "count":
        return Held(labels, counts.astype(float))
    column = table[value]
    if duplicates not in ("sum", "mean"):
        return Held(labels, _numbers(column.take(picked)))
    sums = np.zeros(len(places))
    np.add.at(sums, inverse, _numbers(column.take(rows[::-1])))
    return Held(labels, sums if duplicates == "sum" else sums / counts)


def _numbers(column: pa.ChunkedArray) -> Floats:
    """Return values as numbers; what is none is left to the reader of the batches to refuse."""
    try:
        return np.asarray(column.to_numpy(), float)
    except (TypeError, ValueError):
        return np.full(len(column), np.nan)
