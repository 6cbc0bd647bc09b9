"""The goal of a step with any loss: from a recipe and a change to an objective and its sweeps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import TypeVar

import numpy as np

from tensortide.arrays import Floats
from tensortide.core.losses.standard import Poisson, Squared
from tensortide.core.objective.data_terms import in_old_box
from tensortide.core.objective.regions import zeros_for
from tensortide.core.objective.squares import BoxTerm
from tensortide.core.objective.towards import Pulls
from tensortide.core.penalties.parts import NO_TIES, NOTHING, POSITIVE, Terms, Ties
from tensortide.core.penalties.prox import Simplex
from tensortide.core.steps.alpha import Circumstances
from tensortide.core.steps.any_loss import AnyLossObjective
from tensortide.core.steps.change import Change
from tensortide.core.steps.method import Recipe
from tensortide.core.tensor.dense_box import AnyEntries, DenseBox
from tensortide.core.tensor.entries import Entries
from tensortide.core.tensor.workspace import Workspace

Goal = TypeVar("Goal", bound=AnyLossObjective)

AGAIN = 0.1  # where a positive model that was all zero begins anew
BARELY = 1e-6  # share of the mean row below which no old number of a positive model begins a step
FLOOR = 1e-3  # share of a mode's mean loading at which new rows of positive models begin, at least


def circumstances(change: Change) -> Circumstances:
    """Return what a schedule for alpha may know."""
    return Circumstances(
        step=change.step, old_shape=change.old_shape, new_shape=change.new_shape,
        n_entries=change.n_seen, density=change.density, growing=change.growing,
    )  # fmt: skip


def ties_of(change: Change) -> tuple[Ties, ...]:
    """Return the ties of each mode; by default none."""
    return change.ties or (NO_TIES,) * len(change.new_shape)


def terms_of(recipe: Recipe, mode: int) -> Terms:
    """Return what a recipe says about a mode; a positive model has no negative loading."""
    if recipe.terms:
        return recipe.terms[mode]
    return POSITIVE if recipe.loss.positive else NOTHING


def nonnegative_modes(recipe: Recipe, order: int) -> list[bool]:
    """Return for each mode whether its rows must not be negative."""
    return [terms_of(recipe, mode).nonnegative for mode in range(order)]


def by_components(recipe: Recipe) -> bool:
    """Tell whether the last model enters by the divergence of its components."""
    return recipe.anchor == "loss" and recipe.loss.positive and not recipe.keeps_history


def anchor_scale(recipe: Recipe, change: Change, work: Workspace) -> float:
    """Return what the distance to the old model is worth: its curvature becomes the loss's.

    At the weighted mean of the entries, zeros of the region included.  The squared distance has
    the curvature two, the divergence by components that of counts, ``1 / y``: with the weight of
    least squares the old model of large counts would never move.
    """
    loss = recipe.loss
    mean = typical_value(recipe, change, work)
    if isinstance(loss, Squared) or mean is None:
        return 1.0
    scale = loss.bend(mean) / (Poisson().bend(mean) if by_components(recipe) else 2.0)
    return scale if np.isfinite(scale) and scale > 0.0 else 1.0


def typical_value(recipe: Recipe, change: Change, work: Workspace) -> float | None:
    """Return the weighted mean of the entries, zeros of the region included; None if none is."""
    loss, entries = recipe.loss, change.entries
    values = entries.all_values()
    if not len(values):
        return None
    listed = entries.orders[0].weights if isinstance(entries, Entries) else np.empty(0)
    weights = listed if len(listed) else np.ones(len(values))
    size = float(weights.sum())
    if change.absent_zero:
        size += prod(map(float, change.new_shape)) - len(values)
        if not recipe.keeps_history:
            size -= prod(map(float, change.old_shape))
            if isinstance(entries, Entries):  # corrections are listed outside the region
                size += float(np.sum(in_old_box(work, entries, 0)))
    if not size > 0.0:
        return None
    mean = float(weights @ values) / size
    if loss.positive:  # a batch of zeros says that the mean is small, not that it is nothing
        mean = max(mean, 1.0 / size if loss.least == 0.0 else 0.0)
    return mean


def make_feasible(
    recipe: Recipe,
    change: Change,
    work: Workspace,
    means: Floats | None = None,
    *,
    given: bool = False,
) -> None:
    """Bring the rows of the start where the loss is defined and the constraints hold.

    New rows start from least squares, which knows nothing of either; rows that are `given` keep
    what they may keep, and those that are fixed keep everything.
    """
    lost = np.ones(work.rank)
    still = [
        tie.still(where, n)
        for tie, where, n in zip(ties_of(change), change.positions, work.n_rows, strict=True)
    ]
    for mode, rows in enumerate(work.rows()):
        terms, kept = terms_of(recipe, mode), rows[still[mode]].copy()
        new = rows[work.n_upper[mode] :]
        if means is not None and recipe.loss.name in ("bernoulli", "custom"):
            new[:] = means[mode]
        if recipe.loss.positive:
            make_positive(recipe, rows, new[:0] if given else new, means, mode)
        elif terms.nonnegative:
            np.maximum(rows, 0.0, out=rows)
        if isinstance(terms.prox, Simplex):
            rows[:, rows.sum(axis=0) <= 0.0] = 1.0
            sums = rows.sum(axis=0)
            np.divide(rows, sums, out=rows)
            lost *= sums
        rows[still[mode]] = kept
    if means is None and (lost != 1.0).any():  # a first start keeps its size, in another mode
        free = [
            m
            for m in range(work.order)
            if not isinstance(terms_of(recipe, m).prox, Simplex) and not still[m].any()
        ]
        if free:
            work.stack[work.part(free[0])] *= lost


def make_positive(
    recipe: Recipe, rows: Floats, new: Floats, means: Floats | None, mode: int
) -> None:
    """Lift rows, and those of them that are `new`, to where counts have a probability."""
    np.abs(rows, out=rows)
    if not rows.any():  # a model of zeros could never leave them
        rows[:] = AGAIN
    usual = rows.mean() if means is None else means[mode].max()
    if recipe.learned and means is not None:  # components may be of different size in a mode
        usual = np.where(means[mode] > 0.0, means[mode], usual)
    np.maximum(new, FLOOR * usual, out=new)
    if means is not None and by_components(recipe):
        # Counts are shared out among components: one at nothing could never come back.
        np.maximum(rows, BARELY * means[mode], out=rows)


def general_goal(
    recipe: Recipe,
    change: Change,
    work: Workspace,
    history: Sequence[BoxTerm],
    rest_sums: Floats | None = None,
    towards: Pulls | None = None,
    make: Callable[..., Goal] = AnyLossObjective,  # type: ignore[assignment]
) -> Goal:
    """Return the objective of a step that has a loss or terms of its own."""
    entries = _list_cells(change.entries, work)
    zeros, boxes, in_region = None, list(history), None
    if change.absent_zero:
        outside = not recipe.keeps_history
        rest = np.zeros((work.order, work.rank)) if rest_sums is None else rest_sums
        zeros, more = zeros_for(recipe.loss, work, rest, outside_old=outside)
        boxes += more
        in_region = [
            np.asarray(1.0 - (in_old_box(work, entries, mode) if outside else 0.0), np.float64)
            + np.zeros(entries.n_entries)
            for mode in range(work.order)
        ]
    return make(
        work, entries, recipe.loss, zeros=zeros, boxes=boxes, beta=recipe.ridge,
        terms=[terms_of(recipe, mode) for mode in range(work.order)], ties=ties_of(change),
        positions=change.positions, in_region=in_region, towards=towards,
    )  # fmt: skip


def _list_cells(entries: AnyEntries, work: Workspace) -> Entries:
    """Return the entries one by one; a box of new slices stands at the end of its mode."""
    if not isinstance(entries, DenseBox):
        return entries
    shift = np.array(work.n_rows) - np.array(entries.shape)
    coords = np.ascontiguousarray(entries.coords() + shift, np.int32)
    return Entries.listed(coords, entries.in_order().ravel(), work.n_rows)


def sweep_modes(
    goal: AnyLossObjective, modes: Sequence[int], watch: Callable[[str, float], None] | None = None
) -> None:
    """Update these modes once, in their order."""
    if watch is not None:
        watch("start", goal.value())
    for mode in modes:
        goal.update(mode)
        if watch is not None:
            watch(f"mode {mode + 1}", goal.value())
