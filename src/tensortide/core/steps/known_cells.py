"""Cells of which one label at most is new: from these new rows begin, as the paper starts them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tensortide.core.objective.squares import Listed
from tensortide.core.tensor.entries import Entries
from tensortide.core.tensor.workspace import Workspace


def only_known(work: Workspace, listed: Listed) -> Listed:
    """Return the entries, those of which two labels are new without weight."""
    curvatures, values = [], []
    assert listed.curvatures is not None
    for mode, order in enumerate(listed.entries.orders):
        limits = np.array([n for m, n in enumerate(work.n_upper) if m != mode])
        new = (order.others >= limits).sum(axis=1)
        new[order.pointers[work.n_upper[mode]] :] += 1
        usable = (new < 2).astype(np.float64)
        held = listed.curvatures[mode]
        curvatures.append(usable * held if len(held) else usable)
        values.append(usable * listed.values[mode])
    return Listed(listed.entries, curvatures, values, listed.constant)


def only_known_entries(work: Workspace, entries: Entries) -> Entries:
    """Return the entries, those of which two labels are new without weight."""
    plain = Listed(entries, [order.weights for order in entries.orders], [], 0.0)
    plain = replace(plain, values=[order.values for order in entries.orders])
    masked = only_known(work, plain).curvatures
    assert masked is not None
    orders = [
        replace(order, weights=weights)
        for order, weights in zip(entries.orders, masked, strict=True)
    ]
    return replace(entries, orders=tuple(orders))
