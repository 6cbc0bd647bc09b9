"""Equations are the slope of the declared objective, and updates never raise it."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tensortide.core.objective.data_terms import ZeroFilled, imputed, observed_rows
from tensortide.core.objective.equations import NormalEquations
from tensortide.core.objective.squares import BoxTerm, Listed, Objective
from tensortide.core.tensor.workspace import Workspace
from tests import oracles
from tests.engines import change_of, entries_of, recipe, run_step
from tests.strategies import growing_tensors

STRATEGIES = {
    "rows": observed_rows,
    "imputed": imputed,
    "zeros": ZeroFilled(outside_old=False),
    "new zeros": ZeroFilled(outside_old=True),
}


def objective_of(case, strategy, alpha=0.3, beta=0.1, seed=0):
    """The objective of a full step at random rows, with the old model as history."""
    rng = np.random.default_rng(seed)
    old, new = case.old_shape, case.new_shape
    work = Workspace(old, [n - o for o, n in zip(old, new, strict=True)], case.previous[0].shape[1])
    work.stack[:] = rng.standard_normal(work.stack.shape)
    entries = entries_of(case.coords, case.values, new, case.weights)
    listed, boxes = STRATEGIES[strategy](work, entries)
    previous = work.stack.copy()
    for mode, rows in enumerate(case.previous):
        previous[work.upper_part(mode)] = rows
    work.stack[:] = rng.standard_normal(work.stack.shape)
    return Objective(work, listed, [*boxes, BoxTerm(alpha, previous, upper_only=True)], beta)


@pytest.mark.parametrize("strategy", STRATEGIES)
@given(case=growing_tensors(max_order=4, weighted=True), seed=st.integers(0, 99))
def test_equations_give_the_slope_of_the_value(strategy, case, seed):
    objective = objective_of(case, strategy, seed=seed)
    work = objective.work
    for block in work.blocks():
        where = work.stacked(block)
        slope = objective.equations(block).gradient(work.stack[where])
        at = np.random.default_rng(seed).integers(0, slope.size)
        row, column = np.unravel_index(at, slope.shape)
        h, differences = 1e-4, []
        for sign in (1.0, -1.0):
            work.stack[where][row, column] += sign * h
            objective.note_change(block.mode)
            differences.append(sign * objective.value())
            work.stack[where][row, column] -= sign * h
            objective.note_change(block.mode)
        assert sum(differences) / (2 * h) == pytest.approx(slope[row, column], rel=1e-5, abs=1e-5)


@given(case=growing_tensors(max_order=4, weighted=True))
def test_value_equals_the_dense_sum(case):
    objective = objective_of(case, "rows", alpha=0.3, beta=0.1)
    slow = oracles.objective(objective.work.rows(), case.data, case.previous, 0.3, 0.1)
    assert objective.value() == pytest.approx(slow, rel=1e-9)


@pytest.mark.parametrize("economy", [False, True])
@given(case=growing_tensors(max_order=3))
def test_zero_filled_value_equals_the_dense_sum(economy, case):
    objective = objective_of(case, "new zeros" if economy else "zeros")
    zeros = oracles.zero_cells(case.data, case.old_shape, case.new_shape, economy=economy)
    slow = oracles.objective(objective.work.rows(), case.data, case.previous, 0.3, 0.1, zeros=zeros)
    assert objective.value() == pytest.approx(slow, rel=1e-9)


@given(case=growing_tensors(max_order=4, weighted=True))
def test_imputation_lies_above_the_goal_and_touches_it(case):
    """At the rows it starts from it equals the observed objective; anywhere else it is larger."""
    rng = np.random.default_rng(1)
    work = Workspace([0] * len(case.new_shape), case.new_shape, case.previous[0].shape[1])
    work.stack[:] = rng.standard_normal(work.stack.shape)
    entries = entries_of(case.coords, case.values, case.new_shape, case.weights)
    surrogate = Objective(work, *imputed(work, entries), 0.0)
    goal = Objective(work, *observed_rows(work, entries), 0.0)
    assert surrogate.value() == pytest.approx(goal.value(), rel=1e-9)
    work.stack[:] = rng.standard_normal(work.stack.shape)
    for mode in range(work.order):
        surrogate.note_change(mode)
        goal.note_change(mode)
    assert surrogate.value() >= goal.value() * (1 - 1e-9)


@pytest.mark.parametrize("economy", [False, True])
@pytest.mark.parametrize("strategy", ["rows", "imputed"])
@given(
    case=growing_tensors(weighted=True),
    alpha=st.sampled_from([0.0, 0.1, 1.0]),
    sweeps=st.integers(1, 3),
)
def test_objective_never_rises_within_a_step(economy, strategy, case, alpha, sweeps):
    method = recipe(economy=economy, alpha=alpha, beta=1e-3, sweeps=sweeps, strategy=strategy)
    seen = []
    run_step(
        case,
        method,
        change_of(case, economy=economy, weighted=True),
        watch=lambda name, value: seen.append((name, value)),
    )
    for (_, before), (name, after) in pairwise(seen):
        assert after <= before * (1 + 1e-10) + 1e-12, name


@pytest.mark.parametrize("economy", [False, True])
@given(case=growing_tensors(max_order=4, weighted=True))
def test_objective_never_rises_with_absent_zeros(economy, case):
    seen = []
    run_step(
        case,
        recipe(economy=economy, alpha=0.5, beta=1e-3, sweeps=2),
        change_of(case, economy=economy, weighted=True, absent_zero=True),
        watch=lambda name, value: seen.append(value),
    )
    assert all(b <= a * (1 + 1e-10) + 1e-12 for a, b in pairwise(seen))


@given(case=growing_tensors(), cut=st.floats(0, 1))
def test_equations_of_parts_add_up_to_the_whole(case, cut):
    work = Workspace([0] * len(case.new_shape), case.new_shape, case.previous[0].shape[1])
    work.stack[:] = np.random.default_rng(2).standard_normal(work.stack.shape)

    def equations(part, block) -> NormalEquations:
        entries = entries_of(case.coords[part], case.values[part], case.new_shape)
        return Objective(work, Listed.squares(entries), [], 0.0).equations(block)

    middle = int(cut * len(case.data))
    for block in work.blocks():
        whole = equations(slice(None), block)
        both = equations(slice(0, middle), block) + equations(slice(middle, None), block)
        np.testing.assert_allclose(both.gram, whole.gram, rtol=1e-10, atol=1e-12)
        np.testing.assert_allclose(both.rhs, whole.rhs, rtol=1e-10, atol=1e-12)


def test_long_rows_equal_the_plain_sum():
    """Rows of more entries than a vector block, at every rank up to 12, weighted and not."""
    rng = np.random.default_rng(0)
    for rank in range(1, 13):
        coords = np.array(
            [(i, j, k) for i in range(2) for j in range(9) for k in range(9) if rng.random() < 0.9]
        )
        values, weights = rng.standard_normal(len(coords)), rng.random(len(coords))
        for w in (None, weights):
            work = Workspace([0, 0, 0], [2, 9, 9], rank)
            work.stack[:] = rng.standard_normal(work.stack.shape)
            entries = entries_of(coords, values, (2, 9, 9), w)
            got = Objective(work, Listed.squares(entries), [], 0.0).equations(work.blocks()[0])
            gram, rhs = np.zeros((2, rank, rank)), np.zeros((2, rank))
            for c, x, h in zip(
                coords, values, np.ones(len(values)) if w is None else w, strict=True
            ):
                z = oracles.z_row(work.rows(), c, 0)
                gram[c[0]] += h * np.outer(z, z)
                rhs[c[0]] += h * x * z
            np.testing.assert_allclose(got.gram, gram, rtol=1e-10, atol=1e-10)
            np.testing.assert_allclose(got.rhs, rhs, rtol=1e-10, atol=1e-10)
