"""What fibres remembered at any time: the residuals of a history by fibre and label."""

from __future__ import annotations

import numpy as np

from tensortide.arrays import Floats, Positions
from tensortide.core.kernels.fibres import recall_and_learn
from tensortide.core.tensor.fibres import MEMORIES, NUMBERS, remembered

BASIC = 5  # nothing, the last residual, a faded mean, the mean of all, a damped trend


class Residuals:
    """Residuals of cells, each with the number of its fibre and a number on the line of labels."""

    def __init__(self, fibres: Positions, numbers: Positions, residuals: Floats) -> None:
        self._line = np.unique(numbers)
        self._width = len(self._line) + 2
        n_fibres = int(fibres.max()) + 1 if len(fibres) else 0
        # a mark before and one after each fibre: what a mark recalls is what the fibre knew there
        every = np.arange(n_fibres) * self._width
        keys = fibres * self._width + 1 + np.searchsorted(self._line, numbers)
        keys = np.concatenate([every, keys, every + self._width - 1])
        held = np.concatenate([np.zeros(n_fibres), residuals, np.zeros(n_fibres)])
        order = np.argsort(keys, kind="stable")
        self._keys, self._held = keys[order], np.ascontiguousarray(held[order])
        real = np.concatenate(
            [np.zeros(n_fibres, bool), np.ones(len(residuals), bool), np.zeros(n_fibres, bool)]
        )[order]
        self._known = self._remember(real)

    def _remember(self, real: np.ndarray) -> Floats:
        """Return for each place what its fibre knew before it, and the residual before the last."""
        at = np.flatnonzero(real)
        which = np.ascontiguousarray(self._keys[at] // self._width)
        n_fibres = int(self._keys[-1] // self._width) + 1 if len(self._keys) else 0
        numbers, recalled = np.zeros((n_fibres, NUMBERS)), np.empty((len(at), MEMORIES))
        order, held = np.arange(len(at)), np.ascontiguousarray(self._held[at])
        recall_and_learn(order, which, held, held, order, numbers, recalled)
        known = np.zeros((len(self._keys), MEMORIES))
        known[at] = recalled
        after = np.flatnonzero(self._keys % self._width == self._width - 1)
        known[after] = remembered(numbers)
        return known

    def recall(
        self, fibres: Positions, before: Positions, seasons: Positions, trend: float
    ) -> Floats:
        """Return what is remembered of fibres at labels before some numbers.

        `seasons` are the numbers on the line one and more seasons before each cell, for each
        season; a column each, their mean, after the five basic ones.  `trend` is how far the
        last move of the residuals runs on.
        """
        first = fibres * self._width
        next_ = np.searchsorted(self._keys, first + 1 + np.searchsorted(self._line, before))
        out = np.zeros((len(fibres), BASIC + seasons.shape[1]))
        out[:, :MEMORIES] = self._known[next_]
        earlier = np.maximum(next_ - 2, 0)
        moved = self._keys[earlier] > first
        last = out[:, 1]
        out[:, 4] = last + np.where(moved, trend * (last - self._held[earlier]), 0.0)
        for season in range(seasons.shape[1]):
            wanted = seasons[:, season]
            place = np.minimum(np.searchsorted(self._line, wanted), len(self._line) - 1)
            keys = first[:, None] + 1 + place
            at = np.minimum(np.searchsorted(self._keys, keys), len(self._keys) - 1)
            seen = (self._keys[at] == keys) & (self._line[place] == wanted)
            count = seen.sum(axis=1)
            total = np.where(seen, self._held[at], 0.0).sum(axis=1)
            out[:, BASIC + season] = np.where(count > 0, total / np.maximum(count, 1), out[:, 3])
        return out
