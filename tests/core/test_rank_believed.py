"""Another number of components: what rows know is carried over."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tensortide.core.steps.rank import carry_precisions, extend_precisions, revive_believed
from tensortide.core.tensor.packed import pack, unpack
from tests import oracles_believed as slow
from tests.believers import some_rows, storing
from tests.oracles import reconstruct

KINDS = pytest.mark.parametrize("kind", ["whole", "diagonal"])


def rows_for(seed, rank, order=3, keep=slow.whole):
    rng = np.random.default_rng(seed)
    means = [rng.standard_normal((int(rng.integers(2, 6)), rank)) for _ in range(order)]
    return some_rows(means, seed, keep=keep)


def sure_prior(rows, noise, keep):
    """The prior of rows that are sure of themselves."""
    return keep(noise * slow.inverted(slow.scatter(rows, [np.zeros(1)] * len(rows))))


@KINDS
@given(seed=st.integers(0, 999), rank=st.integers(1, 4), more=st.integers(1, 3))
def test_new_components_have_their_prior_and_the_others_stay(kind, seed, rank, more):
    with storing(kind) as keep:
        rows = rows_for(seed, rank, keep=keep)
        rng = np.random.default_rng(seed)
        after = [np.hstack([m, rng.standard_normal((len(m), more))]) for m in rows.means]
        found = extend_precisions(rows.told, after, rows.noise)
        for known, told, wide in zip(rows.told, found, after, strict=True):
            full = unpack(told, rank + more)
            np.testing.assert_allclose(full[:, :rank, :rank], known, rtol=1e-9, atol=1e-12)
            assert not full[:, :rank, rank:].any()
            prior = sure_prior(wide, rows.noise, keep)[rank:, rank:]
            for one in full[:, rank:, rank:]:
                np.testing.assert_allclose(one, prior, rtol=1e-6, atol=1e-9 * np.abs(prior).max())


@KINDS
@given(seed=st.integers(0, 999), dead=st.integers(0, 3), at=st.integers(0, 2))
def test_components_of_which_nothing_is_left_may_learn_again(kind, seed, dead, at):
    """The values stay, all but what is nothing beside the noise; what is alive is as sure."""
    with storing(kind) as keep:
        rows = rows_for(seed, 3, keep=keep)
        for m in rows.means:
            m[:, :dead] *= 1e-3
        rng = np.random.default_rng(seed)
        told = [pack(t) for t in rows.told]
        after, precisions = revive_believed(rows.means, told, rows.noise, 1.0, rng, at=at)
        before = reconstruct(rows.means)
        assert np.abs(reconstruct(after) - before).max() <= 0.05 * np.sqrt(rows.noise) + 1e-12
        for mode, (new, old) in enumerate(zip(after, rows.means, strict=True)):
            np.testing.assert_array_equal(new[:, : 3 - dead], old[:, dead:])
            assert (mode == at) == (not new[:, 3 - dead :].any()) or not dead
            full = unpack(precisions[mode], 3)
            kept = rows.told[mode][:, dead:, dead:]
            np.testing.assert_allclose(full[:, : 3 - dead, : 3 - dead], kept, rtol=1e-12)
            assert (np.linalg.eigvalsh(full) > 0.0).all()


@KINDS
@given(seed=st.integers(0, 999), rank=st.integers(2, 4), cells=st.floats(0.0, 1e6))
def test_fewer_components_are_worth_as_many_cells(kind, seed, rank, cells):
    with storing(kind) as keep:
        rows = rows_for(seed, rank, keep=keep)
        fewer = [m[:, 1:] * 2.0 for m in rows.means]

        def usual(means, mode):
            others = [m.T @ m / len(m) for k, m in enumerate(means) if k != mode]
            return np.prod(others, axis=0)

        told = [pack(np.array([cells * usual(rows.means, mode)] * len(m)))
                for mode, m in enumerate(rows.means)]  # fmt: skip
        found = carry_precisions(told, rows.means, fewer, rows.noise)
        for mode, packed in enumerate(found):
            expected = cells * keep(usual(fewer, mode))
            expected = expected + sure_prior(fewer[mode], rows.noise, keep)
            for one in unpack(packed, rank - 1):
                np.testing.assert_allclose(one, expected, rtol=1e-6)
