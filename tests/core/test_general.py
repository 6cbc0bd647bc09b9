"""Any loss in the engine: the declared objective, its descent, and where it ends."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tensortide.core.losses.standard import LOSSES, loss_for
from tensortide.core.penalties.parts import L1, NonNegative, Nuclear, Ridge, Simplex, Smooth, Ties
from tensortide.core.steps.alpha import constant
from tensortide.core.steps.method import with_parts
from tests import oracles
from tests.engines import change_of, recipe, run_step
from tests.strategies import Growing, growing_tensors

ALPHA, BETA = 0.3, 0.02
STRONG = 0.5  # a ridge with which the scales of the modes settle in few sweeps


def suited(case: Growing, loss: str, *, nonnegative: bool = False) -> Growing:
    """The same case with values and factors that a loss is defined for."""

    def entry(x: float) -> float:
        if loss == "bernoulli":
            return float(x > 0.0)
        if loss == "gamma":
            return abs(x) + 0.1
        return float(round(3.0 * abs(x))) if loss_for(loss).positive else x

    positive = nonnegative or loss_for(loss).positive
    return Growing(
        [np.abs(f) + 0.05 for f in case.previous] if positive else case.previous,
        case.new_shape,
        {cell: (entry(x), w) for cell, (x, w) in case.data.items()},
    )


def method_for(loss, parts, *, economy, absent_zero, order, sweeps=1, beta=BETA):
    plain = recipe(economy=economy, alpha=constant(ALPHA), beta=beta, sweeps=sweeps)
    per_mode = None if parts is None else [parts, *([] for _ in range(order - 1))]
    return with_parts(plain, loss_for(loss), per_mode, absent_zero=absent_zero)


def in_all_rows(case, economy, method):
    """Whether a step of this method works on all rows, as the model would decide."""
    return economy and method.rows_needed == "touched"


@pytest.mark.parametrize("loss", sorted(LOSSES))
@pytest.mark.parametrize("absent_zero", [False, True])
@given(case=growing_tensors(max_order=4, weighted=True), economy=st.booleans(), l1=st.booleans())
@settings(max_examples=12)
def test_the_objective_is_the_declared_one_and_no_update_raises_it(
    loss, absent_zero, case, economy, l1
):
    if loss == "gamma" and absent_zero:
        return  # refused: gamma has no zeros
    case = suited(case, loss)
    parts = [Ridge(0.1), L1(0.2)] if l1 else [Ridge(0.1)]
    order = len(case.new_shape)
    method = method_for(
        loss, parts, economy=economy, absent_zero=absent_zero, order=order, sweeps=3
    )
    touched = in_all_rows(case, economy, method)
    change = change_of(case, economy=touched, absent_zero=absent_zero, weighted=True)
    told: list[float] = []
    rows = run_step(case, method, change, lambda _, value: told.append(value))
    by_components = economy and loss_for(loss).positive
    growing = sum(n > o for n, o in zip(case.new_shape, case.old_shape, strict=True))
    assert len(told) == 3 * (order + 1) + by_components * (growing + 1)
    for before, after in pairwise(told):
        assert after <= before + 1e-10 * (1.0 + abs(before))
    zeros = ()
    if absent_zero:
        zeros = oracles.zero_cells(case.data, case.old_shape, case.new_shape, economy=economy)
    if touched:  # new labels without an entry do not take part
        seen = [set(case.coords[:, m]) | set(range(n)) for m, n in enumerate(case.old_shape)]
        if any(len(s) < n for s, n in zip(seen, case.new_shape, strict=True)):
            return
        idle = sorted(set(range(case.old_shape[0])) - set(case.coords[:, 0]))
        extra = sum(0.1 * (rows[0][i] ** 2).sum() for i in idle)
    else:
        extra = 0.0
    alpha = ALPHA * oracles.anchor(loss, case.data, zeros, by_components=by_components)
    expected = oracles.general_objective(
        rows, case.data, case.previous, alpha, BETA, loss, zeros=zeros, ridge=0.1, l1=0.2 * l1,
        by_components=by_components,
    )  # fmt: skip
    assert told[-1] == pytest.approx(expected - extra, rel=1e-8, abs=1e-7)


def converged(case, loss, parts, ties=(), absent_zero=False):
    """The rows of a full-history step after many sweeps."""
    order = len(case.new_shape)
    method = method_for(
        loss, parts, economy=False, absent_zero=absent_zero, order=order, sweeps=400, beta=STRONG
    )
    method = replace(method, stop=1e-14)
    change = change_of(case, economy=False, absent_zero=absent_zero, weighted=True)
    return run_step(case, method, replace(change, ties=ties))


def slopes(rows, value):
    """Central differences of a function of all rows, factor by factor."""
    found = []
    for factor in rows:
        slope = np.empty_like(factor)
        for at in np.ndindex(*factor.shape):
            step, kept = 1e-5, factor[at]
            factor[at] = kept + step
            up = value(rows)
            factor[at] = kept - step
            slope[at] = (up - value(rows)) / (2.0 * step)
            factor[at] = kept
        found.append(slope)
    return found


def whole_case(loss, seed=0, shape=(4, 3, 5), nonnegative=False) -> Growing:
    rng = np.random.default_rng(seed)
    previous = [rng.standard_normal((n, 2)) for n in shape]
    cells = [c for c in np.ndindex(*shape) if rng.random() < 0.8]
    data = {c: (float(rng.standard_normal()), 1.0 + (i % 3)) for i, c in enumerate(cells)}
    return suited(Growing(previous, shape, data), loss, nonnegative=nonnegative)


@pytest.mark.parametrize("loss", sorted(LOSSES))
@pytest.mark.parametrize("absent_zero", [False, True])
def test_the_end_satisfies_the_optimality_conditions(loss, absent_zero):
    if loss == "gamma" and absent_zero:
        pytest.skip("gamma has no zeros: the pair is refused")
    case = whole_case(loss)
    rows = converged(case, loss, None, absent_zero=absent_zero)
    zeros = ()
    if absent_zero:
        zeros = oracles.zero_cells(case.data, case.old_shape, case.new_shape, economy=False)
    alpha = ALPHA * oracles.anchor(loss, case.data, zeros)

    def value(factors):
        return oracles.general_objective(
            factors, case.data, case.previous, alpha, STRONG, loss, zeros=zeros
        )

    for factor, slope in zip(rows, slopes(rows, value), strict=True):
        if loss_for(loss).positive:  # at the border the slope points outwards
            inner = factor > 1e-4
            assert (factor >= 0.0).all()
            assert np.abs(slope[inner]).max(initial=0.0) < 1e-3
            assert slope[~inner].min(initial=0.0) > -1e-3
        else:
            assert np.abs(slope).max() < 1e-3


def test_non_negative_and_smooth_factors_satisfy_their_optimality_conditions():
    case = whole_case("squared", seed=2, shape=(6, 3, 4), nonnegative=True)
    pairs = np.array([(i, i - 1) for i in range(1, 6)])
    empty = Ties()
    ties = (Ties(pairs, np.full(5, 0.7)), empty, empty)
    rows = converged(case, "squared", [NonNegative(), Smooth(1, 0.7)], ties)
    smooth = [(0, i, j, 0.7) for i, j in pairs.tolist()]

    def value(factors):
        return oracles.general_objective(
            factors, case.data, case.previous, ALPHA, STRONG, "squared", smooth=smooth
        )

    found = slopes(rows, value)
    assert (rows[0] >= 0.0).all()
    assert (rows[0] == 0.0).any(), "the case has an active constraint"
    assert np.abs(found[0][rows[0] > 0.0]).max() < 1e-4
    assert found[0][rows[0] == 0.0].min() > -1e-4
    assert np.abs(found[1]).max() < 1e-4


@pytest.mark.parametrize("part", [Simplex(), Nuclear(0.4)])
def test_a_penalty_of_a_whole_factor_ends_where_no_nearby_factor_is_better(part):
    case = whole_case("squared", seed=3, nonnegative=True)
    rows = converged(case, "squared", [part])
    rng = np.random.default_rng(0)

    def value(factors):
        bare = oracles.general_objective(
            factors, case.data, case.previous, ALPHA, STRONG, "squared"
        )
        if isinstance(part, Nuclear):
            bare += 0.4 * np.linalg.svd(factors[0], compute_uv=False).sum()
        return bare

    if isinstance(part, Simplex):
        np.testing.assert_allclose(rows[0].sum(axis=0), 1.0, atol=1e-9)
        assert (rows[0] >= 0.0).all()
    best = value(rows)
    for size in (1e-3, 1e-2, 1e-1):
        for _ in range(40):
            other = rows[0] + size * rng.standard_normal(rows[0].shape)
            if isinstance(part, Simplex):
                other = np.abs(other) / np.abs(other).sum(axis=0)
            assert value([other, *rows[1:]]) >= best - 1e-6
