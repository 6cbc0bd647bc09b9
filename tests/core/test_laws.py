"""Laws of a step that need no oracle: symmetry, fixed points, repetition, threads."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tensortide as tt
from tensortide.core.steps.rank import lower_rank, raise_rank
from tensortide.core.tensor.factors import Factors, RunningGrams
from tensortide.core.updates import exact as updates
from tests import oracles
from tests.engines import change_of, recipe, run_step
from tests.strategies import Growing, growing_tensors


@pytest.mark.parametrize("economy", [False, True])
@given(case=growing_tensors(max_order=4), seed=st.integers(0, 99))
def test_order_of_records_in_a_batch_is_irrelevant(economy, case, seed):
    cells = list(case.data.items())
    np.random.default_rng(seed).shuffle(cells)
    other = Growing(case.previous, case.new_shape, dict(cells))
    method = recipe(economy=economy, alpha=0.1)
    for a, b in zip(
        *(run_step(c, method, change_of(c, economy=economy)) for c in (case, other)), strict=True
    ):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("economy", [False, True])
@given(case=growing_tensors(max_order=4), seed=st.integers(0, 99))
def test_permuting_old_labels_permutes_rows(economy, case, seed):
    rng = np.random.default_rng(seed)
    places = [
        np.concatenate([rng.permutation(o), np.arange(o, n)])
        for o, n in zip(case.old_shape, case.new_shape, strict=True)
    ]
    moved = Growing(
        [f[np.argsort(p[: len(f)])] for f, p in zip(case.previous, places, strict=True)],
        case.new_shape,
        {tuple(int(p[i]) for p, i in zip(places, c, strict=True)): v for c, v in case.data.items()},
    )
    method = recipe(economy=economy, alpha=0.1, beta=0.01)
    plain = run_step(case, method, change_of(case, economy=economy))
    permuted = run_step(moved, method, change_of(moved, economy=economy))
    for a, b, p in zip(plain, permuted, places, strict=True):
        np.testing.assert_allclose(a, b[p], rtol=1e-8, atol=1e-9)


@given(case=growing_tensors(max_order=4))
def test_economy_step_equals_full_step_on_the_same_entries(case):
    """Local rows with a rest are the same step as all rows at once."""
    results = []
    for economy in (True, False):
        method = tt.gocpte(alpha=0.2, beta=0.01)
        results.append(run_step(case, method, change_of(case, economy=economy)))
    for a, b in zip(*results, strict=True):
        touched = ~np.isnan(a).any(axis=1)
        np.testing.assert_allclose(a[touched], b[touched], rtol=1e-8, atol=1e-9)


@given(case=growing_tensors(max_order=4))
def test_data_that_the_model_explains_are_a_fixed_point(case):
    y = oracles.reconstruct(case.previous)
    data = {c: (float(y[c]), 1.0) for c in oracles.cells_of(case.old_shape)}
    same = Growing(case.previous, case.old_shape, data)
    after = run_step(
        same, recipe(economy=True, alpha=1.0, beta=1e-14), change_of(same, economy=True)
    )
    np.testing.assert_allclose(oracles.reconstruct(after), y, rtol=1e-6, atol=1e-6)


@given(case=growing_tensors())
def test_a_step_does_not_alter_its_inputs(case):
    before = [f.copy() for f in case.previous]
    values, coords = case.values.copy(), case.coords.copy()
    change = change_of(case, economy=True)
    run_step(case, recipe(economy=True), change)
    for a, b in zip(before, case.previous, strict=True):
        np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(values, case.values)
    np.testing.assert_array_equal(coords, case.coords)


def test_running_grams_do_not_drift():
    """Many replacements by rows of very different size leave no trace."""
    rng = np.random.default_rng(0)
    rows = [rng.standard_normal((4, 3)), rng.standard_normal((5, 3))]
    factors = Factors([r.copy() for r in rows])
    everything = tuple(np.arange(len(r)) for r in rows)
    for i in range(20_000):
        scale = 10.0 ** rng.integers(-3, 4)
        work = factors.load(everything, factors.shape, (0, 0))
        rest = factors.grams.minus_upper(work)
        work.stack[:] = (
            scale * rng.standard_normal(work.stack.shape) if i < 19_999 else (np.vstack(rows))
        )
        factors.put(everything, work.rows(), factors.shape, rest.plus(work))
    for matrix, r in zip(factors.grams.matrices(), rows, strict=True):
        np.testing.assert_allclose(matrix, r.T @ r, rtol=1e-13)
    fresh = RunningGrams.of(rows)
    np.testing.assert_allclose(factors.grams.matrices(), fresh.matrices(), rtol=1e-13)


@given(case=growing_tensors(), extra=st.integers(1, 3))
def test_raising_the_rank_keeps_every_value(case, extra):
    rank = case.previous[0].shape[1] + extra
    larger = raise_rank(case.previous, rank, np.random.default_rng(0))
    assert larger[0].shape[1] == rank
    np.testing.assert_allclose(
        oracles.reconstruct(larger), oracles.reconstruct(case.previous), rtol=1e-12, atol=1e-12
    )


def test_lowering_the_rank_of_a_padded_model_loses_nothing():
    rng = np.random.default_rng(5)
    small = [rng.standard_normal((n, 2)) for n in (6, 5, 4)]
    padded = [np.hstack([f, f[:, :1]]) for f in small]  # a component that repeats the first
    lowered, lost = lower_rank(padded, 2)
    np.testing.assert_allclose(oracles.reconstruct(lowered), oracles.reconstruct(padded), atol=1e-5)
    assert lost < 1e-6


def test_lowering_the_rank_says_what_was_lost():
    rng = np.random.default_rng(6)
    rows = [rng.standard_normal((n, 4)) for n in (7, 6, 5)]
    lowered, lost = lower_rank(rows, 2)
    full, less = oracles.reconstruct(rows), oracles.reconstruct(lowered)
    assert lost == pytest.approx(np.linalg.norm(full - less) / np.linalg.norm(full), rel=1e-6)
    truncated = [
        r[:, np.argsort(-np.prod([np.linalg.norm(f, axis=0) for f in rows], axis=0))[:2]]
        for r in rows
    ]
    assert lost < np.linalg.norm(full - oracles.reconstruct(truncated)) / np.linalg.norm(full)


@pytest.mark.parametrize("strategy", ["rows", "imputed"])
def test_number_of_threads_changes_no_bit(monkeypatch, strategy):
    monkeypatch.setattr(updates, "CHUNK_ENTRIES", 500)  # so that blocks are cut into many parts
    truth = tt.simulate.low_rank((30, 25, 40), 3, noise=0.1, seed=1)
    stream = list(tt.simulate.growth(truth, start=0.5, by=10, observed=0.4, seed=1))
    factors = []
    for threads in (1, 2, 3):
        model = tt.OnlineCP(3, tt.gocpt(strategy=strategy), threads=threads)
        model.fit(stream[0], max_sweeps=5)
        for batch in stream[1:]:
            model.update(batch)
        factors.append(model.factors_)
    for other in factors[1:]:
        for a, b in zip(factors[0], other, strict=True):
            np.testing.assert_array_equal(a, b)
