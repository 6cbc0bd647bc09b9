"""Symmetric matrices packed into rows of numbers: the lower triangle, or the diagonal alone."""

from __future__ import annotations

from functools import cache

import numpy as np

from tensortide.arrays import Floats, Positions

FULL_RANK = 20  # up to this many components covariances are full, above it diagonal


def packed_width(rank: int, *, full: bool | None = None) -> int:
    """Return how many numbers a matrix takes.

    >>> packed_width(5), packed_width(40)
    (15, 40)
    """
    full = rank <= FULL_RANK if full is None else full
    return rank * (rank + 1) // 2 if full else rank


@cache
def diagonal_places(rank: int, width: int) -> Positions:
    """Return where the diagonal stands in a packed matrix."""
    steps = np.arange(rank)
    return steps if width == rank else steps * (steps + 3) // 2


def pack(matrix: Floats) -> Floats:
    """Return a symmetric matrix (or a stack of them) packed.

    >>> pack(np.array([[1.0, 2.0], [2.0, 3.0]])).tolist()
    [1.0, 2.0, 3.0]
    """
    rank = matrix.shape[-1]
    if packed_width(rank) == rank:
        return np.diagonal(matrix, axis1=-2, axis2=-1).copy()
    return np.ascontiguousarray(matrix[..., *_triangle(rank)])


def unpack(packed: Floats, rank: int) -> Floats:
    """Return a packed matrix (or a stack of them) in full."""
    out = np.zeros((*packed.shape[:-1], rank, rank))
    if packed.shape[-1] == rank:
        out[..., np.arange(rank), np.arange(rank)] = packed
        return out
    rows, columns = _triangle(rank)
    out[..., rows, columns] = packed
    out[..., columns, rows] = packed
    return out


@cache
def _triangle(rank: int) -> tuple[Positions, Positions]:
    rows, columns = np.tril_indices(rank)
    return rows, columns
