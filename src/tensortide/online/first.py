"""From first data to rows: the preparation, and a new beginning where only zeros were known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from tensortide.arrays import Floats
from tensortide.core.steps.beliefs import Beliefs
from tensortide.core.steps.flows import begin, preparation
from tensortide.core.steps.method import Memory, Method, Recipe
from tensortide.core.steps.outcome import Journal, Outcome, begin_step
from tensortide.core.steps.prepare import Effort, Prepared, prepare
from tensortide.core.steps.rank import balance_believed, revive, revive_believed
from tensortide.core.tensor.entries import Entries
from tensortide.core.tensor.factors import Factors
from tensortide.core.updates.exact import Run
from tensortide.data.timeline import ordered_mode
from tensortide.errors import SolveError
from tensortide.online.ahead import Ahead, Next, first_ahead

if TYPE_CHECKING:
    from tensortide.core.tensor.fibres import Fibres
    from tensortide.data.arrival import Arrival
    from tensortide.data.modes import Modes
    from tensortide.online.changes import BatchChange
    from tensortide.online.model import Model


@dataclass(frozen=True, slots=True)
class First:
    """What a preparation gives a model: rows, and what is remembered besides."""

    factors: Factors
    memory: Memory
    ahead: Ahead

    @classmethod
    def of(
        cls,
        best: Prepared,
        method: Method,
        change: BatchChange,
        modes: Modes,
        along: int | None,
        *,
        rng: np.random.Generator | None,
        fibres: bool = False,
        zeros: Fibres | None = None,
    ) -> First:
        """Look along the mode that has an outlook; with `rng` rows that got no food are revived.

        `modes` know the labels already, and `zeros` are fibres that have seen zeros before.
        """
        factors = _live_factors(method, best, along or 0, rng)
        if best.learning is None:
            return cls(factors, begin(method, factors.rows(), change), Ahead())
        beliefs, ahead = first_ahead(
            best.learning, factors, change, modes, along, fibres=fibres, loss=method.loss,
            zeros=zeros,
        )  # fmt: skip
        return cls(factors, beliefs.as_memory(), ahead)


def begin_again(
    model: Model, change: BatchChange, arrival: Arrival, run: Run
) -> tuple[Next, Outcome]:
    """Learn the first values that are not zero as first data are learned.

    Rows that have seen zeros know no size and no direction, and a step from there would have to
    guess both.  Without history the old labels of the ordered mode keep their zeros.
    """
    modes = model.modes.copy()
    modes.append(arrival.fresh)
    along = ordered_mode(modes.labels, arrival.listed)
    entries = change.entries
    if not model.method.keeps_history:
        cells = np.ascontiguousarray(change.places(np.arange(len(change.values))), np.int32)
        entries = Entries.listed(cells, change.values, change.new_shape, change.cells.weights)
    first = replace(change, entries=entries, old_shape=(0,) * modes.order, n_seen=0, step=0)
    rng = np.random.default_rng(model.n_steps)
    best = _found(preparation(model.method), first, model.rank, rng, run)
    if not model.method.keeps_history and along is not None:
        pointers = entries.orders[along].pointers
        untold = pointers[1:] == pointers[:-1]
        best.rows[along][np.flatnonzero(untold[: change.old_shape[along]])] = 0.0
    fibres = model.ahead.fibres
    found = First.of(
        best, model.method, first, modes, along, rng=rng, fibres=fibres is not None,
        zeros=None if model.method.keeps_history else fibres,
    )  # fmt: skip
    beliefs, told = Beliefs.of_memory(found.memory), Beliefs.of_memory(model.memory)
    if along is not None:  # which mode grows is known from the zeros, too
        grown = told.grown if told.timeline == along else 0
        beliefs = replace(beliefs, grown=grown + len(arrival.fresh[along]))
    before = [rows.copy() for rows in model.rows()]
    rows = found.factors.rows()
    moves = [np.abs(new[: len(old)] - old).max() for new, old in zip(rows, before, strict=True)]
    outcome = Outcome(
        positions=change.positions, rows=rows, new_shape=change.new_shape,
        grams=found.factors.grams, objective=best.objective, largest_move=float(max(moves)),
        before=Journal(
            positions=change.positions, rows=before, shape=change.old_shape,
            grams=model.factors.grams,
            precisions=[told.copy() for told in model.factors.precisions()],
        ),
        strategy=best.strategy, alpha=None, sweeps=best.sweeps,
        predicted=begin_step(model.factors, change).predicted, memory=beliefs.as_memory(),
        precisions=found.factors.precisions(),
    )  # fmt: skip
    line, fibres = found.ahead.line, found.ahead.fibres
    return Next(change=change, beliefs=beliefs, line=line, fibres=fibres), outcome


def _found(
    recipe: Recipe, first: BatchChange, rank: int, rng: np.random.Generator, run: Run
) -> Prepared:
    """Return what a preparation finds; the mean of values that are too few to tell components."""
    values, order = first.entries.all_values(), len(first.new_shape)
    try:
        best = prepare(recipe, first, rank, rng, Effort(), run)
        if not best.is_zero(float(np.abs(values).max())):
            return best
    except SolveError:  # cells that say nothing about most rows; values too large fail again
        pass
    mean = float(values.sum()) / (len(values) + 1.0)  # drawn to zero, where all was before
    given = [np.zeros((n, rank)) for n in first.new_shape]
    for rows in given:
        rows[:, 0] = abs(mean) ** (1.0 / order)
    given[0] *= np.sign(mean)
    return prepare(recipe, first, rank, rng, Effort(max_sweeps=0, given=given), run)


def is_positive(method: Method) -> bool:
    """Tell whether the factors of a method must not be negative."""
    return method.loss.positive or any(t.nonnegative for t in method.terms)


def _live_factors(
    method: Method, best: Prepared, along: int, rng: np.random.Generator | None
) -> Factors:
    """Return the factors of a preparation; with `rng` components that got no food are revived."""
    if best.learning is None:
        return Factors(best.rows if rng is None else _revive(method, best.rows, rng))
    if rng is None:
        return Factors(best.rows, precisions=best.learning.precisions())
    found = best.learning
    rows, told = balance_believed(best.rows, found.precisions())
    rows, told = revive_believed(
        rows, told, found.noise, found.square, rng, at=along,
        least=found.least_square(), positive=is_positive(method),
    )  # fmt: skip
    return Factors(rows, precisions=told)


def _revive(method: Method, rows: Sequence[Floats], rng: np.random.Generator) -> Sequence[Floats]:
    """Give components that first data could not feed another chance; penalties give none."""
    if method.terms:
        return rows
    return revive(rows, rng, positive=is_positive(method))
