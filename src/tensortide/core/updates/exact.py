"""From equations to rows: the exact update of a block, in parts that threads may share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import TypeAlias

import numpy as np

from tensortide.arrays import Floats
from tensortide.core.kernels.entries import SINGULAR
from tensortide.core.objective.equations import NormalEquations
from tensortide.core.objective.squares import Objective, solve_in_place
from tensortide.core.tensor.dense_box import DenseBox
from tensortide.core.tensor.workspace import Block
from tensortide.errors import SolveError

Run: TypeAlias = Callable[[Callable[[Block], Floats], Sequence[Block]], Iterable[Floats]]

CHUNK_ENTRIES = 1 << 17  # entries of the rows that are solved together, at most
CHUNK_NUMBERS = 1 << 22  # numbers in their Gram matrices, at most (32 MB)


def serially(task: Callable[[Block], Floats], blocks: Sequence[Block]) -> Iterable[Floats]:
    """Do one after the other: the default way to run the parts of a block."""
    return map(task, blocks)


def update_block(objective: Objective, block: Block, run: Run = serially) -> None:
    """Move the rows of a block to their minimum ``q P^-1`` (`eq:sparse-solution`).

    The block is cut by its data alone (entries and rows per part), so `run` may use any
    number of threads without changing a bit.
    """
    objective.settle()
    parts = _parts(objective, block)
    if len(parts) == 1:
        rows = exact(objective, block)
    else:
        rows = np.concatenate(list(run(lambda part: exact(objective, part), parts)))
    work = objective.work
    work.stack[work.stacked(block)] = rows
    objective.note_change(block.mode)


def exact(objective: Objective, block: Block) -> Floats:
    """Return the rows that minimise the objective with all other rows fixed.

    A row about which entries and boxes say nothing (its Gram matrix is zero, because the
    rest of the model is) stays where it is: the ridge alone would pull it to zero, and
    zeros are a fixed point that no later data can leave.  Where a ridge makes the matrix
    positive definite but rounding hides it, the smallest-norm solution is taken; without a
    ridge a singular matrix is an error that names the row.
    """
    return objective.solve(block, _careful_row)


def solve(equations: NormalEquations, beta: float, rows: Floats, block: Block) -> Floats:
    """Return the rows that satisfy given equations plus a ridge."""
    rank = rows.shape[1]
    rows = rows.copy()

    def again(row: int) -> Floats:
        at = block.first + row
        gram = equations.gram if equations.gram.ndim == 2 else equations.gram[row]
        one = NormalEquations(gram + beta * np.eye(rank), equations.rhs[row : row + 1])
        return _careful_row(one, beta, Block(block.mode, at, at + 1, block.upper))

    gram = np.array(equations.gram, ndmin=3)  # a copy: the kernel overwrites it
    pointers = np.zeros(len(rows) + 1, np.int64)
    solve_in_place(gram, equations.rhs, beta, rows, pointers, again, every_row=True)
    return rows


def _careful_row(equations: NormalEquations, beta: float, block: Block) -> Floats:
    """Solve the equations of one row that are singular to working precision."""
    gram = equations.gram.reshape(equations.gram.shape[-2:])
    if beta == 0.0 and np.linalg.matrix_rank(gram, hermitian=True) < len(gram):
        raise SolveError(
            "its equations are singular (fewer independent entries than components); use "
            "beta > 0 or a smaller rank",
            mode=block.mode,
            position=block.first,
        )
    with np.errstate(over="ignore", invalid="ignore"):
        row = equations.rhs[0] @ pseudo_inverse(gram)
    if not np.isfinite(row).all():
        raise SolveError(
            "its equations have no finite solution: values or factors are too large or too "
            "small; scale the values",
            mode=block.mode,
            position=block.first,
        )
    return np.asarray(row)


def pseudo_inverse(gram: Floats) -> Floats:
    """Invert on the directions that are more than rounding: the limit of a vanishing ridge."""
    if not np.isfinite(gram).all():
        return np.full_like(gram, np.nan)
    values, vectors = np.linalg.eigh(gram)
    keep = values > SINGULAR * values[-1]
    inverse = np.where(keep, 1.0 / np.where(keep, values, 1.0), 0.0)
    return np.asarray((vectors * inverse) @ vectors.T)


def _parts(objective: Objective, block: Block) -> list[Block]:
    if isinstance(objective.listed.entries, DenseBox):
        return [block]
    most_rows = max(1, CHUNK_NUMBERS // objective.work.rank**2)
    pointers = objective.listed.entries.orders[block.mode].pointers
    n_rows = block.last - block.first
    if n_rows <= most_rows and pointers[-1] <= CHUNK_ENTRIES:
        return [block]
    before = pointers[block.first : block.last] - pointers[block.first]
    group = before // CHUNK_ENTRIES + np.arange(n_rows) // most_rows
    cuts = [0, *(np.flatnonzero(np.diff(group)) + 1).tolist(), n_rows]
    return [
        Block(block.mode, block.first + a, block.first + b, block.upper) for a, b in pairwise(cuts)
    ]
