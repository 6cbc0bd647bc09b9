"""Another number of components between two steps."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tensortide.arrays import Floats
from tensortide.core.objective.squares import BoxTerm, Listed, Objective
from tensortide.core.steps.prepare import balance
from tensortide.core.tensor.entries import Entries
from tensortide.core.tensor.workspace import Workspace
from tensortide.core.updates.exact import update_block


def raise_rank(
    rows: Sequence[Floats], rank: int, rng: np.random.Generator, *, positive: bool = False
) -> list[Floats]:
    """Add components that leave every value of the model as it is and can learn.

    The new columns are zero in the first mode, which is the first to be updated, and
    random (of the size of the others) elsewhere.  Zeros everywhere would never move.
    """
    extra = rank - rows[0].shape[1]
    larger = []
    for mode, factor in enumerate(rows):
        new: Floats = np.zeros((len(factor), extra))
        if mode > 0:
            size = float(np.sqrt(np.mean(factor * factor))) or 1.0
            new = rng.normal(scale=size, size=new.shape)
            new = np.abs(new) if positive else new
        larger.append(np.hstack([factor, new]))
    return larger


def revive(
    rows: Sequence[Floats], rng: np.random.Generator, *, positive: bool = False
) -> list[Floats]:
    """Give components that first data could not feed another chance.

    Data of lower rank than the model, a single day for instance, press the components that
    are too many to zero, where alternating least squares would leave them for ever.  They
    become what `raise_rank` adds: nothing now, but able to learn.
    """
    norms = np.prod([np.sqrt((r * r).sum(axis=0)) for r in rows], axis=0)
    alive = norms > 1e-9 * norms.max()
    if alive.all() or not alive.any():
        return list(rows)
    grown = raise_rank([r[:, alive] for r in rows], len(norms), rng, positive=positive)
    return [np.ascontiguousarray(r) for r in grown]


def lower_rank(
    rows: Sequence[Floats], rank: int, max_sweeps: int = 200, tol: float = 1e-9
) -> tuple[list[Floats], float]:
    """Approximate the model by one of fewer components; no data are needed.

    Starts from the strongest components and lowers the squared distance of the two models
    on the whole box.  Returns the rows and the share of the model's norm
    that was lost.
    """
    norms = np.prod([np.sqrt((r * r).sum(axis=0)) for r in rows], axis=0)
    strongest = np.sort(np.argsort(-norms, kind="stable")[:rank])
    sizes = [len(r) for r in rows]
    work = Workspace([0] * len(rows), sizes, rank)
    reference = np.vstack(rows)
    work.stack[:] = reference[:, strongest]
    box = BoxTerm(1.0, reference, upper_only=False, every_row=True)
    no_entries = Entries.listed(np.empty((0, len(rows)), np.int32), np.empty(0), tuple(sizes))
    nothing = Listed(no_entries, None, [np.empty(0)] * len(rows), 0.0)
    distance = Objective(work, nothing, [box], 0.0)
    last = distance.value()
    size = float(np.prod([r.T @ r for r in rows], axis=0).sum())
    if size <= 0.0:
        return [r[:, strongest].copy() for r in rows], 0.0
    ridge = 1e-14 * float(size ** (1.0 - 1.0 / len(rows)))
    goal = Objective(work, nothing, [box], ridge)
    for _ in range(max_sweeps):
        for block in work.blocks():
            update_block(goal, block)
        now = goal.value()
        if last - now <= tol * size:
            break
        last = now
    for mode in range(work.order):
        distance.note_change(mode)
    return balance(work.rows()), float(np.sqrt(distance.value() / size))
