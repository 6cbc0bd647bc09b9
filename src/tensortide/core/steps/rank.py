"""Another number of components between two steps."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tensortide.arrays import Floats
from tensortide.core.kernels.dense import thin_times
from tensortide.core.objective.squares import BoxTerm, Listed, Objective
from tensortide.core.steps.hyper import mode_precisions
from tensortide.core.steps.prepare import balance
from tensortide.core.tensor.entries import Entries
from tensortide.core.tensor.packed import diagonal_places, pack, packed_width, unpack
from tensortide.core.tensor.workspace import Workspace
from tensortide.core.updates.exact import update_block

NOTHING = 1e-4  # share of the noise below which what a component adds is nothing


def raise_rank(
    rows: Sequence[Floats],
    rank: int,
    rng: np.random.Generator,
    *,
    positive: bool = False,
    at: int = 0,
) -> list[Floats]:
    """Add components that leave every value of the model as it is and can learn.

    The new columns are zero in mode `at` (the first one, which is the first to be updated) and
    random (of the size of the others) elsewhere.  Zeros everywhere would never move.
    """
    extra = rank - rows[0].shape[1]
    larger = []
    for mode, factor in enumerate(rows):
        new: Floats = np.zeros((len(factor), extra))
        if mode != at:
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


def balance_believed(
    rows: Sequence[Floats], told: Sequence[Floats]
) -> tuple[list[Floats], list[Floats]]:
    """Give each component the same norm in every mode; rows stay as sure of their values."""
    after, scaled = balance(rows), []
    for old, new, precision in zip(rows, after, told, strict=True):
        before, now = (np.sqrt((r * r).sum(axis=0)) for r in (old, new))
        scale = np.where(before > 0.0, now / np.where(before > 0.0, before, 1.0), 1.0)
        scaled.append(precision / pack(np.outer(scale, scale)))
    return after, scaled


def revive_believed(
    rows: Sequence[Floats],
    told: Sequence[Floats],
    noise: float,
    size: float,
    rng: np.random.Generator,
    *,
    at: int,
    least: float | None = None,
    positive: bool = False,
) -> tuple[list[Floats], list[Floats]]:
    """Give components of which first data left next to nothing another chance.

    Such are those whose mean square is a small share of `least`, by default of the noise.  They
    become zero in mode `at` and random elsewhere: of the size of the others, or, where none is
    left, such that ones in that mode are of the size of the data (`size`, their mean square).
    """
    added = np.prod([np.mean(r * r, axis=0) for r in rows], axis=0)
    alive = added > NOTHING * (noise if least is None else least)
    if alive.all():
        return list(rows), list(told)
    scale = size ** (0.5 / max(len(rows) - 1, 1)) or 1.0
    after = []
    for mode, r in enumerate(rows):
        kept = r[:, alive]
        usual = float(np.sqrt(np.mean(kept * kept))) if alive.any() else scale
        new = usual * rng.standard_normal((len(r), int((~alive).sum())))
        new = np.abs(new) if positive else new
        after.append(np.hstack([kept, np.zeros_like(new) if mode == at else new]))
    full = [unpack(one, len(alive))[:, alive][:, :, alive] for one in told]
    return after, extend_precisions(full, after, noise)


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


def extend_precisions(
    told: Sequence[Floats], after: Sequence[Floats], noise: float
) -> list[Floats]:
    """Return precisions of rows to which components were added that nobody knows anything of.

    `told` are the matrices of the components that were there before.
    """
    found = []
    for rows, known in zip(after, told, strict=True):
        rank, n_kept = rows.shape[1], known.shape[1]
        new = np.zeros((len(rows), rank, rank))
        new[:] = unpack(_prior(rows, noise), rank)
        new[:, :n_kept] = new[:, :, :n_kept] = 0.0
        new[:, :n_kept, :n_kept] = known
        found.append(pack(new))
    return found


def carry_precisions(
    told: Sequence[Floats], before: Sequence[Floats], after: Sequence[Floats], noise: float
) -> list[Floats]:
    """Return precisions for rows of lower rank: each row stays about as sure as it was.

    A row's precision is worth some number of cells of the usual kind: as many are laid down for
    the new row, beside its prior.
    """
    found = []
    for mode, rows in enumerate(after):
        places = diagonal_places(before[mode].shape[1], told[mode].shape[1])
        usual = np.diag(_others(before, mode))
        worth = np.where(
            usual > 0.0, told[mode][:, places] / np.where(usual > 0.0, usual, 1.0), 0.0
        )
        laid_down = np.median(worth, axis=1)[:, None] * pack(_others(after, mode))
        found.append(laid_down + _prior(rows, noise))
    return found


def _prior(rows: Floats, noise: float) -> Floats:
    """Return the precision of the prior of rows that are sure, packed."""
    nothing = np.zeros((1, packed_width(rows.shape[1])))
    squares, sums = thin_times(rows, rows)[None], rows.sum(axis=0)[None]
    return np.asarray(mode_precisions(squares, sums, (len(rows),), nothing, noise)[0])


def _others(rows: Sequence[Floats], mode: int) -> Floats:
    """Return the mean of a cell's matrix for the rows of a mode."""
    product: Floats = np.ones((rows[mode].shape[1], rows[mode].shape[1]))
    for other, factor in enumerate(rows):
        if other != mode:
            product = product * (thin_times(factor, factor) / len(factor))
    return product
