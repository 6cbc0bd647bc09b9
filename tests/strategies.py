"""Hypothesis strategies: small tensors that grow in some modes, with holes and weights."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st


@dataclass
class Growing:
    """A model of the old box, a tensor of the new shape, and which of its cells are seen."""

    previous: list[np.ndarray]
    new_shape: tuple[int, ...]
    data: dict[tuple[int, ...], tuple[float, float]]

    @property
    def old_shape(self) -> tuple[int, ...]:
        return tuple(len(f) for f in self.previous)

    @property
    def coords(self) -> np.ndarray:
        return np.array(list(self.data), np.int64).reshape(-1, len(self.new_shape))

    @property
    def values(self) -> np.ndarray:
        return np.array([x for x, _ in self.data.values()])

    @property
    def weights(self) -> np.ndarray:
        return np.array([w for _, w in self.data.values()])


@st.composite
def growing_tensors(draw, *, min_order=2, max_order=5, weighted=False, complete=False):
    order = draw(st.integers(min_order, max_order))
    most = {2: 5, 3: 4, 4: 3, 5: 2}[order]
    old = [draw(st.integers(1, most)) for _ in range(order)]
    grow = [draw(st.integers(0, 2)) for _ in range(order)]
    rank = draw(st.integers(1, 3))
    density = 1.0 if complete else draw(st.sampled_from([0.2, 0.5, 0.9]))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    new = tuple(o + g for o, g in zip(old, grow, strict=True))
    previous = [rng.standard_normal((n, rank)) for n in old]
    seen = rng.random(new) < density
    if not seen.any():
        seen.flat[0] = True
    cells = [tuple(int(i) for i in c) for c in np.argwhere(seen)]
    data = {
        c: (float(rng.standard_normal()), float(rng.choice([0.25, 1.0, 3.0])) if weighted else 1.0)
        for c in cells
    }
    return Growing(previous, new, data)
