"""Rows with learned priors equal their equations on dense tensors, cell by cell."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import oracles
from tests import oracles_believed as slow
from tests.believers import assert_same, run_believed, some_rows, storing
from tests.engines import change_of
from tests.strategies import growing_tensors

KINDS = pytest.mark.parametrize("kind", ["whole", "diagonal"])
ECONOMY = pytest.mark.parametrize("economy", [False, True], ids=["history", "economy"])
CASES = growing_tensors(max_order=4, weighted=True)
FEW = settings(max_examples=25)


@KINDS
@ECONOMY
@FEW
@given(case=CASES, sweeps=st.integers(1, 2), seed=st.integers(0, 99))
def test_a_step_equals_its_equations(economy, kind, case, sweeps, seed):
    """Rows, precisions and noise, with weights; several modes may grow at once."""
    with storing(kind) as keep:
        rows = some_rows(case.previous, seed, keep=keep)
        change = change_of(case, economy=economy, weighted=True)
        options = {"economy": economy, "sweeps": sweeps}
        _, fast = run_believed(rows, change, strategy="rows", **options)
        assert_same(fast, slow.step(rows, case.data, case.new_shape, keep=keep, **options))


@FEW
@given(case=CASES, seed=st.integers(0, 99))
def test_forgetting_fades_what_economy_rows_know(case, seed):
    rows = some_rows(case.previous, seed)
    change = change_of(case, economy=True, weighted=True)
    _, fast = run_believed(rows, change, economy=True, forgetting=0.7, strategy="rows")
    expected = slow.step(rows, case.data, case.new_shape, economy=True, decay=0.7)
    assert_same(fast, expected)


@KINDS
@ECONOMY
@FEW
@given(case=growing_tensors(max_order=3, weighted=True), seed=st.integers(0, 99))
def test_absent_zeros_equal_zeros_that_are_listed(economy, kind, case, seed):
    zeros = oracles.zero_cells(case.data, case.old_shape, case.new_shape, economy=economy)
    with storing(kind) as keep:
        rows = some_rows(case.previous, seed, keep=keep)
        change = change_of(case, economy=economy, absent_zero=True, weighted=True)
        _, fast = run_believed(rows, change, economy=economy)
        expected = slow.step(
            rows, case.data, case.new_shape, economy=economy, keep=keep, zeros=zeros
        )
        assert_same(fast, expected)
