"""Rows with learned priors under any loss, against sums over cells."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import nnls

from tensortide.core.losses.custom import Custom
from tensortide.core.losses.standard import LOSSES, loss_for
from tensortide.core.objective.believed import Believed, RowPriors, invert
from tensortide.core.objective.squares import Listed
from tensortide.core.objective.towards import GammaPriors
from tensortide.core.penalties.parts import NonNegative, Ridge
from tensortide.core.steps.believed_loss import believed_goal
from tensortide.core.steps.method import with_parts, with_prior
from tensortide.core.tensor import packed
from tensortide.core.tensor.workspace import Workspace
from tensortide.core.updates.exact import update_block
from tensortide.errors import InputError
from tests import oracles
from tests import oracles_believed as slow
from tests.believers import some_rows, storing
from tests.core.test_general import suited
from tests.engines import change_of, entries_of, recipe
from tests.strategies import growing_tensors

FREE = ["huber", "bernoulli"]
POSITIVE = ["poisson", "negative_binomial", "gamma"]
COUNTS = pytest.mark.parametrize(
    ("loss", "absent_zero"),
    [
        (loss, zero)
        for loss in POSITIVE
        for zero in (False, True)
        if (loss, zero) != ("gamma", True)
    ],
)
CASES = growing_tensors(max_order=4, weighted=True)
FEW = settings(max_examples=25)
KINDS = pytest.mark.parametrize("kind", ["whole", "diagonal"])


def prepared(case, loss, seed, keep=slow.whole, *, absent_zero=False):
    """Rows of all labels, a prior for each mode, and the fast objective there."""
    rng = np.random.default_rng(seed)
    rank = case.previous[0].shape[1]
    means = [rng.standard_normal((n, rank)) for n in case.new_shape]
    if loss in POSITIVE:
        means = [np.abs(m) + 0.05 for m in means]
    rows = some_rows(means, seed, noise=0.7, keep=keep)
    priors = [slow.prior_precision(rows, m, keep) for m in range(len(means))]
    centres = [m.mean(axis=0) for m in means]
    method = with_parts(recipe(economy=False), loss_for(loss), None, absent_zero=absent_zero)
    change = change_of(case, economy=False, absent_zero=absent_zero, weighted=True)
    change = replace(change, old_shape=(0,) * len(means))
    work = Workspace([0] * len(means), case.new_shape, rank)
    work.stack[:] = np.concatenate(means)
    inverses, logs = invert(np.concatenate([packed.pack(t) for t in rows.told]), rank)
    told = RowPriors([c[None] for c in centres], [packed.pack(p)[None] for p in priors])
    fast = believed_goal(method, change, work, told, noise=rows.noise, inverses=inverses, logs=logs)
    return rows, priors, centres, fast


def everything(case, *, absent_zero):
    """The cells that count, zeros among them."""
    zeros = ()
    if absent_zero:
        zeros = oracles.zero_cells(case.data, (0,) * len(case.new_shape), case.new_shape,
                                   economy=False)  # fmt: skip
    return case.data | dict.fromkeys(zeros, (0.0, 1.0))


def bend(loss, x, y):
    """Half the curvature of the parabola at y: the weight of the cell."""
    if loss == "huber":
        return 1.0 / max(abs(x - y), 1.0)
    p = 1.0 / (1.0 + np.exp(-y))
    return 0.5 * max(p * (1.0 - p), 0.01)


def expected_loss(rows, cells, loss, *, certain):
    """The losses of all cells and, where rows are not certain, what their spread adds."""
    total = 0.0
    for c, (x, w) in cells.items():
        y = oracles.z_row(rows.means, c, None).sum()
        total += w * oracles.loss_value(loss, x, y)
        if not certain:
            total += w * bend(loss, x, y) * slow.own_variance(rows, c)
    return total


def gamma_term(rows, priors, centres, mode):
    """``2 (b a - k log a)`` in units of the noise: shape k = m^2 / v, rate b = m / v."""
    total = 0.0
    variances = np.diag(np.linalg.inv(priors[mode]))
    for row in rows.means[mode]:
        for a, m, v in zip(row, centres[mode], variances, strict=True):
            total += 2.0 * (m / v * a - m * m / v * np.log(a))
    return total


@pytest.mark.parametrize("loss", FREE)
@KINDS
@FEW
@given(case=CASES, seed=st.integers(0, 99))
def test_the_objective_is_the_bound_with_the_expected_loss(kind, loss, case, seed):
    case = suited(case, loss)
    with storing(kind) as keep:
        rows, priors, centres, fast = prepared(case, loss, seed, keep)
        expected = expected_loss(rows, case.data, loss, certain=False)
        assert fast.misses() == pytest.approx(expected, rel=1e-7)
        by_row = [[p] * len(m) for p, m in zip(priors, rows.means, strict=True)]
        around = [[c] * len(m) for c, m in zip(centres, rows.means, strict=True)]
        expected += slow.free_energy(rows, {}, by_row, around)
        assert fast.value() == pytest.approx(expected, rel=1e-7, abs=1e-7)


@COUNTS
@FEW
@given(case=CASES, seed=st.integers(0, 99))
def test_the_objective_of_counts_has_gamma_priors(loss, absent_zero, case, seed):
    case = suited(case, loss)
    rows, priors, centres, fast = prepared(case, loss, seed, absent_zero=absent_zero)
    cells = everything(case, absent_zero=absent_zero)
    expected = expected_loss(rows, cells, loss, certain=True)
    assert fast.misses() == pytest.approx(expected, rel=1e-7)
    expected += sum(gamma_term(rows, priors, centres, m) for m in range(len(priors)))
    assert fast.value() == pytest.approx(expected, rel=1e-7, abs=1e-7)


@pytest.mark.parametrize("loss", FREE)
@KINDS
@FEW
@given(case=CASES, seed=st.integers(0, 99))
def test_rows_are_as_sure_as_the_parabola_at_the_start_makes_them(kind, loss, case, seed):
    """``P + L`` with the curvature of each cell as its weight; and no update is a step up."""
    case = suited(case, loss)
    with storing(kind) as keep:
        rows, priors, centres, fast = prepared(case, loss, seed, keep)
        for mode in range(len(priors)):
            bent = {}
            for c, (x, w) in case.data.items():
                y = oracles.z_row(rows.means, c, None).sum()
                bent[c] = (x, w * bend(loss, x, y))
            before = checked(rows, case, loss, bent, priors, centres, mode)
            fast.update_rows(next(b for b in fast.work.blocks() if b.mode == mode))
            told = rows.told[mode].copy()
            for i in range(len(told)):
                _, p = slow.solve_row(rows, bent, mode, i, priors[mode], centres[mode])
                told[i] = priors[mode] + keep(p)
            rows.means[mode] = fast.work.rows()[mode].copy()
            rows.told[mode] = told
            found = packed.unpack(fast._known.inverses[fast.work.part(mode)], fast.work.rank)
            np.testing.assert_allclose(
                found, [np.linalg.inv(t) for t in told], rtol=1e-5, atol=1e-9
            )
            after = checked(rows, case, loss, bent, priors, centres, mode)
            assert after <= before + 1e-9 * (1.0 + abs(before))


def checked(rows, case, loss, bent, priors, centres, mode):
    """The losses, the prior of a mode, and what the other modes' spread holds its rows with."""
    total = expected_loss(rows, case.data, loss, certain=True)
    for row in rows.means[mode]:
        total += (row - centres[mode]) @ priors[mode] @ (row - centres[mode])
    for c, (_, weight) in bent.items():
        a, z = rows.means[mode][c[mode]], oracles.z_row(rows.means, c, mode)
        total += weight * a @ (slow.cell_matrix(rows, c, mode) - np.outer(z, z)) @ a
    return total


@COUNTS
@FEW
@given(case=CASES, seed=st.integers(0, 99))
def test_no_update_of_counts_is_a_step_up(loss, absent_zero, case, seed):
    case = suited(case, loss)
    _, _, _, fast = prepared(case, loss, seed, absent_zero=absent_zero)
    before = fast.value()
    for block in [*fast.work.blocks(), *fast.work.blocks()]:
        fast.update_rows(block)
        after = fast.value()
        assert after <= before + 1e-9 * (1.0 + abs(before))
        before = after
        assert (fast.work.stack > 0.0).all()


@FEW
@given(case=CASES, seed=st.integers(0, 99))
def test_lifting_what_is_nothing_adds_next_to_nothing_to_any_row(case, seed):
    """However large a loading is for some cells that is small for most rows of its mode."""
    case = suited(case, "poisson")
    fast = prepared(case, "poisson", seed)[-1]
    work = fast.work
    work.stack *= 10.0 ** np.random.default_rng(seed).uniform(-12.0, 8.0, work.stack.shape)
    for block in work.blocks():
        before, cells = [rows.copy() for rows in work.rows()], fast.entries.coords()
        counts = np.zeros(work.n_rows[block.mode])
        weights = fast.entries.orders[0].weights
        np.add.at(counts, cells[:, block.mode], weights * fast.entries.orders[0].values)
        fast._lift(block)
        rows = work.rows()[block.mode]
        others = [b for m, b in enumerate(before) if m != block.mode]
        reach = np.prod([b[cells[:, m]] for m, b in enumerate(before) if m != block.mode], axis=0)
        added = ((rows - before[block.mode])[cells[:, block.mode]] * reach).sum(axis=1)
        sums = np.zeros(len(rows))
        np.add.at(sums, cells[:, block.mode], weights * added)
        tiny = 1e-23 * np.prod([b.max() for b in others]) * len(cells)
        assert (rows > 0.0).all()
        assert (sums <= 1.001e-6 * work.rank * counts + tiny).all()


@FEW
@given(case=CASES, seed=st.integers(0, 99))
def test_squares_as_a_loss_of_ones_own_move_rows_as_least_squares_do(case, seed):
    """The parabola of squares is the loss itself."""
    own = Custom(lambda x, y: (x - y) ** 2, lambda x, y: 2.0 * (y - x), lambda x, y: 2.0 + 0.0 * x)
    rows, priors, _, fast = prepared(case, own, seed)
    plain = Believed(
        Workspace([0] * len(priors), case.new_shape, fast.work.rank),
        Listed.squares(entries_of(case.coords, case.values, case.new_shape, case.weights)),
        [], fast.priors, rows.noise,
        *invert(np.concatenate([packed.pack(t) for t in rows.told]), fast.work.rank),
        np.zeros((len(priors), fast._known.inverses.shape[1])),
    )  # fmt: skip
    plain.work.stack[:] = fast.work.stack
    for mode in range(len(priors)):
        plain.note_change(mode)
    for block in fast.work.blocks():
        fast.update_rows(block)
        update_block(plain, block)
        np.testing.assert_allclose(fast.work.stack, plain.work.stack, rtol=1e-5, atol=1e-7)
        np.testing.assert_allclose(fast._known.inverses, plain.inverses, rtol=1e-5, atol=1e-8)
    assert fast.misses() == pytest.approx(plain.misses(), rel=1e-6)


@pytest.mark.parametrize("absent_zero", [False, True])
@FEW
@given(case=CASES, seed=st.integers(0, 99))
def test_what_does_not_depend_on_the_model_changes_nothing_but_the_value(absent_zero, case, seed):
    """A loss plus any function of the entry alone has the same rows and the same noise."""
    own = Custom(lambda x, y: (x - y) ** 2, lambda x, y: 2.0 * (y - x), lambda x, y: 2.0 + 0.0 * x)
    more = replace(own, value=lambda x, y: (x - y) ** 2 + np.cos(x) - 40.0)
    plain, shifted = (
        prepared(case, loss, seed, absent_zero=absent_zero)[3] for loss in (own, more)
    )
    cells = everything(case, absent_zero=absent_zero).values()
    shift = sum(w * (np.cos(x) - 40.0) for x, w in cells)
    for block in plain.work.blocks():
        plain.update_rows(block)
        shifted.update_rows(block)
        np.testing.assert_allclose(shifted.work.stack, plain.work.stack, rtol=1e-9, atol=1e-12)
        assert shifted.misses() == pytest.approx(plain.misses(), rel=1e-9)
        assert shifted.value() == pytest.approx(plain.value() + shift, rel=1e-9, abs=1e-6)


@given(seed=st.integers(0, 999), n=st.integers(0, 6))
def test_a_gamma_prior_and_counts_give_the_mean_of_their_posterior(seed, n):
    """Gamma(k, b) and counts x of means a z: (k + sum x) / (b + sum z), with a noise of 1 / 2."""
    rng = np.random.default_rng(seed)
    mean, variance = rng.gamma(2.0, 1.0) + 0.1, rng.gamma(1.0, 1.0) + 0.1
    z, x = rng.gamma(2.0, 1.0, n) + 0.1, rng.poisson(3.0, n).astype(float)
    work = Workspace([0, 0], [1, max(n, 1)], 1)
    a = mean
    told = RowPriors([np.array([[mean]]), np.ones((1, 1))],
                     [np.array([[0.5 / variance]]), np.ones((1, 1))])  # fmt: skip
    pulls = GammaPriors(work, told, None)
    for _ in range(200):  # each time the parabola at hand, and that of the counts
        work.stack[0] = a
        gram, rhs = np.zeros((1, 1, 1)), np.zeros((1, 1))
        pulls.add(0, gram, rhs)
        y = a * z
        h = x / np.maximum(y, 1e-300) ** 2
        gram[0] += 0.5 * (h * z * z).sum()
        rhs[0] += 0.5 * ((h * y - (1.0 - x / y)) * z).sum()
        a = max(0.5 * a, float(rhs[0, 0] / gram[0, 0, 0]))
    shape, rate = mean**2 / variance, mean / variance
    assert a == pytest.approx((shape + x.sum()) / (rate + z.sum()), rel=1e-6)


@FEW
@given(case=CASES, seed=st.integers(0, 99))
def test_rows_that_may_not_be_negative_are_the_best_of_those(case, seed):
    """Non-negative least squares on the root of ``P + L``, row by row."""
    rows = some_rows([np.random.default_rng(seed + m).standard_normal((n, 3))
                      for m, n in enumerate(case.new_shape)], seed)  # fmt: skip
    order = len(rows.means)
    priors = [slow.prior_precision(rows, m) for m in range(order)]
    centres = [m.mean(axis=0) for m in rows.means]
    work = Workspace([0] * order, case.new_shape, 3)
    work.stack[:] = np.concatenate(rows.means)
    inverses, logs = invert(np.concatenate([packed.pack(t) for t in rows.told]), 3)
    told = RowPriors([c[None] for c in centres], [packed.pack(p)[None] for p in priors],
                     nonnegative=[True] * order)  # fmt: skip
    listed = Listed.squares(entries_of(case.coords, case.values, case.new_shape, case.weights))
    fast = Believed(
        work, listed, [], told, rows.noise, inverses, logs, np.zeros((order, inverses.shape[1]))
    )
    update_block(fast, next(b for b in work.blocks() if b.mode == 0))
    for i, row in enumerate(work.rows()[0]):
        free, p = slow.solve_row(rows, case.data, 0, i, priors[0], centres[0])
        if not any(c[0] == i for c in case.data):
            free, p = centres[0], 0.0 * p
        full = p + priors[0]
        root = np.linalg.cholesky(full).T
        best, _ = nnls(root, root @ free)
        np.testing.assert_allclose(row, best, rtol=1e-5, atol=1e-6 * np.abs(best).max() + 1e-12)
        inverse = packed.unpack(fast.inverses[i], 3)
        np.testing.assert_allclose(inverse @ full, np.eye(3), atol=1e-5)  # as sure as if free


@pytest.mark.parametrize("loss", sorted(LOSSES))
def test_non_negative_modes_have_learned_priors_and_other_penalties_the_papers(loss):
    def made(part):
        return with_parts(recipe(economy=True), loss_for(loss), [[part], []], absent_zero=False)

    assert with_prior(made(NonNegative()), None).learned
    assert not with_prior(made(Ridge(1.0)), None).learned
    with pytest.raises(InputError, match="so do penalties other than nonnegative"):
        with_prior(made(Ridge(1.0)), "learned")
