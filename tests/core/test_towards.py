"""The divergence of components from the last model, against sums over all cells."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tensortide.core.objective.towards import Towards
from tensortide.core.tensor.workspace import Workspace
from tests.oracles import reconstruct


def kl(old, new):
    return float((new - old + old * np.log(old / new)).sum())


@st.composite
def models(draw):
    """Rows of an old and a new model; of each mode some take part, and there may be new ones."""
    order, rank = draw(st.integers(2, 4)), draw(st.integers(1, 3))
    rng = np.random.default_rng(draw(st.integers(0, 9999)))
    old = [0.1 + rng.random((rng.integers(1, 5), rank)) for _ in range(order)]
    here = [np.sort(rng.permutation(len(b))[: rng.integers(1, len(b) + 1)]) for b in old]
    fresh = [0.1 + rng.random((rng.integers(0, 3), rank)) for _ in range(order)]
    moved = [b.copy() for b in old]
    for rows, which in zip(moved, here, strict=True):
        rows[which] *= np.exp(rng.standard_normal((len(which), rank)))
    return old, moved, here, fresh


def towards_of(old, moved, here, fresh, weight=1.7):
    """The term over the rows that take part, at the moved ones."""
    rank = old[0].shape[1]
    work = Workspace([*map(len, here)], [*map(len, fresh)], rank)
    stacked = [np.vstack([b[w], f]) for b, w, f in zip(old, here, fresh, strict=True)]
    rest = [b.sum(axis=0) - b[w].sum(axis=0) for b, w in zip(old, here, strict=True)]
    found = Towards(work, np.vstack(stacked), np.array(rest), weight)
    work.stack[:] = np.vstack(
        [np.vstack([a[w], f]) for a, w, f in zip(moved, here, fresh, strict=True)]
    )
    return work, found


@given(model=models())
def test_it_is_the_divergence_of_rank_one_parts_over_the_old_box(model):
    old, moved, _, _ = model
    _, fast = towards_of(*model)
    rank = old[0].shape[1]
    parts = [[reconstruct([f[:, r : r + 1] for f in rows]) for r in range(rank)]
             for rows in (old, moved)]  # fmt: skip
    expected = sum(kl(b, a) for b, a in zip(*parts, strict=True))
    assert fast.total() == pytest.approx(1.7 * expected, rel=1e-9, abs=1e-9)
    assert expected >= kl(reconstruct(old), reconstruct(moved)) - 1e-9  # the paper's term
    assert towards_of(old, old, *model[2:])[1].total() == pytest.approx(0.0, abs=1e-9)


@given(model=models())
def test_its_equations_touch_it_at_the_current_rows(model):
    """Slope and curvature of every number by small differences of the total."""
    work, fast = towards_of(*model)
    for mode in range(work.order):
        part = work.part(mode)
        n, rank = work.n_rows[mode], work.rank
        gram, rhs = np.zeros((n, rank, rank)), np.zeros((n, rank))
        fast.add(mode, gram, rhs)
        rows = work.stack[part].copy()
        slopes = 2.0 * (np.einsum("irs,is->ir", gram, rows) - rhs)
        before, values = fast.total(), fast.row_values(mode, rows)
        for i, r in np.ndindex(n, rank):
            step = 1e-5 * rows[i, r]
            ends = []
            for sign in (-1.0, 1.0):
                work.stack[part][i, r] = rows[i, r] + sign * step
                ends.append(fast.total())
                other = work.stack[part].copy()
                gain = fast.row_values(mode, other).sum() - values.sum()
                assert ends[-1] - before == pytest.approx(gain, rel=1e-6, abs=1e-9)
            work.stack[part][i, r] = rows[i, r]
            slope = (ends[1] - ends[0]) / (2.0 * step)
            assert slopes[i, r] == pytest.approx(slope, rel=1e-4, abs=1e-4 * (1 + abs(before)))
            bend = (ends[1] - 2.0 * before + ends[0]) / step**2
            assert 2.0 * gram[i, r, r] == pytest.approx(bend, rel=0.05, abs=0.05 * (1 + before))


def test_sums_that_are_below_nothing_by_rounding_pull_nowhere():
    """Rows that take part, taken from the sum over all rows, may leave a little less than zero."""
    work = Workspace([1, 1], [1, 1], 1)
    old = np.array([[0.0], [0.0], [0.5], [0.5]])
    pulls = Towards(work, old, np.array([[-1e-17], [-1e-17]]), 1.0)
    work.stack[:] = old
    for mode in (0, 1):
        above, below = pulls.parts(mode)
        assert (above >= 0.0).all()
        assert (below >= 0.0).all()
