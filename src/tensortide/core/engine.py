"""The step: Algorithm 1 of the paper for both objectives and both strategies."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from tensortide.core.alpha import Circumstances, check_number
from tensortide.core.change import Change
from tensortide.core.entries import Entries
from tensortide.core.factors import Factors, RunningGrams
from tensortide.core.growth import start_lower_rows
from tensortide.core.kernels import predict_cells
from tensortide.core.objective import BoxTerm, Objective
from tensortide.core.recipe import Recipe
from tensortide.core.strategies import DataTerms, ZeroFilled, imputed, observed_rows
from tensortide.core.types import Floats, Positions, Shape
from tensortide.core.updates import Run, serially, update_block
from tensortide.core.workspace import Workspace

Watch: TypeAlias = Callable[[str, float], None]  # after each block: its name, the objective


@dataclass(frozen=True, slots=True)
class Outcome:
    """New rows and what a person wants to know about them.  Nothing is written yet."""

    positions: Sequence[Positions | None]
    rows: Sequence[Floats]
    new_shape: Shape
    grams: RunningGrams
    before: Journal
    objective: float
    largest_move: float
    strategy: str
    alpha: float
    predicted: Floats


@dataclass(frozen=True, slots=True)
class Journal:
    """The touched rows as they were: the undo of a step."""

    positions: Sequence[Positions | None]
    rows: Sequence[Floats]
    shape: Shape
    grams: RunningGrams


def step(
    recipe: Recipe,
    factors: Factors,
    change: Change,
    run: Run = serially,
    watch: Watch | None = None,
) -> Outcome:
    """Compute one step.  Reads the touched rows only and writes nothing.

    `watch` is told the value of the objective that the blocks lower, after each block.
    """
    everything = change.positions[0] is None
    n_upper, n_lower = _touched(change)
    work = factors.load(change.positions, n_upper, n_lower)
    rest = None
    if not everything:
        rest = factors.grams.minus_upper(work)
        work.leave_out(rest.matrices())
    means = factors.means()
    for mode in work.growing:
        work.stack[work.lower_part(mode)] = means[mode]
    previous = work.stack.copy()
    predicted = predict(work, change)
    start_lower_rows(work, change.entries, recipe.beta, means, absent_zero=change.absent_zero)

    alpha = recipe.forgetting * check_number(
        "alpha", recipe.alpha(circumstances(change)), least=0.0
    )
    history = [BoxTerm(alpha, previous, upper_only=True)] if alpha > 0.0 else []
    strategy, data_terms = data_strategy(recipe, change)
    objective = sweep(work, change.entries, data_terms, history, recipe, run, watch)
    if data_terms is not observed_terms(recipe, change):
        listed, boxes = observed_terms(recipe, change)(work, change.entries)
        objective = Objective(work, listed, [*boxes, *history], recipe.beta)
    rows = work.rows()
    journal = Journal(
        [None if p is None else p[:n] for p, n in zip(change.positions, n_upper, strict=True)],
        [previous[work.upper_part(mode)] for mode in range(work.order)],
        change.old_shape,
        factors.grams,
    )
    return Outcome(
        change.positions,
        rows,
        change.new_shape,
        RunningGrams.of(rows) if rest is None else rest.plus(work),
        journal,
        objective.value(),
        _largest_move(work, previous),
        strategy,
        alpha,
        predicted,
    )


def commit(factors: Factors, outcome: Outcome) -> None:
    """Write the outcome into the factors."""
    factors.put(outcome.positions, outcome.rows, outcome.new_shape, outcome.grams)


def undo(factors: Factors, outcome: Outcome) -> None:
    """Put everything back as it was before `commit`, however far that got."""
    before = outcome.before
    factors.put(before.positions, before.rows, before.shape, before.grams)


def sweep(
    work: Workspace,
    entries: Entries,
    data_terms: DataTerms,
    history: Sequence[BoxTerm],
    recipe: Recipe,
    run: Run = serially,
    watch: Watch | None = None,
) -> Objective:
    """Update U1, L1, ..., UN, LN, `recipe.sweeps` times; return the objective of the last sweep.

    The data enter anew in each sweep (an imputation follows the model), the history does
    not: its reference stays the model of the step before.
    """
    for _ in range(recipe.sweeps):
        listed, boxes = data_terms(work, entries)
        objective = Objective(work, listed, [*boxes, *history], recipe.beta)
        if watch is not None:
            watch("start", objective.value())
        for block in work.blocks():
            update_block(objective, block, run)
            if watch is not None:
                watch(block.name, objective.value())
    return objective


def data_strategy(recipe: Recipe, change: Change) -> tuple[str, DataTerms]:
    """Return the name and the terms by which the data enter."""
    if change.absent_zero:
        return "zero-filled", observed_terms(recipe, change)
    name = recipe.choose(change.entries.n_entries, change.new_shape)
    return name, imputed if name == "imputed" else observed_rows


def observed_terms(recipe: Recipe, change: Change) -> DataTerms:
    """Return the data term of the declared objective (`eq:baseline_objective`).

    With absent cells missing the data count where they are observed, whatever the
    strategy: imputation is a way to lower this number, not another goal.
    """
    if change.absent_zero:
        return _ZERO_FILLED[recipe.keeps_history]
    return observed_rows


_ZERO_FILLED = {keeps: ZeroFilled(outside_old=not keeps) for keeps in (False, True)}


def circumstances(change: Change) -> Circumstances:
    """Return what a schedule for alpha may know."""
    return Circumstances(
        change.step,
        change.old_shape,
        change.new_shape,
        change.n_seen,
        change.density,
        change.growing,
    )


def predict(work: Workspace, change: Change) -> Floats:
    """Return the model's values of the cells that have just arrived."""
    out = np.empty(len(change.arrived))
    predict_cells(change.arrived, work.firsts, work.stack, out)
    return out


def _touched(change: Change) -> tuple[Shape, Shape]:
    """Return how many old and how many new rows of each mode take part."""
    old, new = change.old_shape, change.new_shape
    if change.positions[0] is None:
        return old, tuple(n - o for o, n in zip(old, new, strict=True))
    counts = [
        (int(p.searchsorted(size)), len(p))
        for p, size in zip(change.positions, old, strict=True)
        if p is not None
    ]
    return tuple(u for u, _ in counts), tuple(n - u for u, n in counts)


def _largest_move(work: Workspace, previous: Floats) -> float:
    """Return the largest change of a number in the old rows."""
    moves = np.abs(work.stack - previous)
    for mode in work.growing:
        moves[work.lower_part(mode)] = 0.0
    return float(moves.max())
