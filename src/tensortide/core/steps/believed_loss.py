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
            misses = self._loss_of_cells() + self._own_variance()
        total = misses
        if self.towards is not None:
            return total + self.towards.total()
        return self._known.value(total)

    def update_rows(self, block: Block) -> None:
        """Move the rows of a block to where the objective is lower; note how sure they are."""
        self._moving = np.zeros(self.work.n_rows[block.mode], bool)
        self._moving[block.first : block.last] = True
        if self.loss.positive:  # what is nothing could never come back
            rows, means = self.work.stack[self.work.stacked(block)], self.priors.part(block)[0]
            np.maximum(rows, BARELY * means, out=rows)
            self.note_change(block.mode)
        self.update(block.mode)

    def _bent(self, mode: int) -> tuple[Floats, Floats]:
        """Return the equations of the parabola and of the priors; note how sure rows are."""
        work, known, part = self.work, self._known, self.work.part(mode)
        gram, rhs = self._equations(known, mode)
        means = self._without_covariances(mode)
        if self._certain_others:
            gram = means.copy()
        beyond = gram - means
        if self.zeros is not None:
            self.zeros.add(mode, gram, rhs)
        moving = np.flatnonzero(self._moving)
        told, centres = self.priors.precisions[mode], self.priors.means[mode]
        certain = self.priors.certain[mode]
        gained, at = pack(gram[moving]), moving + part.start
        before = certain if len(certain) == 1 else certain[moving]
        places = diagonal_places(work.rank, gained.shape[1])
        there = gained[:, places].any(axis=1, keepdims=True)
        gained[:, places] += JITTER * there * (gained + before)[:, places]
        known.gained[at] = gained
        sure = gained + before
        known.inverses[at], known.logs[at] = invert(sure, work.rank, mode)
        pull = np.zeros_like(gram) if self.loss.positive else unpack(told, work.rank)
        towards = np.einsum("irs,is->ir", np.broadcast_to(pull, gram.shape), centres + 0.0 * rhs)
        self._prior_sums = beyond + pull, towards
        gram, rhs = gram + pull, rhs + towards
        if self.loss.positive:
            _hold_back(gram, rhs, work.stack[part])
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


def _hold_back(gram: Floats, rhs: Floats, rows: Floats) -> None:
    """Hold rows where they are by next to nothing, so that collinear counts have a solution."""
    places = np.arange(gram.shape[1])
    size = gram[:, places, places]
    usual = size.max(axis=0, initial=0.0)
    held = JITTER * np.where(size > 0.0, size, np.where(usual > 0.0, usual, 1.0))
    gram[:, places, places] += held
    rhs += held * rows


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
