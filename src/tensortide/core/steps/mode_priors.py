"""Priors of the rows of each mode in a step with history, where all rows are at hand.

Rows of a mode are believed to lie about their mean with their scatter.  New rows of the ordered
mode have more to go by while they are learned: each is believed to lie where the outlook, from the
rows before it, sees it, with the scatter Q of what the outlook misses of all rows,

    Q = (sum (a - o) (a - o)' + sum C + S / n) / (n + 1 / n)

over the n rows a with outlook o and covariance C that have two rows before them; S is the scatter
of the mode, a pseudo row that speaks while there are few.  Rows that are known do not keep that
prior: nothing would hold their level, and components that cancel would grow without end.
"""

from __future__ import annotations

import numpy as np

from tensortide.arrays import Floats
from tensortide.core.kernels.dense import thin_times
from tensortide.core.objective.believed import invert
from tensortide.core.steps.beliefs import DRIFTING, Beliefs
from tensortide.core.steps.change import Coming
from tensortide.core.steps.hyper import mode_precisions, precision
from tensortide.core.tensor.packed import unpack
from tensortide.core.tensor.workspace import Workspace


class ModePriors:
    """Means and precisions of the priors of all modes; those of a mode are renewed from its rows.

    `means` and `precisions` are those of each mode, and are renewed in place.
    """

    def __init__(
        self,
        work: Workspace,
        beliefs: Beliefs,
        coming: Coming | None,
        means: Floats,
        precisions: Floats,
    ) -> None:
        self._work, self._coming, self._noise = work, coming, beliefs.noise
        self._means, self._precisions = means, precisions
        self.drift, self.n_drift = beliefs.drift, beliefs.n_drift
        self._weights = np.empty(0) if coming is None else beliefs.weights_of_prior()

    def of(self, mode: int) -> tuple[Floats, Floats]:
        """Return means and precisions: one for all rows of a mode, or one for each."""
        mean, told = self._means[mode][None].copy(), self._precisions[mode][None].copy()
        coming = self._coming
        if coming is None or mode != coming.mode or not len(coming.line) or self.n_drift < 1.0:
            return mean, told
        rows = self._rows(mode)
        means, precisions = (np.repeat(one, len(rows), axis=0) for one in (mean, told))
        new = np.isin(coming.line, coming.fresh)
        at, size = coming.line[new], (rows * rows).sum(axis=0) / len(rows)
        means[at] = self._outlook(rows, coming)[new]
        precisions[at] = precision(self.drift, self._noise, size, mode)
        return means, precisions

    def renew(self, mode: int, inverses: Floats) -> None:
        """Learn mean and scatter of a mode from its rows, and the scatter of what is missed."""
        rows, own = self._rows(mode), inverses[self._work.part(mode)]
        squares, sums = thin_times(rows, rows), rows.sum(axis=0)
        self._means[mode] = sums / len(rows)
        self._precisions[mode] = mode_precisions(
            squares[None], sums[None], (len(rows),), own.sum(axis=0)[None], self._noise
        )[0]
        coming = self._coming
        if coming is None or mode != coming.mode or not len(coming.line):
            return
        gaps, n = rows[coming.line] - self._outlook(rows, coming), len(coming.line)
        packed = np.stack([own[coming.line].sum(axis=0), self._usual(mode) / n])
        found = thin_times(gaps, gaps) + self._noise * unpack(packed, len(sums)).sum(axis=0)
        self.drift, self.n_drift = found / (n + 1.0 / n), min(float(n), DRIFTING)

    def _usual(self, mode: int) -> Floats:
        """Return the scatter of a mode in units of the noise, packed."""
        usual, _ = invert(self._precisions[mode][None], self._work.rank, mode)
        return np.asarray(usual[0])

    def _outlook(self, rows: Floats, coming: Coming) -> Floats:
        """Return where rows of the ordered mode are seen from those before them."""
        return np.asarray(self._weights @ coming.along.candidates(rows, self._means[coming.mode]))

    def _rows(self, mode: int) -> Floats:
        return np.asarray(self._work.stack[self._work.part(mode)])
