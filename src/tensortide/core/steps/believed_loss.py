"""Rows with priors under any loss: the parabola's curvature takes the place of a cell's weight.

At the current values a loss with slope g and weight h is least squares with weight ``h / 2``
(`core.losses`), so a row and its covariance are those of `core.objective.believed`,

    (P + L) a = q + L m,      C = s2 (P + L)^-1,      P = sum_c h_c / 2 E z_c z_c',

with the parabola at the rows as they were before an update.  It may promise too much: each row is
checked on

    sum_c f(x_c, y_c) + (a - m)' L (a - m) + sum_c h_c / 2 a' Cov(z_c) a

and its step halved until that does not rise.  `value` is this objective with the parabola at the
rows as they are: where curvatures change with the rows (Huber, Bernoulli) its covariance part is
another after an update, and by that it may rise; counts have none, and theirs never rises.
The noise is the mean of what cells miss (`core.losses.standard.missed`), within bounds that a loss
may have.
Cells that have to be looked at one by one because they mean zero know no covariances.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from tensortide.arrays import Flags, Floats
from tensortide.core.kernels.entries import add_rhs
from tensortide.core.losses.standard import Loss
from tensortide.core.objective.believed import Believed, RowPriors, invert
from tensortide.core.objective.regions import ZeroCells
from tensortide.core.objective.squares import Objective, model_values
from tensortide.core.objective.towards import GammaPriors, Pulls
from tensortide.core.steps.any_loss import AnyLossObjective
from tensortide.core.steps.change import Change
from tensortide.core.steps.goal import BARELY, general_goal
from tensortide.core.steps.method import Recipe
from tensortide.core.tensor.entries import Entries
from tensortide.core.tensor.packed import diagonal_places, pack, unpack
from tensortide.core.tensor.workspace import Block, Workspace
from tensortide.core.updates.exact import Run, update_block

JITTER = 1e-9  # share by which diagonals of precisions grow: counts near zero may be collinear


class BelievedLoss(AnyLossObjective):
    """The objective of a step with any loss whose rows have priors, and the update of one mode.

    The priors of rows pull at them, or leave that to `core.objective.towards`.
    """

    def __init__(
        self,
        work: Workspace,
        entries: Entries,
        loss: Loss,
        *,
        priors: RowPriors,
        noise: float,
        inverses: Floats,
        logs: Floats,
        **others: Any,
    ) -> None:
        super().__init__(work, entries, loss, **others)
        outside = np.zeros((work.order, inverses.shape[1]))
        self._known = Believed(work, self._listed, [], priors, noise, inverses, logs, outside)
        self._parabola: Objective = self._known
        self.priors = priors
        self._moving: Flags = np.ones(0, bool)
        self._prior_sums = np.empty(0), np.empty(0)
        self.all_cells = self.zeros is not None
        self._certain_others = loss.positive or isinstance(self.zeros, ZeroCells)

    @property
    def gained(self) -> Floats:
        """What the cells have told about each row, packed."""
        return self._known.gained

    def renew(self, noise: float) -> None:
        """Take another noise."""
        self._known.noise = noise
        for mode in range(self.work.order):
            self._known.note_change(mode)

    def note_change(self, mode: int) -> None:
        """Take note that rows of a mode have changed."""
        self._parabola.note_change(mode)
        self._boxes.note_change(mode)

    def misses(self) -> float:
        """Return how much of all cells is expected to be missed."""
        return self.fit() + self._own_variance()

    def _own_variance(self) -> float:
        """Return what the model's own uncertainty adds to the loss of the cells."""
        if self._certain_others:
            return 0.0
        self._bend(0, model_values(self.work, self.entries, 0))
        return self._known.own_variance()

    def value(self, misses: float | None = None) -> float:
        """Return the objective at the current rows and covariances; `misses` if they are known."""
        if misses is None or not self.loss.divergence:
            misses = self._listed_sum(self.loss.value) + self._loss_of_zeros()
            misses += self._own_variance()
        total = misses
        if self.towards is not None:
            return total + self.towards.total()
        return self._known.value(total)

    def update_rows(self, block: Block) -> None:
        """Move the rows of a block to where the objective is lower; note how sure they are."""
        self._moving = np.zeros(self.work.n_rows[block.mode], bool)
        self._moving[block.first : block.last] = True
        if self.loss.positive:
            self._lift(block)
        self.update(block.mode)

    def _lift(self, block: Block) -> None:
        """Lift what is nothing, which could never come back, by next to nothing.

        That is a small share of the mean row, and of the values of the row's cells: what is a
        small loading for most rows may be a large one here.
        """
        work, order = self.work, self.entries.orders[block.mode]
        rows, low = work.stack[work.stacked(block)], BARELY * self.priors.part(block)[0]
        if (rows >= low).all():
            return
        pointers = order.pointers[block.first : block.last + 1]
        weights = order.weights if len(order.weights) else np.ones(len(order.values))
        reach = np.zeros_like(rows)
        add_rhs(pointers, order.others, work.other_offsets[block.mode], work.stack, weights, reach)
        sums = np.append(0.0, np.cumsum(weights * order.values))[pointers]
        with np.errstate(divide="ignore", invalid="ignore"):
            share = BARELY * np.diff(sums)[:, None] / reach
        np.maximum(rows, np.maximum(np.fmin(low, share), BARELY**3 * low), out=rows)
        self.note_change(block.mode)

    def _bent(self, mode: int) -> tuple[Floats, Floats]:
        """Return the equations of the parabola and of the priors; note how sure rows are."""
        work, known, part = self.work, self._known, self.work.part(mode)
        gram, rhs = self._equations(known, mode)
        means = self._without_covariances(mode)
        if self._certain_others:
            gram = means.copy()
        beyond, listed = gram - means, np.einsum("irr->ir", gram).copy()
        if self.zeros is not None:
            self.zeros.add(mode, gram, rhs)
        of_zeros = np.einsum("irr->ir", gram) - listed  # which the listed cells take away again
        moving = np.flatnonzero(self._moving)
        told, centres = self.priors.precisions[mode], self.priors.means[mode]
        certain = self.priors.certain[mode]
        gained, at = pack(gram[moving]), moving + part.start
        before = certain if len(certain) == 1 else certain[moving]
        places = diagonal_places(work.rank, gained.shape[1])
        there = gained[:, places].any(axis=1, keepdims=True)
        gained[:, places] = np.maximum(gained[:, places], 0.0)
        gained[:, places] += JITTER * (there * (gained + before)[:, places] + of_zeros[moving])
        known.gained[at] = gained
        sure = gained + before
        known.inverses[at], known.logs[at] = invert(sure, work.rank, mode)
        pull = np.zeros_like(gram) if self.loss.positive else unpack(told, work.rank)
        towards = np.einsum("irs,is->ir", np.broadcast_to(pull, gram.shape), centres + 0.0 * rhs)
        self._prior_sums = beyond + pull, towards
        gram, rhs = gram + pull, rhs + towards
        held = JITTER * of_zeros
        if self.loss.positive:
            held = np.maximum(held, _collinear(gram))
        if held.any():  # rows where they are
            gram[:, np.arange(work.rank), np.arange(work.rank)] += held
            rhs += held * work.stack[part]
        return gram, rhs

    def _without_covariances(self, mode: int) -> Floats:
        """Return the sums of the listed cells as if the other rows were certain."""
        gram = np.empty((self.work.n_rows[mode], self.work.rank, self.work.rank))
        for block in self.work.blocks():
            if block.mode == mode:
                gram[block.first : block.last] = Objective._sums(self._known, block)[0]
        return gram

    def _quadratic(self, mode: int) -> tuple[Floats, Floats]:  # noqa: ARG002 - of the mode at hand
        """Return the equations of priors and covariances."""
        gram, rhs = self._prior_sums
        return gram.copy(), rhs

    def _silent(self, mode: int, gram: Floats) -> Flags:  # noqa: ARG002 - priors tell of all
        """Return the rows that are not to move now."""
        return np.asarray(~self._moving)


def _collinear(gram: Floats) -> Floats:
    """Return next to nothing beside matrices, so that collinear counts have a solution."""
    size = np.einsum("irr->ir", gram)
    usual = size.max(axis=0, initial=0.0)
    return JITTER * np.where(size > 0.0, size, np.where(usual > 0.0, usual, 1.0))


AnyBelieved: TypeAlias = Believed | BelievedLoss


def update(objective: AnyBelieved, block: Block, run: Run) -> None:
    """Move the rows of a block to the minimum of their objective."""
    if isinstance(objective, BelievedLoss):
        objective.update_rows(block)
    else:
        update_block(objective, block, run)


def believed_goal(
    recipe: Recipe, change: Change, work: Workspace, priors: RowPriors, *, noise: float,
    inverses: Floats, logs: Floats, rest_sums: Floats | None = None, towards: Pulls | None = None,
) -> BelievedLoss:  # fmt: skip
    """Return the objective of a step that has a loss of its own; priors stand for the ridge."""
    recipe = replace(recipe, beta=0.0)
    if recipe.loss.positive:
        towards = GammaPriors(work, priors, towards)
    make = partial(BelievedLoss, priors=priors, noise=noise, inverses=inverses, logs=logs)
    return general_goal(recipe, change, work, [], rest_sums, towards, make)
