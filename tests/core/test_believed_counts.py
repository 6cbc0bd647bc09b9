"""An economy step of counts with learned priors: three terms at once, against sums over cells.

Old rows hold on to the last model by the divergence of its components, new rows have gamma
priors, and no old row has one.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tensortide.core.losses.standard import loss_for
from tensortide.core.steps.believe import BelievedStep
from tensortide.core.steps.blocks import data_strategy
from tensortide.core.steps.method import with_parts
from tensortide.core.updates.exact import serially
from tensortide.methods.registry import constant
from tests import oracles
from tests import oracles_believed as slow
from tests.believers import beliefs_of, factors_of, some_rows
from tests.core.test_believed_loss import CASES, COUNTS, FEW, expected_loss, gamma_term
from tests.core.test_general import suited
from tests.engines import change_of, recipe

ALPHA = 0.3


def step_of(case, loss, seed, *, absent_zero):
    """Rows before a step, and the step with its objective, new rows at the means of their modes."""
    rows = some_rows(case.previous, seed, noise=0.7)
    plain = recipe(economy=True, alpha=constant(ALPHA))
    method = with_parts(plain, loss_for(loss), None, absent_zero=absent_zero)
    method = replace(method, learned=True)
    touched = method.rows_needed == "touched"
    change = change_of(case, economy=touched, absent_zero=absent_zero, weighted=True)
    factors = factors_of(rows)
    going = BelievedStep(method, factors, change, beliefs_of(rows, factors), serially)
    _, data_terms = data_strategy(method, change)
    goal = going._objective(data_terms, data_terms)
    return rows, going, goal


def rows_now(rows, going):
    """All rows at the moment: those that take part where the step has them."""
    work, found = going.work, []
    for mode, (old, size) in enumerate(zip(rows.means, going.change.new_shape, strict=True)):
        every = np.full((size, old.shape[1]), np.nan)
        every[: len(old)] = old
        where = going.change.positions[mode]
        every[slice(None) if where is None else where] = work.rows()[mode]
        found.append(every)
    return found


def slow_value(rows, going, case, loss, *, absent_zero):
    """The losses of all cells, the divergence from the last model, priors of rows.

    New rows have the prior of their mode, old ones that take part a twentieth of it: what fades.
    """
    zeros = ()
    if absent_zero:
        zeros = oracles.zero_cells(case.data, case.old_shape, case.new_shape, economy=True)
    every = rows_now(rows, going)
    now = slow.Rows(every, [None] * len(every), rows.noise)
    cells = case.data | dict.fromkeys(zeros, (0.0, 1.0))
    total = expected_loss(now, cells, loss, certain=True)
    weight = ALPHA * oracles.anchor(loss, case.data, zeros, by_components=True)
    total += weight * oracles.divergence_of_components(rows.means, every)
    fresh = slow.Rows([new[len(old):] for new, old in zip(every, rows.means, strict=True)],
                      [None] * len(every), rows.noise)  # fmt: skip
    priors = [slow.prior_precision(rows, mode) for mode in range(len(every))]
    centres = [old.mean(axis=0) for old in rows.means]
    total += sum(gamma_term(fresh, priors, centres, m) for m in range(len(every)))
    taking = [
        new[: len(old)] if where is None else new[where[where < len(old)]]
        for new, old, where in zip(every, rows.means, going.change.positions, strict=True)
    ]
    known = slow.Rows(taking, [None] * len(every), rows.noise)
    faded = [0.05 * told for told in priors]
    return total + sum(gamma_term(known, faded, centres, m) for m in range(len(every)))


@COUNTS
@FEW
@given(case=CASES, seed=st.integers(0, 99))
def test_the_objective_of_an_economy_step_is_its_three_terms(loss, absent_zero, case, seed):
    case = suited(case, loss)
    rows, going, goal = step_of(case, loss, seed, absent_zero=absent_zero)
    expected = slow_value(rows, going, case, loss, absent_zero=absent_zero)
    assert goal.value() == pytest.approx(expected, rel=1e-6, abs=1e-6)
    for block in [*going.work.blocks(), *going.work.blocks()]:
        before = expected
        goal.update_rows(block)
        expected = slow_value(rows, going, case, loss, absent_zero=absent_zero)
        assert goal.value() == pytest.approx(expected, rel=1e-6, abs=1e-6)
        assert expected <= before + 1e-7 * (1.0 + abs(before))


@COUNTS
@FEW
@given(case=CASES, seed=st.integers(0, 99))
def test_rows_grow_surer_by_the_counts_they_see(loss, absent_zero, case, seed):
    """What is remembered grows by what cells tell; priors that do not pull are kept besides."""
    case = suited(case, loss)
    _, going, goal = step_of(case, loss, seed, absent_zero=absent_zero)
    before = going.told.copy()
    for block in going.work.blocks():
        goal.update_rows(block)
    told, after = going.remember(goal, goal.misses())
    np.testing.assert_allclose(told, before + goal.gained, rtol=1e-12)
    assert (goal.gained >= 0.0).all()
    assert after.noise >= 0.5 or loss == "gamma"
