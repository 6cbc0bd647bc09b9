"""Rows with learned priors equal their equations on dense tensors, cell by cell."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tensortide.core.objective.believed import Believed, RowPriors
from tensortide.core.objective.data_terms import ZeroFilled, imputed, observed_rows
from tensortide.core.steps.believe import invert
from tensortide.core.steps.hyper import mode_precisions
from tensortide.core.steps.learn import Learning
from tensortide.core.tensor import packed
from tensortide.core.tensor.dense_box import DenseBox
from tensortide.core.tensor.workspace import Workspace
from tensortide.core.updates.exact import serially, update_block
from tests import oracles
from tests import oracles_believed as slow
from tests.believers import assert_same, run_believed, some_rows, storing
from tests.engines import change_of, entries_of
from tests.strategies import growing_tensors

KINDS = pytest.mark.parametrize("kind", ["whole", "diagonal"])
ECONOMY = pytest.mark.parametrize("economy", [False, True], ids=["history", "economy"])
CASES = growing_tensors(max_order=4, weighted=True)
FEW = settings(max_examples=50)


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


def all_here(case):
    """The case as if all its rows were known: means of the new shape."""
    rng = np.random.default_rng(len(case.data))
    rank = case.previous[0].shape[1]
    return [rng.standard_normal((n, rank)) for n in case.new_shape]


def believed(case, rows, priors, centres, terms=observed_rows):
    """The fast objective at rows, each mode with a prior of its own."""
    entries = entries_of(case.coords, case.values, case.new_shape, case.weights)
    work = Workspace([0] * len(case.new_shape), case.new_shape, rows.means[0].shape[1])
    work.stack[:] = np.concatenate(rows.means)
    told = np.concatenate([packed.pack(t) for t in rows.told])
    inverses, logs = invert(told, work.rank)
    listed, boxes = terms(work, entries)
    seen = None if terms is observed_rows else observed_rows(work, entries)[0]
    known = RowPriors([c[None] for c in centres], [packed.pack(p)[None] for p in priors])
    outside = np.zeros((work.order, inverses.shape[1]))
    return Believed(
        work, listed, boxes, known, rows.noise, inverses, logs, outside, imputed=seen
    )  # fmt: skip


@KINDS
@FEW
@given(case=CASES, seed=st.integers(0, 99))
def test_the_objective_is_the_variational_bound(kind, case, seed):
    """Before a sweep and after: misses, the model's own variance, the bound; then noise."""
    with storing(kind) as keep:
        rows = some_rows(all_here(case), seed, keep=keep)
        priors = [slow.prior_precision(rows, m, keep) for m in range(len(rows.means))]
        centres = [m.mean(axis=0) for m in rows.means]
        fast = believed(case, rows, priors, centres)
        by_row = [[p] * len(m) for p, m in zip(priors, rows.means, strict=True)]
        around = [[c] * len(m) for c, m in zip(centres, rows.means, strict=True)]
        for swept in (False, True):
            if swept:
                sweep(fast, range(len(rows.means)))
                rows = rows_of(fast, rows, keep)
            own = sum(w * slow.own_variance(rows, c) for c, (_, w) in case.data.items())
            assert fast.own_variance() == pytest.approx(own, rel=1e-7, abs=1e-9)
            assert fast.misses() == pytest.approx(slow.misses(rows, case.data), rel=1e-7)
            expected = slow.free_energy(rows, case.data, by_row, around)
            assert fast.value() == pytest.approx(expected, rel=1e-7, abs=1e-7)


def sweep(fast, modes):
    for block in fast.work.blocks():
        if block.mode in modes:
            update_block(fast, block)


def rows_of(fast, rows, keep):
    """The rows as the fast objective has them now."""
    work = fast.work
    means = [r.copy() for r in work.rows()]
    inverses = [packed.unpack(fast.inverses[work.part(m)], work.rank) for m in range(work.order)]
    return slow.Rows(means, [np.array([*map(np.linalg.inv, v)]) for v in inverses], rows.noise)


@FEW
@given(case=CASES, seed=st.integers(0, 99))
def test_a_row_and_its_covariance_minimise_the_bound_together(case, seed):
    """No equation is asked: any other mean or covariance of the rows of a mode is worse."""
    rng = np.random.default_rng(seed)
    rows = some_rows(all_here(case), seed)
    mode = seed % len(rows.means)
    priors = [slow.prior_precision(rows, m) for m in range(len(rows.means))]
    centres = [m.mean(axis=0) for m in rows.means]
    fast = believed(case, rows, priors, centres)
    sweep(fast, [mode])
    best = rows_of(fast, rows, slow.whole)
    by_row = [[p] * len(m) for p, m in zip(priors, rows.means, strict=True)]
    around = [[c] * len(m) for c, m in zip(centres, rows.means, strict=True)]
    least = slow.free_energy(best, case.data, by_row, around)
    for size in (1e-2, 1.0):
        other = best.copy()
        other.means[mode] += size * rng.standard_normal(other.means[mode].shape)
        assert slow.free_energy(other, case.data, by_row, around) > least
        other = best.copy()
        other.told[mode] *= np.exp(size * rng.standard_normal((len(other.told[mode]), 1, 1)))
        assert slow.free_energy(other, case.data, by_row, around) > least


@KINDS
@FEW
@given(case=CASES, seed=st.integers(0, 99))
def test_imputed_cells_move_rows_and_add_no_certainty(kind, case, seed):
    unweighted = replace(case, data={c: (x, 1.0) for c, (x, _) in case.data.items()})
    with storing(kind) as keep:
        rows = some_rows(all_here(case), seed, keep=keep)
        mode = seed % len(rows.means)
        priors = [slow.prior_precision(rows, m, keep) for m in range(len(rows.means))]
        centres = [m.mean(axis=0) for m in rows.means]
        expected = slow.imputed_rows(
            rows, unweighted.data, case.new_shape, priors[mode], mode, centres[mode]
        )
        fast = believed(unweighted, rows, priors, centres, terms=imputed)
        sweep(fast, [mode])
        found = rows_of(fast, rows, keep)
        for i, (row, told) in enumerate(expected):
            np.testing.assert_allclose(found.means[mode][i], row, rtol=1e-7, atol=1e-9)
            np.testing.assert_allclose(found.told[mode][i], keep(told), rtol=1e-6, atol=1e-9)


@KINDS
@given(
    n=st.integers(1, 6), rank=st.integers(1, 4), seed=st.integers(0, 999),
    size=st.sampled_from([1e-9, 1.0, 1e9]),
)  # fmt: skip
def test_the_prior_of_a_mode_comes_from_sums_over_its_rows(kind, n, rank, seed, size):
    """As few rows as there may be, fewer than components too."""
    with storing(kind) as keep:
        rows = some_rows([size * np.random.default_rng(seed).standard_normal((n, rank))], seed)
        rows.told[0] = np.array([keep(t) for t in rows.told[0] / size**2])
        means, spread = rows.means[0], sum(map(np.linalg.inv, rows.told[0]))
        found = mode_precisions(
            (means.T @ means)[None], means.sum(axis=0)[None], (n,), packed.pack(spread)[None],
            rows.noise,
        )  # fmt: skip
        expected = slow.prior_precision(rows, 0, keep)
        got = packed.unpack(found[0], rank)
        np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-7 * np.abs(expected).max())


@KINDS
@FEW
@given(case=CASES, seed=st.integers(0, 99), absent_zero=st.booleans())
def test_a_sweep_of_the_preparation_equals_its_equations(kind, case, seed, absent_zero):
    """Rows, covariances, priors, noise and the evidence, from the same start."""
    data = dict(case.data)
    if absent_zero:
        zeros = oracles.zero_cells(data, (0,) * len(case.new_shape), case.new_shape, economy=False)
        data |= dict.fromkeys(zeros, (0.0, 1.0))
    entries = entries_of(case.coords, case.values, case.new_shape, case.weights)
    terms = ZeroFilled(outside_old=False) if absent_zero else observed_rows
    with storing(kind) as keep:
        rows = some_rows(all_here(case), seed, keep=keep)
        work = Workspace([0] * len(case.new_shape), case.new_shape, rows.means[0].shape[1])
        work.stack[:] = np.concatenate(rows.means)
        fast = Learning(
            work=work, entries=entries, data_terms=terms, observed=terms, n_cells=len(data),
            size=1.0, square=1.0, run=serially,
        )  # fmt: skip
        fast.guess()
        rows.told = [np.array([1e200 * np.eye(work.rank)] * len(m)) for m in rows.means]  # sure
        rows.noise = slow.misses(rows, data) / len(data)
        priors = [slow.prior_precision(rows, m, keep) for m in range(len(rows.means))]
        centres = [m.mean(axis=0) for m in rows.means]
        for _ in range(2):
            evidence = fast.sweep()
            noise = slow.em_sweep(rows, data, priors, centres, keep, fill=absent_zero)
            expected = slow.evidence(rows, priors, data, noise)
            assert evidence == pytest.approx(expected, rel=1e-6, abs=1e-6)
            rows.noise = noise
        for m, told in enumerate(fast.precisions()):
            np.testing.assert_allclose(work.rows()[m], rows.means[m], rtol=1e-6, atol=1e-8)
            got, prior = packed.unpack(told, work.rank), priors[m]
            gained = got - packed.unpack(fast.told[m], work.rank)
            np.testing.assert_allclose(packed.unpack(fast.told[m][0], work.rank), prior, rtol=1e-5)
            assert (np.linalg.eigvalsh(gained) > -1e-9 * np.abs(gained).max()).all()
        assert fast.noise == pytest.approx(rows.noise, rel=1e-6)


@KINDS
@pytest.mark.parametrize("still", [False, True])
@FEW
@given(case=growing_tensors(max_order=4, complete=True), seed=st.integers(0, 99))
def test_first_data_without_holes_equal_their_cells(kind, still, case, seed):
    """As cells, as a box of which no cell is imputed, and as a block.

    The noise of a block leaves out the model's own variance: exact data stay exact.
    """
    listed = entries_of(case.coords, case.values, case.new_shape)
    block = DenseBox(case.values.reshape(case.new_shape))
    found = []
    with storing(kind):
        for entries, terms in ((listed, observed_rows), (listed, imputed), (block, imputed)):
            rows = all_here(case)
            work = Workspace([0] * len(case.new_shape), case.new_shape, rows[0].shape[1])
            work.stack[:] = np.concatenate(rows)
            learning = Learning(
                work=work, entries=entries, data_terms=terms, observed=observed_rows,
                n_cells=len(case.data), size=1.0, square=1.0, run=serially,
            )  # fmt: skip
            learning.guess()
            learning.sweep(still=still)
            found.append([work.stack, learning.inverses, *learning.told, learning.noise])
    for other, first in zip(found[1] + found[2][:-1], found[0] + found[0][:-1], strict=True):
        np.testing.assert_allclose(other, first, rtol=1e-6, atol=1e-7 * np.abs(first).max())
