"""Ways to run the engine on small tensors, for laws and oracles."""

from __future__ import annotations

import numpy as np

from tensortide.core.steps.blocks import step
from tensortide.core.steps.change import Change
from tensortide.core.steps.method import Recipe
from tensortide.core.tensor.entries import Entries
from tensortide.core.tensor.factors import Factors
from tensortide.data.cells import compact, distinct_cells
from tensortide.methods.registry import gocpt, gocpte


def recipe(*, economy: bool, **options: object) -> Recipe:
    return (gocpte if economy else gocpt)(**options)  # type: ignore[arg-type]


def change_of(case, *, economy: bool, absent_zero: bool = False, weighted: bool = False) -> Change:
    """The change that a batch makes: in local rows (economy) or in all rows."""
    weights = case.weights if weighted else np.empty(0)
    old, new = case.old_shape, case.new_shape
    coords, positions, shape = case.coords.astype(np.int32), (None,) * len(new), new
    if economy:
        positions, coords = compact(case.coords, old, new)
        shape = tuple(len(p) for p in positions)
    cells = distinct_cells(coords, case.values, weights, shape, "error")
    return Change(
        old_shape=old,
        new_shape=new,
        entries=cells.entries(),
        positions=positions,
        arrived=cells.coords,
        n_seen=1.0,
        step=1,
        time=int(np.argmax(new)),
        absent_zero=absent_zero,
    )


def run_step(case, method: Recipe, change: Change, watch=None) -> list[np.ndarray]:
    """All rows of the factors after a step, the untouched ones too."""
    outcome = step(method, Factors([f.copy() for f in case.previous]), change, watch=watch)
    rank = case.previous[0].shape[1]
    result = []
    for mode, (old, size) in enumerate(zip(case.previous, case.new_shape, strict=True)):
        rows = np.full((size, rank), np.nan)
        rows[: len(old)] = old
        where = outcome.positions[mode]
        rows[slice(None) if where is None else where] = outcome.rows[mode]
        result.append(rows)
    return result


def entries_of(coords, values, shape, weights=None) -> Entries:
    return Entries.listed(
        np.ascontiguousarray(coords, np.int32).reshape(-1, len(shape)),
        np.asarray(values, float),
        tuple(shape),
        np.empty(0) if weights is None else np.asarray(weights, float),
    )
