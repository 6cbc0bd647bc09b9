"""The outlook: what the next rows of an ordered mode will look like.

Candidates for a row, from the rows before it in the order of labels: the mean row of the mode,
the last one, the means of the last 2, 4 and 8, two damped trends, and the rows one season ago.
They are mixed by weights on a simplex that would have had the smallest squared errors on the
cells of labels that were new before: ``w = argmin w' G w`` with ``G <- .98 G + E' E``, the errors
``E`` of all candidates on the cells of a new label.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tensortide.arrays import Flags, Floats, Positions
from tensortide.core.kernels.near import suggest
from tensortide.core.kernels.simplex import mix_by_turns, mix_simplex

RECENT = 8  # rows back that means and trends look at
MEAN, LAST, TRENDS = 0, 1, (5, 6)
NEAR, PLAIN = 5, 7  # candidates from the rows just before; and with trends, besides the seasons
DISCOUNT = 0.98  # of past errors, for each new label
LEFT = 0.1  # share of a positive model's value that no trend and no memory takes away
RIDGE = 1e-6  # share of the mean squared error by which candidates that err alike share the weight


@dataclass(frozen=True, slots=True)
class Neighbours:
    """Which rows come before some rows of an ordered mode, as positions; -1 where none does.

    `recent` are the `RECENT` labels before, nearest first; `ago` those one season before, for
    each season.
    """

    recent: Positions
    ago: Positions

    def positions(self) -> Positions:
        """Return all positions that are looked at."""
        found = np.concatenate([self.recent.ravel(), self.ago.ravel()])
        return np.asarray(found[found >= 0])

    def within(self, positions: Positions) -> Neighbours:
        """Return the neighbours by their places in an ascending list of positions."""
        if not len(self.recent):
            return self
        recent, ago = (
            np.where(named >= 0, np.searchsorted(positions, named), -1)
            for named in (self.recent, self.ago)
        )
        return Neighbours(recent, ago)

    def only(self, k: int) -> Neighbours:
        """Return the neighbours of the k-th row alone."""
        return Neighbours(self.recent[k : k + 1], self.ago[k : k + 1])

    def candidates(self, rows: Floats, means: Floats) -> Floats:
        """Return the candidates for each row, one below the other.

        `rows` are the rows at all positions that the neighbours name, `means` the mean row: one
        for all or one for each.
        """
        found = np.empty((len(self.recent), PLAIN + self.ago.shape[1], rows.shape[1]))
        suggest(rows, self.recent, self.ago, np.atleast_2d(means), found)
        return found


def mix(errors: Floats, allowed: Flags | None = None) -> Floats:
    """Return the weights that would have had the smallest squared errors.

    Without experience all weight is on the mean.
    """
    weights = np.empty(len(errors))
    which = np.ones(len(errors), bool) if allowed is None else allowed
    mix_simplex(np.ascontiguousarray(errors), which, RIDGE, weights)
    return weights


def mix_jointly(errors: Floats, n_candidates: int, rounds: int = 8) -> tuple[Floats, Floats]:
    """Return weights of candidates and of memories that are best together.

    `errors` is the Gram matrix of what the candidates miss, x - y_j, beside what is remembered,
    r_k (the first memory is nothing): the sum of ``(E w - R v)^2`` is lowered by turns.
    """
    weights, recalled = np.empty(n_candidates), np.empty(len(errors) - n_candidates)
    mix_by_turns(np.ascontiguousarray(errors), n_candidates, RIDGE, rounds, weights, recalled)
    return weights, recalled


def weighted(columns: Floats, weights: Floats) -> Floats:
    """Return the columns added up with weights, the same bits whatever the number of threads."""
    return np.asarray((columns * weights).sum(axis=1))


def beside(values: Floats, plain: Floats) -> Floats:
    """Return columns: what the model says, and the last value and mean of each cell's fibre.

    >>> beside(np.array([2.0, 3.0]), np.array([[1.0, 4.0], [np.nan, np.nan]])).tolist()
    [[2.0, 1.0, 4.0], [3.0, 3.0, 3.0]]
    """
    return np.column_stack([values, np.where(np.isnan(plain), values[:, None], plain)])


def mixed_row(weights: Floats, candidates: Floats, *, positive: bool) -> Floats:
    """Return the row that the mixture sees; of counts trends leave a tenth of the last at least."""
    seen = weights @ candidates
    return np.asarray(np.maximum(seen, LEFT * candidates[LAST]) if positive else seen)


def recalled_too(values: Floats, recalled: Floats, *, positive: bool) -> Floats:
    """Return what rows say with what fibres remember; of counts it leaves a tenth at least.

    >>> recalled_too(np.array([2.0, 2.0]), np.array([1.0, -3.0]), positive=True).tolist()
    [3.0, 0.2]
    """
    found = values + recalled
    return np.asarray(np.maximum(found, LEFT * values) if positive else found)


def stable(n_candidates: int) -> Flags:
    """Return which candidates are not trends."""
    found = np.ones(n_candidates, bool)
    found[list(TRENDS)] = False
    return found
