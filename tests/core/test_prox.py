"""Proximal maps: no other point has a lower value."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tensortide.core.kernels.coordinates import descend_rows
from tensortide.core.penalties.prox import NonNegative, Nuclear, Simplex


def goal(prox, point, rows, weight):
    return weight * prox.value(point) + 0.5 * ((point - rows) ** 2).sum()


def nearby(prox, point, rng):
    """A random point at which the penalty is finite."""
    other = point + rng.choice([0.01, 0.3, 2.0]) * rng.standard_normal(point.shape)
    if isinstance(prox, NonNegative):
        return np.abs(other)
    if isinstance(prox, Simplex):
        return np.abs(other) / np.abs(other).sum(axis=0)
    return other


@pytest.mark.parametrize("prox", [NonNegative(), Nuclear(0.7), Simplex()])
@given(seed=st.integers(0, 2**32 - 1), n_rows=st.integers(1, 6), rank=st.integers(1, 4))
@settings(max_examples=25)
def test_a_prox_beats_random_points(prox, seed, n_rows, rank):
    rng = np.random.default_rng(seed)
    rows, weight = rng.standard_normal((n_rows, rank)), float(rng.gamma(1.0))
    best = prox.apply(rows, weight)
    value = goal(prox, best, rows, weight)
    for _ in range(30):
        assert goal(prox, nearby(prox, best, rng), rows, weight) >= value - 1e-10


@given(seed=st.integers(0, 2**32 - 1), nonnegative=st.booleans(), tied=st.booleans())
@settings(max_examples=40)
def test_coordinate_descent_ends_where_no_nearby_row_is_better(seed, nonnegative, tied):
    rng = np.random.default_rng(seed)
    n_rows, rank, ridge = 4, 3, 0.1
    l1 = np.array([0.5, 0.2, 0.0])
    roots = rng.standard_normal((n_rows, rank, rank))
    gram, rhs = roots @ roots.transpose(0, 2, 1), rng.standard_normal((n_rows, rank))
    start = np.abs(rng.standard_normal((n_rows, rank)))
    still = np.array([False, False, True, False])
    pairs = [(0, 1), (1, 2)] if tied else []
    both = sorted([*pairs, *((j, i) for i, j in pairs)])
    pointers = np.searchsorted([i for i, _ in both], np.arange(n_rows + 1))
    neighbours = np.array([j for _, j in both], np.int64)
    ties, scale = np.full(len(both), 0.8), np.array([0.5, 1.0, 2.0])

    def value(rows):
        total = np.einsum("ir,irs,is->", rows, gram, rows) - 2.0 * (rhs * rows).sum()
        total += ridge * (rows**2).sum() + (l1 * np.abs(rows)).sum()
        return total + sum(0.8 * (scale * (rows[i] - rows[j]) ** 2).sum() for i, j in pairs)

    rows = start.copy()
    arguments = (gram, rhs, ridge, l1, nonnegative, still, pointers, neighbours, ties, scale)
    descend_rows(*arguments, 5000, 1e-14, rows)
    best = value(rows)
    assert best <= value(start) + 1e-12
    assert (rows[2] == start[2]).all()
    for size in (1e-4, 1e-2, 1.0):
        for _ in range(15):
            other = rows + size * rng.standard_normal(rows.shape) * ~still[:, None]
            other = np.maximum(other, 0.0) if nonnegative else other
            other[2] = rows[2]
            assert value(other) >= best - 1e-8
