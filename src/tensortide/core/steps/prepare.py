"""Preparation: factors from scratch by alternating least squares."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tensortide.arrays import Flags, Floats
from tensortide.core.kernels.dense import dot
from tensortide.core.losses.standard import Loss, Squared, missed
from tensortide.core.objective.believed import RowPriors
from tensortide.core.objective.squares import Objective
from tensortide.core.steps.beliefs import FEWEST
from tensortide.core.steps.believe import count_cells
from tensortide.core.steps.believed_loss import BelievedLoss, believed_goal
from tensortide.core.steps.blocks import data_strategy, observed_terms, sweep
from tensortide.core.steps.change import Change
from tensortide.core.steps.goal import (
    circumstances,
    general_goal,
    make_feasible,
    nonnegative_modes,
    sweep_modes,
    terms_of,
    ties_of,
    typical_value,
)
from tensortide.core.steps.hyper import above
from tensortide.core.steps.learn import Learning
from tensortide.core.steps.method import Recipe
from tensortide.core.tensor.dense_box import DenseBox
from tensortide.core.tensor.entries import Entries
from tensortide.core.tensor.workspace import Workspace
from tensortide.core.updates.exact import Run, serially

TRIAL_SWEEPS = 20  # enough to tell a poor start from a good one


@dataclass(frozen=True, slots=True)
class Effort:
    """How hard to try: sweeps at most, relative decrease to stop at, random starts.

    With `given` factors there is one start, and zero sweeps leave them as they are.
    """

    max_sweeps: int = 500
    tol: float = 1e-6
    starts: int = 5
    given: Sequence[Floats] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """The best factors found."""

    rows: tuple[Floats, ...]
    objective: float
    sweeps: int
    strategy: str
    converged: bool
    ridge: float
    learning: Learning | None = None

    def is_zero(self, largest: float) -> bool:
        """Tell whether the model is next to nothing beside values of this size."""
        size = max(float(np.abs(rows).max()) for rows in self.rows)
        return size ** len(self.rows) < 1e-6 * largest


def prepare(
    recipe: Recipe,
    change: Change,
    rank: int,
    rng: np.random.Generator,
    effort: Effort,
    run: Run = serially,
    on_sweep: Callable[[int, float], None] | None = None,
) -> Prepared:
    """Minimise the data term plus ridge from given factors or the best of several random starts.

    Each start gets a few sweeps; the one with the lowest objective is carried on until a
    sweep lowers it by less than `tol` of itself.  `on_sweep` is told the number of sweeps
    so far, of all starts, and the objective.
    """
    recipe, shape = recipe.at(circumstances(change)), change.new_shape
    strategy, _ = data_strategy(recipe, change)
    descents: list[_Descent | _Learner] = []
    done = 0
    make, trial = (_Learner, 2 * TRIAL_SWEEPS) if recipe.learned else (_Descent, TRIAL_SWEEPS)
    for _ in range(effort.starts if effort.given is None else 1):
        work = Workspace([0] * len(shape), shape, rank)
        if effort.given is None:
            _random_start(work, change, rng, odds=recipe.loss.name == "bernoulli")
        else:
            work.stack[:] = np.concatenate(effort.given)
        if recipe.general and (effort.given is None or effort.max_sweeps):
            make_feasible(recipe, change, work, given=effort.given is not None)
        descents.append(make(recipe, change, work, effort.tol, run))
    if len(descents) > 1:
        for descent in descents:
            done = descent.go_on(min(trial, effort.max_sweeps), done, on_sweep)
    best = min(descents, key=lambda descent: descent.objective)
    best.go_on(effort.max_sweeps - best.sweeps, done, on_sweep)
    if isinstance(best, _Learner):
        return best.finish(strategy)
    rows, swept = best.work.rows(), effort.given is None or best.sweeps > 0
    if swept and not change.absent_zero:
        fill_empty_rows(rows, change, _held_rows(recipe, change))
    if swept and not recipe.terms:  # terms of a mode know one scale
        rows = balance(rows)
    return Prepared(
        rows=tuple(r.copy() for r in rows), objective=best.objective if swept else best.value(),
        sweeps=best.sweeps, strategy=strategy, converged=best.converged,
        ridge=recipe.ridge,
    )  # fmt: skip


class _Descent:
    """Sweeps from one start."""

    def __init__(
        self, recipe: Recipe, change: Change, work: Workspace, tol: float, run: Run
    ) -> None:
        self.work = work
        self.objective = np.inf
        self.sweeps = 0
        self.converged = False
        self._recipe = replace(recipe, sweeps=1)
        self._change = change
        self._tol = tol
        self._run = run

    def go_on(self, sweeps: int, done: int, on_sweep: Callable[[int, float], None] | None) -> int:
        """Sweep on until convergence, `sweeps` times at most; return the sweeps done in all."""
        sweep_once = self._sweeper()
        for _ in range(sweeps):
            if self.converged:
                break
            last, self.objective = self.objective, sweep_once()
            self.sweeps, done = self.sweeps + 1, done + 1
            self.converged = bool(last - self.objective <= self._tol * last < np.inf)
            if on_sweep is not None:
                on_sweep(done, self.objective)
        return done

    def _sweeper(self) -> Callable[[], float]:
        """Return what makes a sweep and gives the objective after it."""
        recipe, change, work = self._recipe, self._change, self.work
        goal = general_goal(recipe, change, work, []) if recipe.general else None
        _, data_terms = data_strategy(recipe, change)
        observed = observed_terms(recipe, change)

        def sweep_once() -> float:
            if goal is not None:
                sweep_modes(goal, range(work.order))
                return goal.value()
            objective, _ = sweep(work, change.entries, data_terms, [], recipe, self._run)
            return objective.value() if data_terms is observed else self.value()

        return sweep_once

    def value(self) -> float:
        """Return the declared objective at the current rows."""
        if self._recipe.general:
            return general_goal(self._recipe, self._change, self.work, []).value()
        listed, boxes = observed_terms(self._recipe, self._change)(self.work, self._change.entries)
        return Objective(self.work, listed, boxes, self._recipe.ridge).value()


class _Learner:
    """Sweeps from one start, with priors that are learned."""

    def __init__(
        self, recipe: Recipe, change: Change, work: Workspace, tol: float, run: Run
    ) -> None:
        self.work, self.sweeps, self.converged = work, 0, False
        self.objective = np.inf
        values = _told_values(change)
        data_terms = data_strategy(recipe, change)[1]
        self._n_cells = count_cells(change, recipe)
        square = dot(values, values) / self._n_cells
        self._all_zero = square == 0.0 and stays_zero(recipe.loss)
        self._tol = 10.0 * tol * self._n_cells
        self.learning = Learning(
            work=work, entries=change.entries, data_terms=data_terms,
            observed=observed_terms(recipe, change), n_cells=self._n_cells, run=run,
            nonnegative=nonnegative_modes(recipe, work.order),
            square=square, **_of_loss(recipe, change, work),
        )  # fmt: skip

    def go_on(self, sweeps: int, done: int, on_sweep: Callable[[int, float], None] | None) -> int:
        """Sweep on until convergence, `sweeps` times at most; return the sweeps done in all."""
        if sweeps and self._all_zero:  # whose minimum is known; sweeps would shrink rows for ever
            self.work.stack[:] = self.objective = 0.0
            self.converged = True
        for _ in range(sweeps):
            if self.converged:
                break
            self._sweep()
            done += 1
            if on_sweep is not None:
                on_sweep(done, self.objective)
        return done

    def _sweep(self) -> None:
        if self.sweeps < TRIAL_SWEEPS:
            self.objective = self.learning.warm_up()
        else:
            if self.sweeps == TRIAL_SWEEPS:
                self._begin()
            last, self.objective = self.objective, self.learning.sweep()
            self.converged = abs(last - self.objective) <= self._tol
        self.sweeps += 1

    def _begin(self) -> None:
        for rows, balanced in zip(self.work.rows(), balance(self.work.rows()), strict=True):
            rows[:] = balanced
        self.learning.guess()

    def finish(self, strategy: str) -> Prepared:
        """Return what was found; rows that got no sweep with priors learn these standing still."""
        if self.sweeps <= TRIAL_SWEEPS:
            if self.sweeps:
                self._begin()
            else:
                self.learning.guess()
            for _ in range(TRIAL_SWEEPS):
                self.objective = self.learning.sweep(still=True)
        return Prepared(
            rows=tuple(rows.copy() for rows in self.work.rows()), objective=float(self.objective),
            sweeps=self.sweeps, strategy=strategy, converged=self.converged,
            ridge=0.0, learning=self.learning,
        )  # fmt: skip


def stays_zero(loss: Loss) -> bool:
    """Tell whether a model of zeros is where this loss wants it, if all values are zero."""
    return not loss.positive and not loss.slope(np.zeros(1), np.zeros(1)).any()


def _told_values(change: Change) -> Floats:
    """Return the values of the cells that have weight."""
    values = change.entries.all_values()
    if not change.weighted:
        return values
    assert isinstance(change.entries, Entries)
    return values[change.entries.orders[0].weights > 0.0]


def _of_loss(recipe: Recipe, change: Change, work: Workspace) -> dict[str, Any]:
    """Return what a preparation that learns its priors has to know of a loss of its own."""
    loss = recipe.loss
    mean, values = typical_value(recipe, change, work), _told_values(change)
    few = np.count_nonzero(values) < FEWEST  # the square of one value would give it away
    if isinstance(loss, Squared) or mean is None:
        size = dot(values, values) / count_cells(change, recipe)
        size = size or float(np.finfo(float).tiny * values.any())  # squares may be too small
        return {"size": above(size) if few else size, "most": above(size)}
    bend = loss.bend(mean)
    bend = bend if np.isfinite(bend) and bend > 0.0 else 2.0

    def general(learning: Learning) -> BelievedLoss:
        return believed_goal(
            recipe, change, work, RowPriors(learning.means, learning.told), noise=0.0,
            inverses=learning.inverses, logs=learning.logs,
        )  # fmt: skip

    centre = mean if loss.positive else 0.0  # as large, not as varied: alike is not nothing
    size = float(np.mean(missed(loss, values, np.full(len(values), centre))))
    size = size if np.isfinite(size) else 0.0
    most = min(loss.most_noise, above(size) or np.inf)
    if loss.least_noise > 0.0:  # noise has a unit: whether there is anything at all
        size = float(values.any())
    elif few:
        size = above(size)
    return {
        "general": general, "bend": bend / 2.0, "least": loss.least_noise,
        "most": most,
        "size": size,
    }  # fmt: skip


def _random_start(work: Workspace, change: Change, rng: np.random.Generator, *, odds: bool) -> None:
    """Draw the start: of one sign where the data mostly are, else of both, and of their size.

    A model of log odds has both signs whatever the data.

    The wrong choice sends alternating least squares on sparse data into poor solutions of
    huge, cancelling components (docs/numerics.md).
    """
    values = change.entries.all_values()
    largest = float(np.abs(values).max()) or 1.0
    scaled = values / largest
    lean = float(scaled.sum()) / float(np.abs(scaled).sum() or 1.0)
    one_sign = abs(lean) > 0.5
    draw = rng.random if one_sign and not odds else rng.standard_normal
    work.stack[:] = draw(work.stack.shape)
    if one_sign and lean < 0.0:
        work.stack[work.part(0)] *= -1.0
    own = float(np.prod([f.T @ f / len(f) for f in work.rows()], axis=0).sum())
    size = largest * float(np.sqrt(np.mean(scaled * scaled)))
    if size > 0.0:
        work.stack *= (size / np.sqrt(own)) ** (1.0 / work.order)


def fill_empty_rows(rows: Sequence[Floats], change: Change, held: Sequence[Flags] = ()) -> None:
    """Give rows that have no entry the mean of those that have one.

    Those in `held` stay as they are: other rows, or the user, have said what they are.
    """
    if isinstance(change.entries, DenseBox):
        return
    for mode, order in enumerate(change.entries.orders):
        empty = order.pointers[1:] == order.pointers[:-1]
        filled = empty & ~held[mode] if held else empty
        if filled.any():
            rows[mode][filled] = rows[mode][~empty].mean(axis=0)


def _held_rows(recipe: Recipe, change: Change) -> list[Flags]:
    """Return which rows of each mode are tied to others, fixed, or part of a whole."""
    found = []
    for mode, (ties, size) in enumerate(zip(ties_of(change), change.new_shape, strict=True)):
        held = ties.still(None, size)
        held[ties.pairs.ravel()] = True
        found.append(held | (terms_of(recipe, mode).prox is not None))
    return found


def balance(rows: Sequence[Floats]) -> list[Floats]:
    """Give each component the same norm in every mode; the model's values stay the same.

    Of all scalings this one has the smallest ridge penalty.
    """
    norms = np.array([np.sqrt((r * r).sum(axis=0)) for r in rows])
    live = (norms > 0.0).all(axis=0)
    logs = np.log(np.where(norms > 0.0, norms, 1.0))
    factor = np.where(live, np.exp(logs.mean(axis=0) - logs), 1.0)
    return [r * f for r, f in zip(rows, factor, strict=True)]
