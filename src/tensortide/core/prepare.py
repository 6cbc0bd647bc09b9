"""Preparation: factors from scratch by alternating least squares."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from tensortide.core.change import Change
from tensortide.core.engine import data_strategy, observed_terms, sweep
from tensortide.core.objective import Objective
from tensortide.core.recipe import Recipe
from tensortide.core.types import Floats
from tensortide.core.updates import Run, serially
from tensortide.core.workspace import Workspace


@dataclass(frozen=True, slots=True)
class Effort:
    """How hard to try: sweeps at most, relative decrease to stop at, random starts."""

    max_sweeps: int = 500
    tol: float = 1e-6
    starts: int = 1


@dataclass(frozen=True, slots=True)
class Prepared:
    """The best factors found."""

    rows: tuple[Floats, ...]
    objective: float
    sweeps: int
    strategy: str
    converged: bool


def prepare(
    recipe: Recipe,
    change: Change,
    rank: int,
    rng: np.random.Generator,
    effort: Effort,
    run: Run = serially,
    on_sweep: Callable[[int, int, float], None] | None = None,
) -> Prepared:
    """Minimise the data term plus ridge from random starts and keep the best.

    `on_sweep` is told the number of the start, of the sweep, and the objective.
    """
    best: Prepared | None = None
    for start in range(effort.starts):
        tell = None if on_sweep is None else _telling(on_sweep, start)
        candidate = _one_start(recipe, change, rank, rng, effort, run, tell)
        if best is None or candidate.objective < best.objective:
            best = candidate
    if best is None:
        raise ValueError("no start")
    return best


def _telling(
    on_sweep: Callable[[int, int, float], None], start: int
) -> Callable[[int, float], None]:
    return lambda number, objective: on_sweep(start, number, objective)


def _one_start(
    recipe: Recipe,
    change: Change,
    rank: int,
    rng: np.random.Generator,
    effort: Effort,
    run: Run,
    tell: Callable[[int, float], None] | None,
) -> Prepared:
    shape = change.new_shape
    work = Workspace([0] * len(shape), shape, rank)
    work.stack[:] = rng.random(work.stack.shape)
    _match_scale(work, change)
    strategy, data_terms = data_strategy(recipe, change)
    observed = observed_terms(recipe, change)
    once = replace(recipe, sweeps=1)
    last = np.inf
    number, converged = 0, False
    while number < effort.max_sweeps and not converged:
        number += 1
        goal = sweep(work, change.entries, data_terms, [], once, run)
        if data_terms is not observed:
            listed, boxes = observed(work, change.entries)
            goal = Objective(work, listed, boxes, recipe.beta)
        objective = goal.value()
        if tell is not None:
            tell(number, objective)
        converged = bool(np.isfinite(last)) and last - objective <= effort.tol * last
        last = objective
    rows = work.rows()
    if not change.absent_zero:
        fill_empty_rows(rows, change)
    return Prepared(tuple(balanced(rows)), last, number, strategy, converged)


def _match_scale(work: Workspace, change: Change) -> None:
    """Scale the random start so that its values are as large as the data."""
    values = change.entries.orders[0].values
    size = float(np.sqrt(np.mean(np.square(values / (np.abs(values).max() or 1.0)))))
    size *= float(np.abs(values).max())
    typical = work.rank * 0.5**work.order  # mean of a sum of products of uniform numbers
    if size > 0.0:
        work.stack *= (size / typical) ** (1.0 / work.order)


def fill_empty_rows(rows: Sequence[Floats], change: Change) -> None:
    """Give rows that have no entry the mean of those that have one."""
    for mode, order in enumerate(change.entries.orders):
        empty = order.pointers[1:] == order.pointers[:-1]
        if empty.any():
            rows[mode][empty] = rows[mode][~empty].mean(axis=0)


def balanced(rows: Sequence[Floats]) -> list[Floats]:
    """Give each component the same norm in every mode; the model's values stay the same.

    Of all scalings this one has the smallest ridge penalty.
    """
    norms = np.array([np.sqrt((r * r).sum(axis=0)) for r in rows])
    live = (norms > 0.0).all(axis=0)
    logs = np.log(np.where(norms > 0.0, norms, 1.0))
    factor = np.where(live, np.exp(logs.mean(axis=0) - logs), 1.0)
    return [r * f for r, f in zip(rows, factor, strict=True)]
