"""Any loss, with penalties and constraints per mode: the objective and its descent.

    sum_e w_e f(x_e, y_e)  +  sum over the zero region f(0, y)        data
  + boxes and ridge of `core.objective`                               history
  + the terms of each mode of `core.penalties`

A mode is updated by one weighted least squares: at the current values a loss with slope g
and weight h is a parabola (`core.losses`).  The parabola may promise too much, so every step
is checked on the true objective and halved until that does not rise: per row, or for the
whole factor where its rows depend on each other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from tensortide.arrays import Flags, Floats, Positions
from tensortide.core.kernels.coordinates import descend_rows
from tensortide.core.kernels.entries import add_rhs
from tensortide.core.losses.standard import TINY, Loss, Poisson, missed
from tensortide.core.objective.equations import NormalEquations
from tensortide.core.objective.regions import Zeros, ZeroSums
from tensortide.core.objective.squares import BoxTerm, Listed, Objective, model_values
from tensortide.core.objective.towards import Pulls
from tensortide.core.penalties.parts import Terms, Ties
from tensortide.core.tensor.entries import Entries
from tensortide.core.tensor.workspace import Block, Workspace
from tensortide.core.updates.admm import alternate
from tensortide.core.updates.exact import solve
from tensortide.errors import SolveError

HALVINGS = 30  # of a step that would raise the objective; then the row stays
PASSES = 300  # of coordinate descent within an update, at most
LOW = 1e-6  # share of an entry below which a model value is as good as zero
TOL = 1e-10  # share of the largest number that a pass may move and be the last


class AnyLossObjective:
    """The objective of a step with any loss, and the update of one mode."""

    def __init__(
        self,
        work: Workspace,
        entries: Entries,
        loss: Loss,
        *,
        zeros: Zeros | None,
        boxes: Sequence[BoxTerm],
        beta: float,
        terms: Sequence[Terms],
        ties: Sequence[Ties],
        positions: Sequence[Positions | None],
        in_region: Sequence[Floats] | None,
        towards: Pulls | None = None,
    ) -> None:
        self.work, self.loss, self.zeros, self.beta = work, loss, zeros, beta
        self.towards = towards
        self.entries = entries
        self.terms, self.ties = terms, ties
        self._in_region = in_region
        n_entries = self.entries.n_entries
        unset = [np.empty(n_entries) for _ in range(work.order)]
        self._listed = Listed(self.entries, unset, list(unset), 0.0)
        self._parabola = Objective(work, self._listed, boxes, 0.0)
        shape = tuple(work.n_rows)
        nothing = Entries.listed(np.empty((0, work.order), np.int32), np.empty(0), shape)
        empty = Listed(nothing, None, [np.empty(0)] * work.order, 0.0)
        self._boxes = Objective(work, empty, boxes, beta)
        self._still = [t.still(p, n) for t, p, n in zip(ties, positions, work.n_rows, strict=True)]
        self._shifts: dict[int, Floats] = {}

    # ------------------------------------------------------------------ the number

    def fit(self) -> float:
        """Return how much of all cells is missed at the current rows, zeros included."""
        listed = self._listed_sum(partial(missed, self.loss))
        return listed + (0.0 if self.zeros is None else self.zeros.missed())

    def _listed_sum(self, each: Callable[..., Floats]) -> float:
        """Return the sum of something over the listed cells, zeros in their place taken away."""
        order = self.entries.orders[0]
        y = model_values(self.work, self.entries, 0)
        return float(self._of_cells(each, 0, slice(None), order.values, y).sum())

    def value(self) -> float:
        """Return the objective at the current rows."""
        total = self._listed_sum(self.loss.value) + self._boxes.value() + self._loss_of_zeros()
        if self.towards is not None:
            total += self.towards.total()
        return total + sum(map(self._penalty, range(self.work.order)))

    def _loss_of_zeros(self) -> float:
        return 0.0 if self.zeros is None else self.zeros.total()

    def _penalty(self, mode: int) -> float:
        rows, terms = self.work.stack[self.work.part(mode)], self.terms[mode]
        total = float(self._elementwise(mode, rows).sum())
        total += float((self._sizes(mode) * self.ties[mode].roughness(rows)).sum())
        return total + (0.0 if terms.prox is None else terms.prox.value(rows))

    def _elementwise(self, mode: int, rows: Floats) -> Floats:
        """Return what ridge and L1 of a mode add, row by row."""
        terms = self.terms[mode]
        found = terms.ridge * (rows * rows).sum(axis=1)
        return np.asarray(
            found + (np.abs(rows) * self._l1(mode)).sum(axis=1) if terms.l1 else found
        )

    def _l1(self, mode: int) -> Floats:
        """Return the weight of ``|a|`` in each component of a mode."""
        return np.asarray(self.terms[mode].l1 * np.sqrt(self._sizes(mode)))

    def _sizes(self, *skipped: int) -> Floats:
        """Return the product of the other modes' squared norms, component by component."""
        sizes = np.ones(self.work.rank)
        for mode, rows in enumerate(self.work.rows()):
            if mode not in skipped:
                sizes *= (rows * rows).sum(axis=0)
        return sizes

    def _held(self, mode: int) -> Floats:
        """Return the ridge by which terms of other modes hold the scale of this one.

        The L1 term of another mode grows with the norm of a column here, which lies below a
        parabola that touches it: ``|a| <= |a|^2 / (2 |a0|) + |a0| / 2``.
        """
        held = np.zeros(self.work.rank)
        norms = np.sqrt((self.work.stack[self.work.part(mode)] ** 2).sum(axis=0))
        for other, rows in enumerate(self.work.rows()):
            if other == mode:
                continue
            if len(self.ties[other].pairs):
                held += self.ties[other].roughness(rows) * self._sizes(mode, other)
            if self.terms[other].l1:
                share = self.terms[other].l1 * np.abs(rows).sum(axis=0)
                share *= np.sqrt(self._sizes(mode, other))
                held += share / (2.0 * np.where(norms > 0.0, norms, np.inf))
        return held

    def _of_cells(
        self, each: Callable[..., Floats], mode: int, which: slice | Flags, x: Floats, y: Floats
    ) -> Floats:
        """Return something of some entries, less that of the zero in their place."""
        weights = self.entries.orders[mode].weights
        found = each(x, y)
        if len(weights):
            found = weights[which] * found
        if self._in_region is not None:
            found = found - self._in_region[mode][which] * each(np.zeros(1), y)
        return found

    # ------------------------------------------------------------------ one mode

    def update(self, mode: int) -> None:
        """Move the rows of a mode to where the objective is lower."""
        work = self.work
        where = work.part(mode)
        before = work.stack[where].copy()
        y = model_values(work, self.entries, mode)
        self._bend(mode, y)
        gram, rhs = self._bent(mode)
        if self.towards is not None:
            self.towards.add(mode, gram, rhs)
        silent = self._silent(mode, gram)
        held = self._held(mode)
        gram += np.diag(held)
        still = self._still[mode] | silent
        candidate = self._solve(mode, NormalEquations(gram, rhs), before, still)
        rows, value = self._backtrack(mode, before, candidate, y, held)
        if isinstance(self.zeros, ZeroSums) and not self.terms[mode].coupled:
            shared, other = self._backtrack(
                mode, before, self._share_out(mode, before, still), y, held
            )
            rows = np.where((other < value)[:, None], shared, rows)
        self._take(mode, before, rows)

    def _bent(self, mode: int) -> tuple[Floats, Floats]:
        """Return the equations of the parabola, that of the zeros included."""
        gram, rhs = self._equations(self._parabola, mode)
        if self.zeros is not None:
            self.zeros.add(mode, gram, rhs)
        return gram, rhs

    def _quadratic(self, mode: int) -> tuple[Floats, Floats]:
        """Return the equations of what is no loss: boxes and ridge."""
        return self._equations(self._boxes, mode)

    def _take(self, mode: int, before: Floats, rows: Floats) -> None:
        """Put the rows in their place.

        The bound of other modes' L1 terms does not touch them where a column is zero: there
        the whole objective decides.
        """
        empty = not (before != 0.0).any(axis=0).all()
        doubtful = empty and any(t.l1 for m, t in enumerate(self.terms) if m != mode)
        start = self.value() if doubtful else np.inf
        where, share = self.work.part(mode), 1.0
        for _ in range(HALVINGS):
            self.work.stack[where] = before + share * (rows - before)
            self._parabola.note_change(mode)
            self._boxes.note_change(mode)
            if not doubtful or self.value() <= start:
                return
            share *= 0.5
        self.work.stack[where] = before
        self._parabola.note_change(mode)
        self._boxes.note_change(mode)

    def _share_out(self, mode: int, before: Floats, still: Flags) -> Floats:
        """Return rows by expectation and maximisation: ``a (sum x / y z) / (sum of z, zeros too)``.

        Where a row is far above its few counts the parabola of the counts is nearly flat
        beside the slope of the zeros, and would press the row to nothing; this cannot.
        A row of zeros that has counts begins anew at a small share of the mean.
        """
        work, order = self.work, self.entries.orders[mode]
        where = work.part(mode)
        lifted = np.where(
            (before.sum(axis=1) <= 0.0)[:, None] & ~still[:, None],
            np.maximum(before.mean(axis=0), 1e-6 * (before.max(initial=0.0) or 1.0)),
            before,
        )
        work.stack[where] = lifted
        y = model_values(work, self.entries, mode)
        weights = order.weights if len(order.weights) else np.ones(len(y))
        region = np.ones(len(y)) if self._in_region is None else self._in_region[mode]
        counts, sums = np.zeros_like(before), np.zeros_like(before)
        where_from = (order.pointers, order.others, work.other_offsets[mode], work.stack)
        add_rhs(*where_from, weights * order.values / (y + TINY), counts)
        add_rhs(*where_from, weights - region, sums)
        assert isinstance(self.zeros, ZeroSums)
        total, counted = sums + self.zeros.slopes(mode), lifted * counts
        if self.towards is not None:
            above, below = self.towards.parts(mode)
            total, counted = total + below, counted + above
        work.stack[where] = before
        safe = total > 0.0
        found = np.where(safe, counted / np.where(safe, total, 1.0), lifted)
        return np.where(still[:, None], before, found)

    def _bend(self, mode: int, y: Floats) -> None:
        """Put the parabola that touches the loss at y in the place of the loss."""
        order, zero = self.entries.orders[mode], np.zeros(1)
        slope, weight = self.loss.slope(order.values, y), self.loss.weight(order.values, y)
        if isinstance(self.zeros, ZeroSums):
            # the zeros have no curvature of their own: what is listed has to have the exact
            # one; a value far below its entry would crawl along it and is lifted
            y = np.where(y < LOW * order.values, order.values, y)
            slope, weight = self.loss.slope(order.values, y), self.loss.weight(order.values, y)
            weight = np.maximum(weight, Poisson().curvature(order.values, y))
        if len(order.weights):
            slope, weight = order.weights * slope, order.weights * weight
        if self._in_region is not None:
            region = self._in_region[mode]
            slope = slope - region * self.loss.slope(zero, y)
            if not isinstance(self.zeros, ZeroSums):
                weight = weight - region * self.loss.weight(zero, y)
        assert self._listed.curvatures is not None
        self._listed.curvatures[mode] = np.asarray(0.5 * weight)
        self._listed.values[mode] = np.asarray(0.5 * (weight * y - slope))

    def _equations(self, objective: Objective, mode: int) -> tuple[Floats, Floats]:
        """Return one matrix and one right side for each row of a mode."""
        work = self.work
        gram = np.empty((work.n_rows[mode], work.rank, work.rank))
        rhs = np.empty((work.n_rows[mode], work.rank))
        for block in work.blocks():
            if block.mode == mode:
                part = objective.equations(block)
                gram[block.first : block.last] = part.gram
                rhs[block.first : block.last] = part.rhs
        return gram, rhs

    def _silent(self, mode: int, gram: Floats) -> Flags:
        """Return the rows about which nothing is said: the ridge alone would make them zero."""
        pointers = self.entries.orders[mode].pointers
        tied = np.zeros(len(gram), bool)
        tied[self.ties[mode].pairs.ravel()] = True
        silent = ~tied
        if self.zeros is None and self.towards is None and not self._boxes.every_row:
            return np.asarray(silent & (pointers[1:] == pointers[:-1]))
        return np.asarray(silent & (np.einsum("irr->i", gram) == 0.0) & (self.zeros is None))

    def _solve(self, mode: int, equations: NormalEquations, rows: Floats, still: Flags) -> Floats:
        """Return rows that minimise the parabola and the terms of the mode."""
        terms = self.terms[mode]
        ridge = self.beta + terms.ridge
        if terms.prox is not None:
            return self._alternate(mode, equations, ridge, rows, still)
        if len(self.ties[mode].pairs) or terms.l1:
            return self._descend(mode, equations, ridge, rows, still)
        found = rows.copy()
        moving = np.flatnonzero(~still)
        if len(moving):
            part = NormalEquations(equations.gram[moving], equations.rhs[moving])
            found[moving] = self._solve_freely(mode, part, ridge, rows[moving], moving)
        if terms.nonnegative:
            silent = (np.einsum("irr->i", equations.gram) == 0.0) & ~still
            below = (found < 0.0).any(axis=1) | silent
            if below.any():
                start = np.where(below[:, None], np.maximum(rows, 0.0), found)
                found = self._descend(mode, equations, ridge, start, still | ~below)
        return found

    def _solve_freely(
        self, mode: int, equations: NormalEquations, ridge: float, rows: Floats, at: Positions
    ) -> Floats:
        try:
            return solve(equations, ridge, rows, Block(mode, 0, len(rows), True))
        except SolveError as error:
            raise SolveError(error.reason, mode=mode, position=int(at[error.position])) from None

    def _descend(
        self, mode: int, equations: NormalEquations, ridge: float, start: Floats, still: Flags
    ) -> Floats:
        terms = self.terms[mode]
        found = start.copy()
        descend_rows(
            equations.gram, equations.rhs, ridge, self._l1(mode),
            terms.nonnegative and terms.prox is None, still, *self.ties[mode].by_row(len(start)),
            self._sizes(mode), PASSES, TOL, found,
        )  # fmt: skip
        return found

    def _alternate(
        self, mode: int, equations: NormalEquations, ridge: float, rows: Floats, still: Flags
    ) -> Floats:
        """Take a penalty of the whole factor by its proximal map."""
        prox, tied = self.terms[mode].prox, len(self.ties[mode].pairs) > 0
        assert prox is not None

        def free(weight: float, pull: Floats, start: Floats) -> Floats:
            pulled = NormalEquations(equations.gram, equations.rhs + pull)
            if tied:
                return self._descend(mode, pulled, ridge + weight, start, still)
            return self._solve_freely(mode, pulled, ridge + weight, start, np.arange(len(start)))

        curvature = float(np.einsum("irr->", equations.gram)) / equations.rhs.size + ridge
        shifts = self._shifts.get(mode, np.zeros_like(rows))
        found, self._shifts[mode] = alternate(prox, curvature, free, rows, shifts)
        return found

    # ------------------------------------------------------------------ the check

    def _backtrack(
        self, mode: int, before: Floats, after: Floats, y: Floats, held: Floats
    ) -> tuple[Floats, Floats]:
        """Return rows on the way from before to after that are not worse, and their values.

        A step is halved as long as that is better: a parabola that bends too little jumps over
        the valley.
        """
        terms, order = self.terms[mode], self.entries.orders[mode]
        x, where = order.values, self.work.part(mode)
        self.work.stack[where] = after
        line = model_values(self.work, self.entries, mode) - y
        self.work.stack[where] = before
        owner = np.repeat(np.arange(len(before)), np.diff(order.pointers))
        gram, rhs = self._quadratic(mode)
        gram += np.diag(held)
        sizes = self._sizes(mode)

        def at(share: Floats) -> Floats:
            rows = before + share[:, None] * (after - before)
            moved = y + share[owner] * line
            losses = self._of_cells(self.loss.value, mode, slice(None), x, moved)
            total = np.bincount(owner, losses, len(rows)).astype(np.float64)
            total += np.einsum("ir,irs,is->i", rows, gram, rows) - 2.0 * (rhs * rows).sum(axis=1)
            total += self._elementwise(mode, rows)
            if self.zeros is not None:
                total += self.zeros.row_values(mode, rows)
            if self.towards is not None:
                total += self.towards.row_values(mode, rows)
            if terms.coupled:
                whole = float(total.sum() + (sizes * self.ties[mode].roughness(rows)).sum())
                whole += 0.0 if terms.prox is None else terms.prox.value(rows)
                total = np.full(len(rows), whole)
            return np.where(np.isnan(total), np.inf, total)

        share = np.zeros(len(before))
        start = at(share)
        share[:] = 1.0
        value, halved = at(share), at(0.5 * share)
        for _ in range(HALVINGS):
            worse = (value > start) | (halved < value)
            if not worse.any():
                break
            share[worse] *= 0.5
            value = np.where(worse, halved, value)
            halved = at(0.5 * share)
        stay = value > start
        share[stay] = 0.0
        rows = np.asarray(before + share[:, None] * (after - before))
        return rows, np.where(stay, start, value)
