"""One step of the engine equals the paper's dense formulas, to 1e-10."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tensortide.core.steps.start import start_lower_rows
from tensortide.core.tensor.workspace import Workspace
from tests import oracles
from tests.engines import change_of, entries_of, recipe, run_step
from tests.strategies import Growing, growing_tensors

ALPHAS = st.sampled_from([0.0, 0.01, 0.3, 1.0])
BETAS = st.sampled_from([1e-2, 0.1, 1.0])


def same(fast, slow):
    # A model that the ridge drives to nothing ends in the rule for silent rows (tested elsewhere).
    assume(all(np.abs(b).max() > 1e-6 for b in slow))
    close(fast, slow)


def close(fast, slow):
    for a, b in zip(fast, slow, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("absent_zero", [False, True])
@given(case=growing_tensors(weighted=True), beta=BETAS)
def test_new_rows_start_at_eq_baseline_initialize_lower(absent_zero, case, beta):
    """Also rows that only meet new rows, and rows without any entry."""
    old, new = case.old_shape, case.new_shape
    work = Workspace(old, [n - o for o, n in zip(old, new, strict=True)], case.previous[0].shape[1])
    for mode, rows in enumerate(case.previous):
        work.stack[work.upper_part(mode)] = rows
    means = np.array([rows.mean(axis=0) for rows in case.previous])
    entries = entries_of(case.coords, case.values, new, case.weights)
    start_lower_rows(work, entries, beta, means, absent_zero=absent_zero)
    slow = oracles.start_lower(case.previous, case.data, new, beta, absent_zero=absent_zero)
    close(work.rows(), slow)


@pytest.mark.parametrize("economy", [False, True])
@given(case=growing_tensors(), alpha=ALPHAS, beta=BETAS, sweeps=st.integers(1, 3))
def test_sparse_strategy_equals_eq_sparse_solution(economy, case, alpha, beta, sweeps):
    method = recipe(economy=economy, alpha=alpha, beta=beta, sweeps=sweeps, strategy="rows")
    fast = run_step(case, method, change_of(case, economy=economy))
    slow = oracles.step_rows(case.previous, case.data, case.new_shape, alpha, beta, sweeps=sweeps)
    same(fast, slow)


@pytest.mark.parametrize("economy", [False, True])
@given(case=growing_tensors(weighted=True), alpha=ALPHAS, beta=BETAS)
def test_weights_multiply_the_squares(economy, case, alpha, beta):
    method = recipe(economy=economy, alpha=alpha, beta=beta, strategy="rows")
    fast = run_step(case, method, change_of(case, economy=economy, weighted=True))
    slow = oracles.step_rows(case.previous, case.data, case.new_shape, alpha, beta)
    same(fast, slow)


@pytest.mark.parametrize("economy", [False, True])
@given(case=growing_tensors(), alpha=ALPHAS, beta=BETAS, sweeps=st.integers(1, 3))
def test_dense_strategy_equals_eq_dense_solution(economy, case, alpha, beta, sweeps):
    method = recipe(economy=economy, alpha=alpha, beta=beta, sweeps=sweeps, strategy="imputed")
    fast = run_step(case, method, change_of(case, economy=economy))
    slow = oracles.step_imputed(
        case.previous, case.data, case.new_shape, alpha, beta, sweeps=sweeps
    )
    same(fast, slow)


@pytest.mark.parametrize("economy", [False, True])
@given(
    case=growing_tensors(max_order=4, weighted=True),
    alpha=ALPHAS,
    beta=BETAS,
    sweeps=st.integers(1, 2),
)
def test_absent_zero_equals_listing_the_zeros(economy, case, alpha, beta, sweeps):
    """Every zero cell written out as an entry gives the same step."""
    method = recipe(economy=economy, alpha=alpha, beta=beta, sweeps=sweeps)
    change = change_of(case, economy=economy, absent_zero=True, weighted=True)
    fast = run_step(case, method, change)
    zeros = oracles.zero_cells(case.data, case.old_shape, case.new_shape, economy=economy)
    slow = oracles.step_rows(
        case.previous,
        case.data,
        case.new_shape,
        alpha,
        beta,
        sweeps=sweeps,
        zeros=zeros,
        absent_zero=True,
        full=not economy,
    )
    same(fast, slow)


@given(case=growing_tensors(complete=True), alpha=ALPHAS, beta=BETAS)
def test_strategies_agree_when_everything_is_observed(case, alpha, beta):
    change = change_of(case, economy=False)
    rows, imputed = (
        run_step(case, recipe(economy=False, alpha=alpha, beta=beta, strategy=s), change)
        for s in ("rows", "imputed")
    )
    same(rows, imputed)


def test_paper_ridge_on_a_well_observed_tensor():
    """The paper's beta = 1e-5, growth in two modes at once, enough entries for every row."""
    rng = np.random.default_rng(3)
    shape = (6, 7, 5)
    data = {
        c: (float(rng.standard_normal()), 1.0)
        for c in oracles.cells_of(shape)
        if rng.random() < 0.8
    }
    case = Growing([rng.standard_normal((n, 3)) for n in (5, 7, 4)], shape, data)
    for economy in (False, True):
        method = recipe(economy=economy, alpha=0.2, beta=1e-5, strategy="rows")
        fast = run_step(case, method, change_of(case, economy=economy))
        close(fast, oracles.step_rows(case.previous, data, shape, 0.2, 1e-5))
