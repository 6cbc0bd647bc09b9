"""Fitness of a model as a tensor grows along its last mode: the paper's PoF, without loops."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tensortide.arrays import Flags, Floats
from tensortide.core.tensor.dense_box import box_values, khatri_rao
from tensortide.online.score import fitness


class RunningFitness:
    """Fitness on all cells, or on the hidden ones, of the slices seen so far.

    With G the Gram matrices of the factors, ``|x - y|^2`` over complete slices is
    ``|x|^2 - 2 <x, y> + w G w'``; hidden cells are the complete slices less the observed cells.
    """

    def __init__(self, x: Floats, observed: Flags | None) -> None:
        self._slices = np.ascontiguousarray(x.reshape(-1, x.shape[-1]).T)
        self._observed = observed
        self._squares = np.cumsum((self._slices**2).sum(axis=1))
        if observed is not None:
            cells = np.argwhere(observed)
            self._cells = cells[np.argsort(cells[:, -1], kind="stable")]
            self._values = x[tuple(self._cells.T)]
            self._ends = np.searchsorted(self._cells[:, -1], np.arange(x.shape[-1] + 1))

    def __call__(self, factors: Sequence[Floats]) -> float:
        """Return the fitness of a model of the first slices."""
        *others, w = factors
        t = len(w)
        mixed = self._slices[:t] @ khatri_rao(others)
        gram = np.prod([f.T @ f for f in others], axis=0)
        own = float(((w @ gram) * w).sum())
        size = float(self._squares[t - 1])
        error = size - 2.0 * float((mixed * w).sum()) + own
        if self._observed is not None:
            cells, seen = self._cells[: self._ends[t]], self._values[: self._ends[t]]
            product = w[cells[:, -1]]
            for mode, rows in enumerate(others):
                product = product * rows[cells[:, mode]]
            error -= float(((seen - product.sum(axis=1)) ** 2).sum())
            size -= float((seen**2).sum())
        return float(1.0 - np.sqrt(max(error, 0.0) / size))


def fitness_of_known(x: Floats, factors: Sequence[Floats]) -> float:
    """Return the fitness on the cells of x that are not NaN, x being as large as the model."""
    known = ~np.isnan(x)
    if not known.any():
        return float("nan")
    return fitness(x[known], box_values(factors).reshape(x.shape)[known])
