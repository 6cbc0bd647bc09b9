"""Forecasts as tables: which labels come next, for which cells, and what is expected of them.

Labels ahead are seen by the outlook (`tensortide.online.horizon`).  A label that never came but
lies between two known ones has a value on the straight line between theirs: as far from each, by
the distance of the labels, as it is from them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tensortide.arrays import Flags, Floats, Positions
from tensortide.core.steps.beliefs import Beliefs
from tensortide.data.labels import label_column
from tensortide.data.timeline import DATED, ORDERED, on_a_line
from tensortide.errors import InputError
from tensortide.online.horizon import Outlook
from tensortide.validate import brief, check_count
from tensortide.wording import listed

if TYPE_CHECKING:
    import pyarrow as pa

    from tensortide.online.model import Model


def forecast_table(
    model: Model,
    steps: int | Sequence[Any],
    mode: str | int | None,
    where: Mapping[str, Any] | None,
    max_cells: int,
) -> pa.Table:
    """Return a row per cell and label: the labels, value, and whether the label never came."""
    import pyarrow as pa

    along = mode_ahead(model, mode)
    asked = _labels_asked(steps)
    n_labels = check_steps(steps) if asked is None else len(asked)
    fibres = _fibres(model, along, _chosen(model, along, where), n_labels, max_cells)
    outlook = Outlook(model, along)
    if asked is not None:
        positions, fresh = model.modes.positions_or_new(along, asked)
    else:
        fresh = outlook.line.labels_ahead(model.modes.labels[along], n_labels)
        positions = len(model.modes.labels[along]) + np.arange(n_labels)
    cells = np.repeat(fibres, n_labels, axis=0)
    cells[:, along] = np.tile(positions, len(fibres))
    values = Answers(model, outlook, fresh).values(cells)
    columns: dict[str, Any] = {}
    for m, (name, labels) in enumerate(zip(model.modes.names, model.modes.labels, strict=True)):
        used, which = np.unique(cells[:, m], return_inverse=True)
        size = len(labels)
        shown = [labels.label(int(p)) if p < size else fresh[p - size] for p in used]
        columns[name] = label_column(labels.kind, shown).take(which.ravel())
    never = cells[:, along] >= len(model.modes.labels[along])
    found = {"value": pa.array(model.method.loss.mean(values)), "forecast": pa.array(never)}
    # a mode may have such a name: then the answer gives way
    return pa.table(columns | {f"{n}_" if n in columns else n: v for n, v in found.items()})


def forecast_cells(model: Model, cells: Any) -> tuple[Floats, Flags]:
    """Return values of cells on the model's scale, and which of their labels never came."""
    line = model.ahead.line
    along = mode_ahead(model, None if line is None else line.mode)
    positions, fresh = model.modes.cells_or_new(cells, along)
    never = positions[:, along] >= len(model.modes.labels[along])
    if not never.any():
        return model.predict(positions), never
    return Answers(model, Outlook(model, along), fresh).values(positions), never


def mode_ahead(model: Model, mode: str | int | None) -> int:
    """Return the mode along which is forecast; say what to do where there is none or a choice."""
    names, kinds = model.modes.names, [labels.kind for labels in model.modes.labels]
    along = None if mode is None else model.modes.index(mode)
    if along is not None and kinds[along] not in ORDERED:
        raise InputError(
            f"mode {names[along]!r} has {kinds[along]} labels, which no label comes next to; "
            "forecasts go along dates, times or whole numbers."
        )
    line, grown = model.ahead.line, Beliefs.of_memory(model.memory).grown > 0
    if line is None:
        raise InputError(
            f"none of the modes {listed(names)} has dates, times or whole numbers as labels, so "
            "there is no next one to forecast; learn the data with such labels (dates as "
            "2026-01-31)."
        )
    if grown and along not in (None, line.mode):
        raise InputError(
            f"mode {names[line.mode]!r} is the one that goes on in this model, so forecasts go "
            f"along it, not along {names[along or 0]!r}."
        )
    if along is not None or grown:
        return line.mode if along is None else along
    dated = [m for m, kind in enumerate(kinds) if kind in DATED]
    some = dated or [m for m, kind in enumerate(kinds) if kind in ORDERED]
    if len(some) > 1:
        raise InputError(
            f"the labels of {listed([repr(names[m]) for m in some])} have an order each; say along "
            f"which to forecast, for example mode={names[line.mode]!r}."
        )
    return some[0]


@dataclass(frozen=True, slots=True)
class Answers:
    """Values of cells whose label along a mode may never have come.

    Positions of that mode from its size on stand for the labels of `fresh`.
    """

    model: Model
    outlook: Outlook
    fresh: Sequence[Any]

    def values(self, cells: Positions) -> Floats:
        """Return the value of each cell, on the scale of the model."""
        along = self.outlook.line.mode
        size = len(self.model.modes.labels[along])
        out = np.empty(len(cells))
        known = cells[:, along] < size
        out[known] = self.model.predict(cells[known])
        later = np.flatnonzero(~known)
        later = later[np.argsort(cells[later, along], kind="stable")]
        ends = np.searchsorted(cells[later, along], size + np.arange(len(self.fresh) + 1))
        for k, label in enumerate(self.fresh):
            mine = later[ends[k] : ends[k + 1]]
            if len(mine):
                out[mine] = self._at(cells[mine], label)
        return out

    def _at(self, cells: Positions, label: Any) -> Floats:
        """Return the values at a label that never came: ahead, or between two that came."""
        along = self.outlook.line.mode
        labels = self.model.modes.labels[along]
        numbers = on_a_line(labels.kind, list(labels.array()))
        number = int(on_a_line(labels.kind, [label])[0])
        if number > numbers.max():
            return self.outlook.values(cells, label)
        if number < numbers.min():
            name = self.model.modes.names[along]
            first = labels.label(int(numbers.argmin()))
            raise InputError(
                f"mode {name!r} begins with {first}, so nothing is known of {label} before it; ask "
                "for later labels."
            )
        order = np.argsort(numbers, kind="stable")
        after = int(np.searchsorted(numbers[order], number))
        sides = [int(order[after - 1]), int(order[after])]
        before, behind = (int(numbers[side]) for side in sides)
        share = (number - before) / (behind - before)
        found = []
        for side in sides:
            beside = cells.copy()
            beside[:, along] = side
            found.append(self.model.predict(beside))
        return np.asarray((1.0 - share) * found[0] + share * found[1])


def _labels_asked(steps: Any) -> list[Any] | None:
    return list(steps) if hasattr(steps, "__len__") and not isinstance(steps, str) else None


def check_steps(steps: Any) -> int:
    """Return how many labels ahead are asked for."""
    try:
        return check_count("steps", steps, least=1)
    except InputError:
        raise InputError(
            "steps must be a whole number from 1 on, or a list of labels to be forecast, not "
            f"{brief(steps)}."
        ) from None


def _chosen(model: Model, along: int, where: Mapping[str, Any] | None) -> dict[int, Positions]:
    """Return for each mode that is chosen from the positions that are wanted."""
    if where is None:
        return {}
    if not isinstance(where, Mapping):
        raise InputError(f"where must say labels for modes, {{mode: labels}}, not {brief(where)}.")
    chosen = {}
    for name, wanted in where.items():
        mode = model.modes.index(name)
        if mode == along:
            raise InputError(
                f"mode {name!r} is the one that is forecast; give its labels in place of steps."
            )
        labels = _labels_asked(wanted)
        one = [wanted] if labels is None else labels
        chosen[mode] = np.unique(model.modes.positions_of(mode, one))
    return chosen


def _fibres(
    model: Model, along: int, chosen: dict[int, Positions], n_labels: int, max_cells: int
) -> Positions:
    """Return the cells to be forecast: those that were observed, where that is known, else all."""
    others = [m for m in range(model.modes.order) if m != along]
    keys = observed_fibres(model, along)
    if keys is not None:
        for column, m in enumerate(others):
            if m in chosen:
                keys = keys[np.isin(keys[:, column], chosen[m])]
        if not len(keys):
            raise InputError(
                "none of the cells that `where` chooses has ever come; predict with "
                "unknown='forecast' answers single cells."
            )
        _check_size(len(keys), n_labels, max_cells)
        keys = keys[np.lexsort(keys.T[::-1])]
    else:
        ranges = [chosen.get(m, np.arange(model.modes.shape[m])) for m in others]
        total = 1
        for one in ranges:
            total *= len(one)
        _check_size(total, n_labels, max_cells)
        keys = np.stack(np.meshgrid(*ranges, indexing="ij"), axis=-1).reshape(-1, len(others))
    return np.insert(np.asarray(keys, np.int64), along, 0, axis=1)


def observed_fibres(model: Model, along: int) -> Any:
    """Return the positions in the other modes that were observed, None if that is not known."""
    fibres = model.ahead.fibres
    if fibres is not None and fibres.mode == along:
        return fibres.keys
    if model.store is not None:
        return np.unique(np.delete(model.store.entries.coords(), along, axis=1), axis=0)
    return None


def _check_size(n_cells: int, n_labels: int, max_cells: int) -> None:
    check_count("max_cells", max_cells, least=1)
    if n_cells * n_labels > max_cells:
        raise InputError(
            f"{n_cells:,} cells at {n_labels:,} labels are {n_cells * n_labels:,} rows; choose "
            f"labels of other modes with where=, ask for fewer steps, or raise max_cells above "
            f"{max_cells:,}."
        )
