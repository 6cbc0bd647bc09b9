"""A box of which every cell is known, as the dense array that it is.

Listed entries cost 48 bytes a cell for three modes and a loop; a complete box costs 8 and a
matrix product.  Only what came complete is ever held this way.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property, reduce
from math import prod
from typing import TypeAlias

import numpy as np

from tensortide.arrays import Floats, Places, Shape
from tensortide.core.kernels.dense import thin_times, times_thin
from tensortide.core.tensor.entries import Entries, ModeOrder

_RANK = 25  # the number that stands for the components in sums; axes have those below


class _Buffer:
    """Slices with room for more, for whoever claims it first."""

    def __init__(self, array: Floats) -> None:
        self.array = array
        self.ends: dict[int, bool] = {}  # where the room begins, if nobody has taken it

    def claim(self, size: int, grown: int) -> bool:
        """Take the room behind `size`, unless somebody has it or it is too small.

        One operation on a dict: no two threads can both have it, and an interrupt at worst
        wastes it.
        """
        return grown <= len(self.array) and self.ends.pop(size, False)


class DenseBox:
    """All cells of a box, each once and with weight one.

    Axis k of `values` is mode ``modes[k]``.

    >>> box = DenseBox(np.array([[1.0, 2.0], [3.0, 4.0]]))
    >>> box.mttkrp([np.ones((2, 1)), np.array([[1.0], [10.0]])], 0).tolist()
    [[21.0], [43.0]]
    """

    def __init__(
        self, values: Floats, modes: Sequence[int] | None = None, buffer: _Buffer | None = None
    ) -> None:
        self.values = values
        self.modes = tuple(range(values.ndim)) if modes is None else tuple(modes)
        self.shape: Shape = tuple(values.shape[self.modes.index(m)] for m in range(values.ndim))
        self._buffer = buffer

    @property
    def n_entries(self) -> int:
        """How many cells there are."""
        return int(self.values.size)

    def all_values(self) -> Floats:
        """Return the values of all cells."""
        return self.values.ravel()

    @property
    def nbytes(self) -> int:
        """Bytes held, the room for more slices included."""
        return int(self.values.nbytes if self._buffer is None else self._buffer.array.nbytes)

    @property
    def orders(self) -> tuple[ModeOrder, ...]:
        """The cells listed in the row order of each mode, for what needs them one by one."""
        return self.listed.orders

    @cached_property
    def listed(self) -> Entries:
        """The same cells as listed entries."""
        return Entries.listed(self.coords(), self.in_order().ravel(), self.shape)

    def in_order(self) -> Floats:
        """Return the array with axis k for mode k."""
        return self.values.transpose(np.argsort(self.modes))

    def coords(self) -> Places:
        """Return the cells as an (n, N) array in the order of mode 0."""
        cells = np.indices(self.shape, np.int32).reshape(len(self.shape), -1)
        return np.ascontiguousarray(cells.T)

    def last_rows(self, rows: Sequence[Floats]) -> list[Floats]:
        """Return the rows of a larger box that this one is the end of."""
        return [r[-n:] for r, n in zip(rows, self.shape, strict=True)]

    def mttkrp(self, rows: Sequence[Floats], mode: int, first: int = 0) -> Floats:
        """Return the matricised tensor times the Khatri-Rao product of the other modes' rows.

        The first or the last axis, whichever is longer and is not the mode, is contracted by
        one matrix product; the small rest by sums.  From row `first` of the mode on.
        """
        axis = self.modes.index(mode)
        values = self.values
        if first:
            values = values[(slice(None),) * axis + (slice(first, None),)]
        # single slices of other modes only scale the result
        single = [k for k, n in enumerate(values.shape) if n == 1 and k != axis]
        scale = np.ones(rows[0].shape[1])
        for k in single:
            scale = scale * rows[self.modes[k]][0]
        factors = [rows[m] for k, m in enumerate(self.modes) if k not in single]
        values = values.reshape([n for k, n in enumerate(values.shape) if k not in single])
        axis -= sum(k < axis for k in single)
        if values.ndim == 1:
            return np.asarray(values[:, None] * scale)
        return np.ascontiguousarray(_contract(values, factors, axis) * scale)

    def columns(self, mode: int) -> Floats:
        """Return the slices along a mode as columns; the later other mode runs faster."""
        axis = self.modes.index(mode)
        others = [m for m in range(len(self.modes)) if m != mode]
        order = [*(self.modes.index(m) for m in others), axis]
        return self.values.transpose(order).reshape(-1, self.values.shape[axis])

    def scaled(self, mode: int, by: Floats) -> DenseBox:
        """Return the box with its slices along a mode multiplied by numbers."""
        shape = [1] * len(self.modes)
        shape[self.modes.index(mode)] = -1
        return DenseBox(self.values * by.reshape(shape), self.modes)

    def with_slices(self, block: DenseBox, mode: int) -> DenseBox:
        """Return the box with more slices along a mode; this one stays as it is.

        Slices lie one after the other in memory, with room for more; whoever finds the room
        taken (a copy of the model went on before) makes a new one.
        """
        modes = (mode, *(m for m in range(len(self.modes)) if m != mode))
        more = block.in_order().transpose(modes)
        size, grown = self.shape[mode], self.shape[mode] + len(more)
        buffer = self._buffer
        if buffer is None or self.modes != modes or not buffer.claim(size, grown):
            room = np.empty((grown + grown // 2 + 8, *more.shape[1:]))
            room[:size] = self.in_order().transpose(modes)
            buffer = _Buffer(room)
        buffer.array[size:grown] = more
        buffer.ends[grown] = True
        return DenseBox(buffer.array[:grown], modes, buffer)


def _contract(values: Floats, factors: Sequence[Floats], axis: int) -> Floats:
    """Sum over all axes but one, weighted by the rows of the factors, component by component."""
    last = values.ndim - 1
    if axis == last or (axis != 0 and values.shape[0] > values.shape[last]):
        flat = values.reshape(values.shape[0], -1)
        partial = thin_times(factors[0], flat).reshape(-1, *values.shape[1:])
        axes = [_RANK, *range(1, last + 1)]
    else:
        flat = values.reshape(-1, values.shape[last])
        partial = times_thin(flat, factors[last].T).reshape(*values.shape[:-1], -1)
        axes = [*range(last), _RANK]
    for k in [k for k in axes if k not in (axis, _RANK)]:
        left = [n for n in axes if n != k]
        partial = np.einsum(partial, axes, factors[k], [k, _RANK], left)  # type: ignore
        axes = left
    return partial.T if axes[0] == _RANK else partial


AnyEntries: TypeAlias = Entries | DenseBox


def box_values(rows: Sequence[Floats]) -> Floats:
    """Return the model's values on the box of some rows, flat, the last mode running fastest."""
    sizes = [len(r) for r in rows]
    cuts = range(1, len(rows))
    cut = min(cuts, key=lambda k: prod(sizes[:k]) + prod(sizes[k:]))
    return thin_times(khatri_rao(rows[:cut]).T, khatri_rao(rows[cut:]).T).ravel()


def khatri_rao(factors: Sequence[Floats]) -> Floats:
    """Return the Khatri-Rao product, the last factor running fastest."""
    return reduce(lambda a, b: (a[:, None, :] * b[None, :, :]).reshape(-1, a.shape[1]), factors)


def told_cells(entries: AnyEntries) -> tuple[Places, Floats]:
    """Return the cells that have weight, and their values."""
    if isinstance(entries, DenseBox):
        return entries.coords(), entries.in_order().ravel()
    weights, cells, values = entries.orders[0].weights, entries.coords(), entries.all_values()
    return (cells[weights > 0.0], values[weights > 0.0]) if len(weights) else (cells, values)
