"""Preparation of rows with priors: a start, then rows, covariances and hyperparameters by turns.

From each start some sweeps of alternating least squares, then expectation and maximisation: rows
and their covariances with the priors as they are, then the mean row and the scatter of each mode
and the noise from them.  The start with the largest evidence goes on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from tensortide.arrays import Floats
from tensortide.core.kernels.dense import thin_times
from tensortide.core.objective.believed import Believed, RowPriors
from tensortide.core.objective.data_terms import DataTerms, imputed
from tensortide.core.objective.squares import Objective
from tensortide.core.steps.believed_loss import AnyBelieved, BelievedLoss, update
from tensortide.core.steps.hyper import above, faintest, mode_precisions
from tensortide.core.tensor.dense_box import AnyEntries, DenseBox
from tensortide.core.tensor.packed import diagonal_places, packed_width, unpack
from tensortide.core.tensor.workspace import Workspace
from tensortide.core.updates.exact import Run

RIDGE = 1e-4  # share of a row's mean curvature by which the first sweeps draw it to zero


@dataclass(slots=True, kw_only=True)
class Learning:
    """One start on its way: its rows, how sure they are, its hyperparameters.

    `size` is what noise is small beside, `square` the mean square of the values; `bend` is the
    weight of a usual cell, one for squares, and `least` and `most` bound the noise: where cells are
    too few to hold variances down, these grow with the noise, and the noise with them.
    """

    work: Workspace
    entries: AnyEntries
    data_terms: DataTerms
    observed: DataTerms
    n_cells: float
    size: float
    square: float
    run: Run
    bend: float = 1.0
    least: float = 0.0
    most: float = np.inf
    nonnegative: Sequence[bool] = ()
    general: Callable[[Learning], BelievedLoss] | None = None
    noise: float = 0.0
    misses: float = 0.0
    goal: BelievedLoss | None = field(init=False, default=None)
    inverses: Floats = field(init=False)
    logs: Floats = field(init=False)
    gained: Floats = field(init=False)
    means: list[Floats] = field(init=False)
    told: list[Floats] = field(init=False)

    def __post_init__(self) -> None:
        """Begin sure of nothing."""
        order, rank, rows = self.work.order, self.work.rank, len(self.work.stack)
        self.inverses = np.zeros((rows, packed_width(rank)))
        self.gained = np.zeros_like(self.inverses)
        self.logs = np.zeros(rows)
        self.means = [np.zeros((1, rank)) for _ in range(order)]
        self.told = [np.zeros((1, packed_width(rank))) for _ in range(order)]
        self.goal = None if self.general is None else self.general(self)

    def _objective(self, noise: float) -> AnyBelieved:
        work, entries = self.work, self.entries
        if self.goal is not None:
            self.goal.renew(noise)
            return self.goal
        listed, boxes = self.data_terms(work, entries)
        seen = None
        if self.data_terms is imputed and not isinstance(entries, DenseBox):
            seen, _ = self.observed(work, entries)
        outside = np.zeros((work.order, self.inverses.shape[1]))
        return Believed(
            work, listed, boxes,
            RowPriors(self.means, self.told, nonnegative=self.nonnegative), noise, self.inverses,
            self.logs, outside, imputed=seen,
        )  # fmt: skip

    def warm_up(self) -> float:
        """Make a sweep of least squares with a ridge that knows the scale of each component."""
        work, places = self.work, diagonal_places(self.work.rank, self.inverses.shape[1])
        sizes = [np.mean(rows * rows, axis=0) for rows in work.rows()]
        objective = self._objective(0.0)
        for block in work.blocks():
            mode = block.mode
            others = np.prod([s for m, s in enumerate(sizes) if m != mode], axis=0)
            ridge = RIDGE * self.bend * others * self.n_cells / work.n_rows[mode]
            self.means[mode][:] = 0.0
            self.told[mode][0, places] = np.maximum(ridge, 1e-24 * ridge.max()) + 1e-300
            update(objective, block, self.run)
            sizes[mode] = np.mean(work.stack[work.part(mode)] ** 2, axis=0)
        return objective.fit()

    def guess(self) -> None:
        """Take first hyperparameters from the rows as they are, which are sure for now."""
        self._set_noise(self._fit(), self.most)
        self.inverses[:] = 0.0
        for mode in range(self.work.order):
            self._learn_prior(mode)

    def sweep(self, *, still: bool = False) -> float:
        """Renew rows, covariances, priors and noise; return the evidence (the smaller the better).

        With `still` the rows stay where they are.
        """
        objective = self._objective(self.noise)
        for block in self.work.blocks():
            held = self.work.stack[self.work.stacked(block)].copy()
            update(objective, block, self.run)
            if still:
                self.work.stack[self.work.stacked(block)] = held
                objective.note_change(block.mode)
            self._learn_prior(block.mode)
        self.gained = objective.gained
        most = max(self.most, above(self._fit() / self.n_cells)) if still else self.most
        self._set_noise(self._misses(objective), most)
        return self.evidence()

    def least_square(self) -> float:
        """Return the mean square of a component beside which a small share of it is nothing.

        That is the noise; of another loss, whose single cells may tell next to nothing, the model.
        """
        if self.goal is None:
            return self.noise
        grams = [thin_times(rows, rows) / len(rows) for rows in self.work.rows()]
        return min(self.noise / self.bend, float(np.prod(grams, axis=0).sum()))

    def _fit(self) -> float:
        """Return what the rows as they are miss."""
        if self.goal is not None:
            return self.goal.fit()
        listed, boxes = self.observed(self.work, self.entries)
        return Objective(self.work, listed, boxes, 0.0).value()

    def _misses(self, objective: AnyBelieved) -> float:
        if isinstance(objective, BelievedLoss):
            return objective.misses()
        if objective.listed.curvatures is None and self.data_terms is imputed:
            listed, boxes = self.observed(self.work, self.entries)
            found = Objective(self.work, listed, boxes, 0.0).value()
            return found + objective.own_variance(listed)
        return objective.misses()

    def _set_noise(self, misses: float, most: float) -> None:
        self.misses = misses
        self.noise = max(min(misses / self.n_cells, most), faintest(self.size), self.least)

    def _learn_prior(self, mode: int) -> None:
        rows = self.work.stack[self.work.part(mode)]
        squares, sums = thin_times(rows, rows), rows.sum(axis=0)
        inverse = self.inverses[self.work.part(mode)].sum(axis=0)
        self.means[mode] = (sums / len(rows))[None]
        self.told[mode] = mode_precisions(
            squares[None], sums[None], (len(rows),), inverse[None], self.noise
        )

    def evidence(self) -> float:
        """Return the evidence, the smaller the better.

        ``n log s2 + misses / s2 + sum_k (n_k log |S_k| - sum_i log |C_i|)``
        """
        rank, total = self.work.rank, self.n_cells * float(np.log(self.noise))
        total += self.misses / self.noise
        for mode, n_rows in enumerate(self.work.n_rows):
            told = unpack(self.told[mode][0], rank)
            total -= n_rows * float(np.linalg.slogdet(told)[1])
            total += float(self.logs[self.work.part(mode)].sum())
        return total

    def precisions(self) -> list[Floats]:
        """Return the precision of each row, by mode."""
        return [
            self.gained[self.work.part(mode)] + self.told[mode] for mode in range(self.work.order)
        ]
