"""Simulated streams: nothing is dropped, everything is seeded, rates are as asked."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tensortide as tt
from tensortide import simulate
from tensortide.simulate.streams import KINDS


@given(
    shape=st.lists(st.integers(1, 6), min_size=2, max_size=4),
    data=st.data(),
    start=st.sampled_from([0.1, 0.5, 1.0]),
    by=st.integers(1, 3),
    observed=st.sampled_from([0.3, 1.0]),
)
def test_growth_delivers_every_observed_cell_once(shape, data, start, by, observed):
    modes = data.draw(st.sets(st.integers(0, len(shape) - 1), min_size=1))
    truth = simulate.low_rank(shape, 2, seed=1)
    stream = simulate.growth(
        truth, modes=sorted(modes), start=start, by=by, observed=observed, seed=4
    )
    cells, shape_before = [], tuple(0 for _ in shape)
    for batch in stream:
        assert all(a <= b for a, b in zip(shape_before, batch.shape, strict=True))
        assert all(
            any(i >= s for i, s in zip(c, shape_before, strict=True)) for c in batch.coords.tolist()
        )  # growth brings new labels, nothing else
        np.testing.assert_array_equal(batch.values, truth.values(batch.coords))
        cells += [tuple(c) for c in batch.coords.tolist()]
        shape_before = batch.shape
    assert shape_before == tuple(shape)
    assert sorted(cells) == sorted(map(tuple, stream.coords.tolist()))
    if observed == 1.0:
        assert len(cells) == np.prod(shape)


def test_reporting_fills_the_triangle_delay_by_delay():
    truth = simulate.low_rank((2, 8, 3), 1, seed=0)
    stream = simulate.reporting(truth, date=1, delay=2, start=0.5)
    seen = set()
    for step, batch in enumerate(stream):
        today = 3 + step
        for _, date, delay in batch.coords.tolist():
            assert date + delay == today or (step == 0 and date + delay <= today)
        seen |= set(map(tuple, batch.coords.tolist()))
        assert batch.shape[1] == min(8, today + 1)
    assert len(seen) == 2 * 8 * 3


def test_revisions_have_the_share_and_size_asked_for():
    truth = simulate.low_rank((20, 20, 30), 2, seed=0)
    stream = simulate.revise(simulate.growth(truth, start=0.5), share=0.02, size=0.05, seed=3)
    current: dict[tuple[int, ...], float] = {}
    for step, batch in enumerate(stream):
        revised = [
            (c, v)
            for c, v in zip(map(tuple, batch.coords.tolist()), batch.values, strict=True)
            if c in current
        ]
        if step:
            assert len(revised) == round(0.02 * len(current))
            changes = np.array([v / current[c] - 1 for c, v in revised])
            assert np.abs(changes).max() <= 0.05
            assert changes.min() < 0 < changes.max()  # both ways
        current.update(zip(map(tuple, batch.coords.tolist()), batch.values, strict=True))


def test_streams_are_repeatable_and_differ_by_seed():
    def values(seed):
        truth = simulate.low_rank((5, 6, 7), 2, kind="normal", noise=0.1, drift=0.5, seed=seed)
        stream = simulate.revise(simulate.growth(truth, observed=0.5, seed=seed), seed=seed)
        return np.concatenate([b.values for b in stream])

    np.testing.assert_array_equal(values(1), values(1))
    assert len(values(1)) != len(values(2)) or (values(1) != values(2)).any()


@pytest.mark.parametrize("kind", KINDS)
def test_truth_is_of_low_rank_and_noise_of_the_size_asked_for(kind):
    truth = simulate.low_rank((30, 30, 30), 3, kind=kind, noise=0.1, seed=2)
    clean = truth.dense(clean=True)
    assert np.linalg.matrix_rank(clean.reshape(30, -1)) <= 3
    noise = truth.dense() - clean
    assert noise.std() == pytest.approx(0.1 * np.sqrt((clean**2).mean()), rel=0.1)
    assert (kind == "normal") == bool((clean < 0).any())
    cells = np.array([[3, 4, 5], [0, 0, 0]])
    np.testing.assert_array_equal(truth.values(cells), truth.dense()[tuple(cells.T)])


def test_drift_changes_old_and_new_slices():
    steady, drifting = (simulate.low_rank((9, 8, 20), 1, drift=d, seed=3) for d in (0.0, 2.0))
    np.testing.assert_allclose(steady.dense()[..., 0], drifting.dense()[..., 0])
    assert np.linalg.matrix_rank(drifting.dense().reshape(9, -1)) == 2


def test_sparse_sampling_of_a_huge_tensor_needs_no_mask():
    truth = simulate.low_rank((2000, 2000, 2000), 2, seed=0)
    stream = simulate.growth(truth, observed=1e-5, start=0.5, by=500, seed=1)
    assert len(stream.coords) == pytest.approx(80_000, rel=0.05)
    assert len(np.unique(stream.coords, axis=0)) == len(stream.coords)
    with pytest.raises(tt.InputError, match="too large"):
        truth.dense()


@pytest.mark.parametrize(
    "call",
    [
        lambda t: simulate.growth(t, observed=0.0),
        lambda t: simulate.growth(t, start=2.0),
        lambda t: simulate.growth(t, by=0),
        lambda t: simulate.reporting(t, date=1, delay=1),
        lambda t: simulate.revise(simulate.growth(t), share=2.0),
        lambda t: simulate.low_rank((3,), 1),
        lambda t: simulate.low_rank((3, 3), 0),
        lambda t: simulate.low_rank((3, 3), 1, kind="poisson"),
    ],
)
def test_bad_requests_get_a_sentence(call):
    with pytest.raises(tt.InputError):
        call(simulate.low_rank((4, 4, 4), 1))
