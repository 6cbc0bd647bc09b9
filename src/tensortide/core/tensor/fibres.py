"""A memory of fibres: what a low-rank model leaves over, for all labels but those of one mode.

Residuals of a fibre persist where the rank is too small to hold it.  Eight numbers are kept of
each: its last residual, a faded sum with its weight, the sum of all with their count, of the values
themselves the last one and their sum, and where the last one stands on the line of labels.  They
give back the last value, so a model without history keeps no fibres unless it is asked to.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tensortide.arrays import Flags, Floats, Places, Positions
from tensortide.core.kernels.fibres import find_fibres, insert_fibres, recall_and_learn

NUMBERS = 8
NEWEST = 7  # where the label of the last cell stands
MEMORIES = 4  # nothing, the last residual, a faded mean, the mean of all


@dataclass(frozen=True, slots=True, kw_only=True)
class FibreChange:
    """Fibres that a step touches: where they stand (new ones at the end), before and after."""

    places: Positions
    keys: Places
    before: Floats
    after: Floats
    size: int


class Fibres:
    """The fibres of a model by their positions in all modes but one."""

    def __init__(self, mode: int, keys: Places, numbers: Floats) -> None:
        self.mode, self.size = mode, len(keys)
        room = self.size + self.size // 2 + 16
        self._keys = np.zeros((room, keys.shape[1]), np.int32)
        self._numbers = np.zeros((room, NUMBERS))
        self._keys[: self.size], self._numbers[: self.size] = keys, numbers
        self._index()

    @classmethod
    def none(cls, mode: int, order: int) -> Fibres:
        """Return a memory that knows no fibre yet."""
        return cls(mode, np.empty((0, order - 1), np.int32), np.empty((0, NUMBERS)))

    @classmethod
    def of(cls, mode: int, cells: Places | Positions) -> Fibres:
        """Return the fibres of some cells, which remember nothing: an index of them."""
        keys = np.unique(_beside(cells, mode), axis=0)
        return cls(mode, keys, np.zeros((len(keys), NUMBERS)))

    @property
    def keys(self) -> Places:
        """Positions of the fibres in the other modes, in ascending mode number."""
        return self._keys[: self.size]

    @property
    def numbers(self) -> Floats:
        """What is remembered of each."""
        return self._numbers[: self.size]

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return self.keys.nbytes + self.numbers.nbytes

    def recall(
        self, cells: Places | Positions, line: Positions, old: Flags
    ) -> tuple[Floats, Floats]:
        """Return what is remembered of the fibre of each cell, whose labels stand on a line.

        Of residuals: nothing, the last one, a faded mean, the mean; the last ones say nothing of
        `old` labels, where the mean stands for them.  Of values: the last one and the mean, NaN
        where there is none, and for labels before the last one: they are not what comes after it.
        """
        at = self.find(cells)
        m = np.where((at >= 0)[:, None], self._numbers[np.maximum(at, 0)], 0.0)
        residual, faded, weight, total, count, value, values, last = m.T
        known = count > 0.0
        out = np.zeros((len(at), MEMORIES))
        out[:, 3] = total / (count + 1.0)
        out[:, 1] = np.where(old, out[:, 3], residual)
        out[:, 2] = np.where(old, out[:, 3], faded / np.where(known, weight, 1.0))
        plain = np.column_stack([value, values / np.maximum(count, 1.0)])
        return out, np.where((known & (line >= last))[:, None], plain, np.nan)

    def newest(self, cells: Places | Positions) -> Floats:
        """Return where the newest label of the fibre of each cell stands, NaN where none is."""
        numbers = np.append(self.numbers[:, NEWEST], np.nan)
        return np.asarray(numbers[self.find(cells)])

    def find(self, cells: Places | Positions) -> Positions:
        """Return where the fibre of each cell stands, -1 where none is known."""
        wanted = _beside(cells, self.mode)
        out = np.empty(len(wanted), np.int64)
        find_fibres(wanted, self._slots, self._keys, out)
        return out

    def learn(
        self,
        cells: Places | Positions,
        order: Positions,
        residuals: Floats,
        values: Floats,
        line: Positions,
        forget: Positions | None = None,
    ) -> tuple[FibreChange, Floats]:
        """Return what cells change, one by one in an order, and what was recalled of residuals.

        `order` may leave cells out, which tell nothing; `line` says where the label of each cell
        stands among those of the mode; the fibres of the cells `forget` forget all before.
        """
        wanted = _beside(cells if forget is None else np.concatenate([cells, forget]), self.mode)
        at = np.empty(len(wanted), np.int64)
        find_fibres(wanted, self._slots, self._keys, at)
        new = np.flatnonzero(at < 0)
        if len(new):
            fresh, which = np.unique(wanted[new], axis=0, return_inverse=True)
            at[new] = self.size + which.ravel()
        else:
            fresh = wanted[:0]
        places, which = np.unique(at, return_inverse=True)
        known = places < self.size
        before = np.zeros((len(places), NUMBERS))
        before[known] = self._numbers[places[known]]
        after, which = before.copy(), which.ravel()
        after[which[len(cells) :]] = 0.0
        recalled = np.empty((len(cells), MEMORIES))
        recall_and_learn(order, which, residuals, values, line, after, recalled)
        keys = np.concatenate([self._keys[places[known]], fresh])
        size = self.size + len(fresh)
        change = FibreChange(places=places, keys=keys, before=before, after=after, size=size)
        return change, recalled

    def unchanged(self) -> FibreChange:
        """Return the change that is none."""
        nothing = self.numbers[:0]
        return FibreChange(
            places=np.empty(0, np.int64), keys=self.keys[:0], before=nothing, after=nothing,
            size=self.size,
        )  # fmt: skip

    def put(self, change: FibreChange) -> None:
        """Take over what a step has changed."""
        if change.size > len(self._keys):
            room = change.size + change.size // 2 + 16
            keys, numbers = self.keys, self.numbers
            self._keys = np.zeros((room, keys.shape[1]), np.int32)
            self._numbers = np.zeros((room, NUMBERS))
            self._keys[: self.size], self._numbers[: self.size] = keys, numbers
        new = change.places >= self.size
        self._numbers[change.places] = change.after
        self._keys[change.places[new]] = change.keys[new]
        first, self.size = self.size, change.size
        if 2 * self.size > len(self._slots):
            self._index()
        else:
            insert_fibres(self._keys, first, self.size, self._slots)

    def take_back(self, change: FibreChange, size: int) -> None:
        """Put everything back as it was before `put`, however far that got."""
        known = change.places < size
        self._numbers[change.places[known]] = change.before[known]
        self.size = size
        self._index()

    def kept(self, mode: int, keep: Flags, *, closing: bool = False) -> Fibres:
        """Return the fibres of the labels of a mode that are kept, numbered anew.

        `closing` says that the labels are positions, which close up: newest ones move along.
        """
        if mode == self.mode:
            found = self.copy()
            if closing:
                last = found.numbers[:, NEWEST].astype(np.int64)
                found.numbers[:, NEWEST] = np.cumsum(keep)[last] - 1 + 0.5 * ~keep[last]
            return found
        column = mode if mode < self.mode else mode - 1
        stay = keep[self.keys[:, column]]
        keys = self.keys[stay].copy()
        keys[:, column] = (np.cumsum(keep) - 1)[keys[:, column]]
        return Fibres(self.mode, keys, self.numbers[stay])

    def copy(self) -> Fibres:
        """Return an independent memory."""
        return Fibres(self.mode, self.keys, self.numbers)

    def _index(self) -> None:
        room = 16
        while room < 4 * self.size:
            room *= 2
        self._slots = np.full(room, -1, np.int64)
        insert_fibres(self._keys, 0, self.size, self._slots)


def _beside(cells: Places | Positions, mode: int) -> Places:
    """Return the positions of cells in all modes but one."""
    return np.ascontiguousarray(np.delete(cells, mode, axis=1), np.int32)
