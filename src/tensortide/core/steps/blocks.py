"""The step: Algorithm 1 of the paper for both objectives and both strategies."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np

from tensortide.arrays import Floats
from tensortide.core.kernels.dense import thin_times
from tensortide.core.objective.data_terms import DataTerms, ZeroFilled, imputed, observed_rows
from tensortide.core.objective.squares import BoxTerm, Objective
from tensortide.core.objective.towards import Towards
from tensortide.core.steps import believe
from tensortide.core.steps.any_loss import AnyLossObjective
from tensortide.core.steps.beliefs import Beliefs
from tensortide.core.steps.change import Change
from tensortide.core.steps.decay import FAINTEST, decay_slices
from tensortide.core.steps.goal import (
    anchor_scale,
    by_components,
    circumstances,
    general_goal,
    make_feasible,
    sweep_modes,
)
from tensortide.core.steps.method import Memory, Recipe
from tensortide.core.steps.outcome import Begun, Outcome, begin_step, finish_step
from tensortide.core.steps.start import start_lower_rows
from tensortide.core.tensor.dense_box import AnyEntries, DenseBox
from tensortide.core.tensor.factors import Factors
from tensortide.core.tensor.workspace import Workspace
from tensortide.core.updates.admm import Admm
from tensortide.core.updates.exact import Run, serially, update_block
from tensortide.validate import check_number

Watch: TypeAlias = Callable[[str, float], None]  # after each block: its name, the objective


def step(
    recipe: Recipe,
    factors: Factors,
    change: Change,
    run: Run = serially,
    watch: Watch | None = None,
    memory: Memory | None = None,
) -> Outcome:
    """Compute one step.  Reads the touched rows only and writes nothing.

    `watch` is told the value of the objective that the blocks lower, after each block.
    """
    if recipe.learned:
        name, data_terms = data_strategy(recipe, change)
        how = (name, data_terms, observed_terms(recipe, change))
        return believe.step(recipe, factors, change, Beliefs.of_memory(memory or {}), run, how)
    recipe = recipe.at(circumstances(change))
    begun = begin_step(factors, change)
    work, previous = begun.work, begun.previous
    past = None
    if recipe.past_decay is not None:
        past = recipe.past_decay * _past(factors, change, memory, recipe.past_decay)
        work.rest[change.time] = past
    start_lower_rows(
        work, change.entries, recipe.ridge, begun.means,
        absent_zero=change.absent_zero or change.complete,
    )  # fmt: skip
    fade = decay_slices(work, change, recipe.slice_decay)
    alpha = recipe.decay * check_number("alpha", recipe.alpha(circumstances(change)), least=0.0)
    history, towards = [], None
    if alpha > 0.0:
        every_row = recipe.rows_needed != "touched" and not recipe.keeps_history
        reference = previous * fade.scale
        weight = alpha * anchor_scale(recipe, change, work)
        if recipe.general and by_components(recipe):
            rest = None if begun.rest is None else begun.rest.sums
            towards = Towards(work, previous, rest, weight)
        else:
            history = [BoxTerm(weight, reference, upper_only=True, every_row=every_row)]
    strategy, data_terms = data_strategy(recipe, change)
    if recipe.general:
        value, sweeps = _step_general(recipe, change, begun, history, towards, watch)
    else:
        objective, sweeps = sweep(
            work, fade.entries, data_terms, history, recipe, run, watch, change.time
        )
        if data_terms is not observed_terms(recipe, change):
            listed, boxes = observed_terms(recipe, change)(work, fade.entries)
            objective = Objective(work, listed, [*boxes, *history], recipe.ridge)
        value = objective.value() + penalty_value(recipe, work)
    remembered = {}
    if past is not None:
        new = work.stack[work.lower_part(change.time)]
        remembered = {"past": past + thin_times(new, new)}
    work.stack /= fade.scale
    return finish_step(
        begun, change, factors, value, strategy, alpha=alpha, sweeps=sweeps, memory=remembered
    )


def _step_general(
    recipe: Recipe,
    change: Change,
    begun: Begun,
    history: Sequence[BoxTerm],
    towards: Towards | None,
    watch: Watch | None,
) -> tuple[float, int]:
    """Sweep with a loss or terms of their own; return the objective and the sweeps made."""
    make_feasible(recipe, change, begun.work, begun.means)
    rest = None if begun.rest is None else begun.rest.sums
    goal: AnyLossObjective = general_goal(recipe, change, begun.work, history, rest, towards)
    if towards is not None:  # else old rows would follow new ones that know least squares only
        sweep_modes(goal, begun.work.growing, watch)
    done = 0
    while done < recipe.sweeps:
        before = begun.work.stack.copy()
        sweep_modes(goal, range(begun.work.order), watch)
        done += 1
        if recipe.stop and _barely_moved(before, begun.work.stack, recipe.stop):
            break
    return goal.value(), done


def _past(factors: Factors, change: Change, memory: Memory | None, decay: float) -> Floats:
    """Return the Gram matrix of the growing mode's past rows, faded by their age.

    At the first step that is read off all rows, later it is followed.
    """
    if memory and "past" in memory:
        return np.asarray(memory["past"])
    rows = factors.rows()[change.time]
    weights = np.maximum(decay ** np.arange(len(rows) - 1, -1, -1.0), FAINTEST)
    return thin_times(rows * weights[:, None], rows)


def penalty_value(recipe: Recipe, work: Workspace) -> float:
    """Return what the penalty of whole factors adds to the objective."""
    if recipe.penalty is None:
        return 0.0
    return sum(recipe.penalty.prox.value(rows) for rows in work.rows())


def sweep(
    work: Workspace,
    entries: AnyEntries,
    data_terms: DataTerms,
    history: Sequence[BoxTerm],
    recipe: Recipe,
    run: Run = serially,
    watch: Watch | None = None,
    time: int = 0,
) -> tuple[Objective, int]:
    """Update U1, L1, ..., UN, LN, `recipe.sweeps` times at most; return the last objective.

    An imputation enters anew in each sweep, as it follows the model; the history does not: its
    reference stays the model of the step before.  A method whose past rows do not move begins
    with the new rows of the growing mode.
    """
    blocks = work.blocks(time if recipe.past_decay is not None else 0)
    admm = None if recipe.penalty is None else Admm(recipe.penalty, work)
    follows = data_terms is imputed and not isinstance(entries, DenseBox)
    done = 0
    while done < recipe.sweeps:
        if not done or follows:
            listed, boxes = data_terms(work, entries)
            objective = Objective(work, listed, [*boxes, *history], recipe.ridge)
        if watch is not None:
            watch("start", objective.value())
        before = work.stack.copy() if recipe.stop else work.stack
        if admm is not None:
            admm.begin_sweep()
        for block in blocks:
            if admm is None:
                update_block(objective, block, run)
            else:
                admm.update(objective, block)
            if watch is not None:
                watch(block.name, objective.value())
        if admm is not None:
            admm.end_sweep()
        done += 1
        if recipe.stop and _barely_moved(before, work.stack, recipe.stop):
            break
    return objective, done


def _barely_moved(before: Floats, now: Floats, share: float) -> bool:
    return bool(np.abs(now - before).max() <= share * np.abs(now).max())


def data_strategy(recipe: Recipe, change: Change) -> tuple[str, DataTerms]:
    """Return the name and the terms by which the data enter."""
    if change.absent_zero:
        return "zero-filled", observed_terms(recipe, change)
    if recipe.general:
        return "rows", observed_rows
    if change.complete and not recipe.keeps_history and recipe.strategy != "imputed":
        return "slices", observed_terms(recipe, change)
    name = recipe.choose(change.entries.n_entries, change.new_shape)
    return name, imputed if name == "imputed" else observed_rows


def observed_terms(recipe: Recipe, change: Change) -> DataTerms:
    """Return the data term of the declared objective (`eq:baseline_objective`).

    With absent cells missing the data count where they are observed, whatever the
    strategy: imputation is a way to lower this number, not another goal.  Where every new
    cell is listed, those that are not listed may as well be zeros: there are none, and the
    Gram matrices need no loop over entries.
    """
    if change.absent_zero or (change.complete and not recipe.keeps_history):
        return _ZERO_FILLED[recipe.keeps_history]
    return observed_rows


_ZERO_FILLED = {keeps: ZeroFilled(outside_old=not keeps) for keeps in (False, True)}
