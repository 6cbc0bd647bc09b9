"""Slices of the growing mode that count less the older they are.

``sum_k g_k || X_k - U diag(w_k) V' ||^2`` is the plain sum for slices ``sqrt(g_k) X_k`` and rows
``sqrt(g_k) w_k``: so the engine works on scaled rows and values and needs no weights.  The ridge
of an old row fades with its slice, as in the objective of Mardani et al. (section 4 of the
paper).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tensortide.arrays import Floats
from tensortide.core.steps.change import Change
from tensortide.core.tensor.dense_box import AnyEntries, DenseBox
from tensortide.core.tensor.entries import Entries, ModeOrder
from tensortide.core.tensor.workspace import Workspace

FAINTEST = 1e-16  # weights stop fading here: what counts less is lost in rounding anyway


@dataclass(frozen=True, slots=True)
class Decayed:
    """Scaled entries, and the scale of every stacked row."""

    entries: AnyEntries
    scale: Floats


def decay_slices(work: Workspace, change: Change, decay: float) -> Decayed:
    """Scale the rows of the growing mode in the workspace, and the entries with them.

    The last slice has weight one, the one before it `decay`, and so on.
    """
    scale = np.ones((len(work.stack), 1))
    if decay == 1.0:
        return Decayed(change.entries, scale)
    mode, size = change.time, change.growing
    ages = np.arange(size - 1, -1, -1, dtype=float)
    roots = np.sqrt(np.maximum(decay**ages, FAINTEST))
    scale[work.part(mode), 0] = roots
    work.stack *= scale
    if isinstance(change.entries, DenseBox):
        return Decayed(change.entries.scaled(mode, roots), scale)
    orders = []
    for n, order in enumerate(change.entries.orders):
        if n == mode:
            by = np.repeat(roots, np.diff(order.pointers))
        else:
            by = roots[order.others[:, mode if mode < n else mode - 1]]
        orders.append(ModeOrder(order.pointers, order.others, by * order.values, order.weights))
    return Decayed(Entries(tuple(orders), change.entries.shape), scale)
