"""The steps of a comparison by numbers: cells, their fibres, and what came a season before.

A fibre is all labels of a cell but that of the mode along which the steps go: the column that
makes them, where it is a mode, else the mode to which most steps add labels, else the one that is
ordered.  Without any it is the cell.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from tensortide.arrays import Floats, Positions
from tensortide.data.modes import Modes
from tensortide.data.timeline import ORDERED, Timeline, ordered_mode
from tensortide.experiments.cut_table import Held, Steps
from tensortide.online.changes import Rules, distinct

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, kw_only=True)
class CodedCells:
    """Distinct cells of a step: positions of their labels, numbers of fibre and of cell.

    `along` is where they stand along the fibre, `ago` the cells of the same fibre a season before,
    one column for each season; -1 where there is none.
    """

    labels: Positions
    values: Floats
    fibre: Positions
    cell: Positions
    along: Positions
    ago: Positions

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self.values)


@dataclass(frozen=True, kw_only=True)
class CodedSteps:
    """Preparation, batches and cells held out, those whose labels are known by then.

    `names` are the modes of a fibre, `seasons` the columns of `ago` in the words of the labels;
    `shape` counts labels.
    """

    first: CodedCells
    batches: list[CodedCells]
    held: list[CodedCells]
    names: tuple[str, ...]
    shape: tuple[int, ...]
    n_fibres: int
    n_cells: int
    seasons: tuple[str, ...]


def code(
    steps: Steps, modes: Sequence[str], value: str, step_by: str, duplicates: str
) -> CodedSteps:
    """Give labels, fibres and cells of all steps their numbers; the time goes with the records."""
    reader = _Reader(steps.first, modes, value, duplicates)
    parts = [reader.learned(steps.first)]
    lines = _lines(reader.modes)  # of the preparation: seasons are chosen on it
    ordered = ordered_mode(reader.modes.labels, parts[0][0])
    grown = np.zeros(len(modes), np.int64)
    for batch, aside in zip(steps.batches, steps.held, strict=True):
        before = np.array(reader.modes.shape)
        parts += [reader.learned(batch), reader.held(aside)]
        grown += np.array(reader.modes.shape) > before
    mode = reader.modes.index(step_by) if step_by in modes else most_grown(grown, ordered)
    line = None if mode is None else lines.get(mode)
    labels = np.concatenate([cells for cells, _ in parts])
    along = _along(reader.modes, mode, line, labels)
    fibre = numbered(labels if mode is None else np.delete(labels, mode, axis=1))
    cell = numbered(labels)
    seasons = () if line is None else tuple(p * line.unit for p in line.periods)
    whole = CodedCells(
        labels=labels, values=np.concatenate([values for _, values in parts]), fibre=fibre,
        cell=cell, along=along, ago=_ago(fibre, cell, along, seasons),
    )  # fmt: skip
    ends = np.cumsum([0, *(len(values) for _, values in parts)])
    cut = [_part(whole, slice(a, b)) for a, b in pairwise(ends)]
    return CodedSteps(
        first=cut[0], batches=cut[1::2], held=cut[2::2],
        names=tuple(name for k, name in enumerate(modes) if k != mode), shape=reader.modes.shape,
        n_fibres=int(fibre.max()) + 1, n_cells=int(cell.max()) + 1,
        seasons=() if line is None else tuple(_in_words(line, p) for p in line.periods),
    )  # fmt: skip


class _Reader:
    """Reads tables as a model does: new labels in their order, duplicates combined."""

    def __init__(self, first: pa.Table, modes: Sequence[str], value: str, duplicates: str) -> None:
        self.modes = Modes.for_records(first, tuple(modes), value)
        self.value, self.rules = value, Rules(duplicates=duplicates)

    def learned(self, table: pa.Table) -> tuple[Positions, Floats]:
        counting = self.rules.duplicates == "count"
        arrival = self.modes.read(table, self.value, counting=counting)
        self.modes.append(arrival.fresh)
        cells = distinct(self.rules, arrival)
        return cells.coords.astype(np.int64), cells.values

    def held(self, aside: Held) -> tuple[Positions, Floats]:
        if not len(aside.values):
            return np.empty((0, self.modes.order), np.int64), np.empty(0)
        cells = self.modes.cells(aside.labels, unknown_is_nan=True)
        known = (cells[:, 0] >= 0) & np.isfinite(aside.values)
        return cells[known], aside.values[known]


def _lines(modes: Modes) -> dict[int, Timeline]:
    """Return the order of the labels of each mode that has one."""
    known = enumerate(modes.labels)
    return {m: Timeline.first(m, labels) for m, labels in known if labels.kind in ORDERED}


def most_grown(grown: Positions, ordered: int | None) -> int | None:
    """Return the mode that grows at most steps, the ordered one where none grows more.

    >>> most_grown(np.array([3, 0, 5]), 0), most_grown(np.array([4, 4, 0]), 1)
    (2, 1)
    """
    if ordered is not None and grown[ordered] == grown.max():
        return ordered
    return int(np.argmax(grown)) if grown.any() else None


def _along(modes: Modes, mode: int | None, line: Timeline | None, labels: Positions) -> Positions:
    """Return where cells stand along their fibre: by the label, else by when it came first."""
    if mode is None:
        return np.zeros(len(labels), np.int64)
    if line is None:
        return labels[:, mode]
    known = modes.labels[mode]
    return line.number([known.label(p) for p in range(len(known))])[labels[:, mode]]


def numbered(rows: Positions) -> Positions:
    """Return a number for each row, the same for the same rows.

    >>> numbered(np.array([[2, 1], [0, 5], [2, 1]])).tolist()
    [1, 0, 1]
    """
    found = np.zeros(len(rows), np.int64)
    for column in rows.T:
        wide = found * (int(column.max(initial=0)) + 1) + column
        found = np.unique(wide, return_inverse=True)[1].ravel()
    return found


def _ago(fibre: Positions, cell: Positions, along: Positions, seasons: Sequence[int]) -> Positions:
    """Return for each record the cells of its fibre at some distances before it."""
    found = np.full((len(cell), len(seasons)), -1, np.int64)
    marks, places = np.unique(along, return_inverse=True)
    key = fibre * len(marks) + places.ravel()
    keys, where = np.unique(key, return_index=True)
    for column, season in enumerate(seasons):
        at = np.minimum(np.searchsorted(marks, along - season), len(marks) - 1)
        wanted = fibre * len(marks) + at
        place = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
        there = (marks[at] == along - season) & (keys[place] == wanted)
        found[there, column] = cell[where[place[there]]]
    return found


def _part(whole: CodedCells, part: slice) -> CodedCells:
    return replace(
        whole, labels=whole.labels[part], values=whole.values[part], fibre=whole.fibre[part],
        cell=whole.cell[part], along=whole.along[part], ago=whole.ago[part],
    )  # fmt: skip


def _in_words(line: Timeline, period: int) -> str:
    """Say how long a season is."""
    if line.kind in ("integer", "position"):
        return f"{period * line.unit}"
    if line.monthly:
        return f"{period * line.unit} months"
    if line.kind == "date":
        return f"{period * line.unit} days"
    hours = period * line.unit / 3_600_000_000
    return f"{hours:g} hours"
