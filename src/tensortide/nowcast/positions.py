"""Where labels stand among others: the one way in which the past is brought to today's labels."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np

from tensortide.arrays import Positions


def positions_of(labels: Sequence[Hashable], known: Sequence[Hashable]) -> Positions:
    """Return the position in `known` of each label; -1 where it is not there.

    >>> positions_of(["b", "z", "a"], ["a", "b"]).tolist()
    [1, -1, 0]
    """
    place = {label: k for k, label in enumerate(known)}
    return np.array([place.get(label, -1) for label in labels], np.int64)
