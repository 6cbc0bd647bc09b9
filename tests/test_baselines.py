"""Every baseline equals the slow dense recursion of its paper, over six steps."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import nnls

import tensortide as tt
from tensortide.core.objective.equations import NormalEquations
from tensortide.core.penalties.prox import NonNegative, Penalty
from tensortide.core.tensor.workspace import Block, Workspace
from tensortide.core.updates.admm import Admm
from tests import oracles, oracles_baselines

RIDGE = 1e-3
STEPS = 6


def problem(seed, shape=(5, 4, 12), rank=2, observed=1.0, noise=0.1):
    """A noisy low-rank tensor with NaN holes, and factors near those of its first half."""
    rng = np.random.default_rng(seed)
    truth = [rng.random((n, rank)) + 0.2 for n in shape]
    x = oracles.reconstruct(truth) + noise * rng.standard_normal(shape)
    x[rng.random(shape) >= observed] = np.nan
    first = shape[-1] - STEPS
    start = [f + 0.1 * rng.standard_normal(f.shape) for f in truth]
    start[-1] = start[-1][:first]
    return x, start, [x[..., k] for k in range(first, shape[-1])]


def run(method, x, start, pieces):
    first = x.shape[-1] - len(pieces)
    model = tt.OnlineCP(start[0].shape[1], method, prior="paper")
    model.fit(x[..., :first], init=start, max_sweeps=0)
    for piece in pieces:
        model.update(piece)
    return model


def close(model, slow, tolerance=1e-8):
    for fast, expected in zip(model.factors_, slow, strict=True):
        np.testing.assert_allclose(fast, expected, rtol=tolerance, atol=tolerance)


SHAPES = [(5, 4, 12), (4, 3, 2, 11)]


@pytest.mark.parametrize("shape", SHAPES)
def test_online_cpd(shape):
    x, start, pieces = problem(1, shape)
    slow = oracles_baselines.online_cpd(x[..., :-STEPS], start, pieces, RIDGE)
    close(run(tt.online_cpd(beta=RIDGE), x, start, pieces), slow)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("observed", [1.0, 0.6])
def test_olstec(shape, observed):
    x, start, pieces = problem(2, shape, observed=observed)
    slow = oracles_baselines.olstec(x[..., :-STEPS], start, pieces, 0.8, RIDGE)
    close(run(tt.olstec(0.8, RIDGE), x, start, pieces), slow)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("observed", [1.0, 0.6])
def test_online_sgd(shape, observed):
    x, start, pieces = problem(3, shape, observed=observed)
    slow = oracles_baselines.online_sgd(start, pieces, 0.3, RIDGE)
    close(run(tt.online_sgd(0.3, RIDGE), x, start, pieces), slow)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("observed", [1.0, 0.6])
def test_cp_stream(shape, observed):
    x, start, pieces = problem(4, shape, observed=observed)
    slow = oracles_baselines.cp_stream(start, pieces, 0.9, RIDGE, sweeps=3)
    close(run(tt.cp_stream(0.9, RIDGE, sweeps=3, tol=0.0), x, start, pieces), slow)


@pytest.mark.parametrize("observed", [1.0, 0.6])
def test_mast(observed):
    """Two modes grow at once; each step of the oracle starts from the step before."""
    rng = np.random.default_rng(5)
    shape, rank = (9, 4, 9), 2
    truth = [rng.random((n, rank)) + 0.2 for n in shape]
    x = oracles.reconstruct(truth) + 0.1 * rng.standard_normal(shape)
    x[rng.random(shape) >= observed] = np.nan
    size = 4
    start = [f[:n] + 0.1 for f, n in zip(truth, (size, 4, size), strict=True)]
    options = {"alpha": 0.7, "nuclear": 0.3, "beta": RIDGE, "sweeps": 7, "tol": 0.0}
    model = tt.OnlineCP(rank, tt.mast(**options, eta=0.5, growth=1.2))
    model.fit(x[:size, :, :size], init=start, max_sweeps=0)
    previous = start
    while size < 9:
        new = (size + 1, 4, size + 1)
        cells = {
            tuple(map(int, c)): x[tuple(c)]
            for c in np.argwhere(~np.isnan(x[: size + 1, :, : size + 1]))
            if c[0] == size or c[2] == size
        }
        begun = oracles.start_lower(previous, {c: (v, 1.0) for c, v in cells.items()}, new, RIDGE)
        slow = oracles_baselines.mast(
            previous, begun, cells, 0.7, 0.3, RIDGE, sweeps=7, eta=0.5, growth=1.2
        )
        info = model.update(tt.Batch(list(cells), list(cells.values())))
        close(model, slow)
        assert info.objective == pytest.approx(
            oracles_baselines.mast_objective(slow, previous, cells, 0.7, 0.3, RIDGE)
        )
        previous, size = slow, size + 1


@pytest.mark.parametrize("name", ["rlst", "sdt"])
@pytest.mark.parametrize("forgetting", [1.0, 0.9])
@pytest.mark.parametrize("structured", [False, True])
def test_subspace_trackers(name, forgetting, structured):
    x, start, pieces = problem(6, (5, 4, 14), noise=0.02)
    slow = getattr(oracles_baselines, name)(x[..., :-STEPS], start, pieces, forgetting, structured)
    close(run(getattr(tt, name)(forgetting, structured), x, start, pieces), slow)


@pytest.mark.parametrize("name", ["rlst", "sdt"])
@pytest.mark.parametrize("forgetting", [1.0, 0.9])
@pytest.mark.parametrize(("mode", "structured"), [(0, True), (2, True), (2, False)])
def test_subspace_trackers_recover_a_noiseless_stream(name, forgetting, mode, structured):
    truth = tt.simulate.low_rank((14, 7, 14), 3, seed=2).dense()
    first, rest = np.split(np.moveaxis(truth, mode, 0), [6])
    model = tt.OnlineCP(3, getattr(tt, name)(forgetting, structured))
    model.fit(np.moveaxis(first, 0, mode), tol=1e-14, max_sweeps=5000)
    for piece in rest:
        model.update(piece, mode=mode)
    assert model.score(truth) > 0.999


@pytest.mark.parametrize("observed", [1.0, 0.6])
def test_em_als_decay_is_em_als_on_fading_slices(observed):
    x, start, pieces = problem(7, observed=observed)
    first = x.shape[-1] - STEPS
    model = tt.OnlineCP(2, tt.em_als_decay(0.8, RIDGE, sweeps=2))
    model.fit(x[..., :first], init=start, max_sweeps=0)
    previous = start
    for k, piece in enumerate(pieces, start=first + 1):
        seen = x[..., :k]
        data = {
            tuple(map(int, c)): (seen[tuple(c)], 1.0)
            for c in np.argwhere(~np.isnan(seen))
            if c[2] == k - 1
        }
        begun = oracles.start_lower(previous, data, seen.shape, RIDGE)
        previous = oracles_baselines.em_als_decay(begun, seen, 0.8, RIDGE, 2)
        info = model.update(piece)
        close(model, previous)
        assert info.objective == pytest.approx(
            oracles_baselines.decayed_objective(previous, seen, 0.8, RIDGE)
        )


@pytest.mark.parametrize("observed", [1.0, 0.6])
@pytest.mark.parametrize("name", ["cpc_als", "em_als"])
def test_methods_that_keep_history_follow_the_dense_formulas(name, observed):
    """Section 3.2 on all data so far, without the reconstruction, over six steps."""
    x, previous, pieces = problem(8, observed=observed)
    first = x.shape[-1] - STEPS
    model = tt.OnlineCP(2, getattr(tt, name)(RIDGE))
    model.fit(x[..., :first], init=previous, max_sweeps=0)
    slow_step = {"cpc_als": oracles.step_rows, "em_als": oracles.step_imputed}[name]
    for k, piece in enumerate(pieces, start=first + 1):
        seen = x[..., :k]
        data = {tuple(map(int, c)): (seen[tuple(c)], 1.0) for c in np.argwhere(~np.isnan(seen))}
        previous = slow_step(previous, data, seen.shape, 0.0, RIDGE)
        model.update(piece)
        close(model, previous)


def test_the_non_negative_update_is_non_negative_least_squares():
    """Rows of a block against scipy's active-set solver, also for nearly collinear columns."""
    rng = np.random.default_rng(0)
    for spread in (1.0, 0.05):
        z = 1.0 + spread * rng.random((40, 3))
        truth = np.maximum(rng.standard_normal((6, 3)), 0.0)
        x = truth @ z.T + 0.1 * rng.standard_normal((6, 40))
        work = Workspace([6], [0], 3)
        admm = Admm(Penalty(NonNegative()), work)
        equations = NormalEquations(z.T @ z, x @ z)
        rows = work.stack
        for _ in range(30):  # as many sweeps: the multipliers go on
            rows = admm._within(equations, rows, Block(0, 0, 6, True))
        exact = np.array([nnls(z, row)[0] for row in x])
        gaps = [((x - r @ z.T) ** 2).sum() for r in (rows, exact)]
        assert rows.min() >= 0.0
        assert gaps[0] <= gaps[1] * 1.01


def test_empty_new_slices_start_at_the_mean_whatever_the_decay():
    """Slices that come without a cell are of the size of the others."""
    x = tt.simulate.low_rank((4, 5, 30), 2, seed=0).dense()
    cells = [[i, j, 29] for i in range(4) for j in range(5)]
    for name in ("em_als_decay", "em_als", "mast", "gocpte"):
        method = tt.em_als_decay(0.5) if name == "em_als_decay" else name
        model = tt.OnlineCP(2, method).fit(x[..., :6])
        model.update(tt.Batch(cells, [x[tuple(c)] for c in cells], shape=(4, 5, 30)))
        rows = model.factors_[2]
        empty = np.abs(rows[6:29])
        assert 0.2 < empty.mean() / np.abs(rows[:6]).mean() < 5.0, name


@given(seed=st.integers(0, 10**6), observed=st.sampled_from([0.4, 1.0]))
def test_cpc_als_and_em_als_are_gocpt_without_the_reconstruction(seed, observed):
    """Their steps are those of section 3.2 with alpha = 0."""
    x, start, pieces = problem(seed, observed=observed)
    for method, strategy in ((tt.cpc_als(RIDGE), "rows"), (tt.em_als(RIDGE), "imputed")):
        ours = run(tt.gocpt(alpha=0.0, beta=RIDGE, strategy=strategy), x, start, pieces)
        for a, b in zip(run(method, x, start, pieces).factors_, ours.factors_, strict=True):
            np.testing.assert_array_equal(a, b)


def test_non_negative_cp_stream_has_no_negative_number_and_fits():
    truth = tt.simulate.low_rank((8, 7, 20), 2, kind="nonnegative", noise=0.05, seed=3).dense()
    model = tt.OnlineCP(2, tt.cp_stream(non_negative=True)).fit(truth[..., :8])
    for k in range(8, 20):
        model.update(truth[..., k])
    assert min(f.min() for f in model.factors_) >= 0.0
    assert model.score(truth) > 0.9


@pytest.mark.parametrize("seed", range(6))
def test_a_new_slice_without_entries_keeps_the_constraint(seed):
    """Signed data, so that unconstrained starts are negative; the second of two days is empty."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(5, 4, 8))
    model = tt.OnlineCP(2, tt.cp_stream(non_negative=True)).fit(np.abs(x[..., :6]))
    cells = [(i, j, 6) for i in range(5) for j in range(4)]
    model.update(tt.Batch(cells, [float(x[i, j, 6]) for i, j, _ in cells], shape=(5, 4, 8)))
    assert model.shape_ == (5, 4, 8)
    assert all((factor >= 0.0).all() for factor in model.factors_)


def test_slices_fade_along_the_mode_that_grew_first():
    """A new place later on does not turn ages of days into ages of places."""
    x = tt.simulate.low_rank((9, 3, 7), 2, seed=0, noise=0.3).dense()
    method = tt.em_als_decay(0.5)
    model = tt.OnlineCP(2, method).fit(x[:8, :, :5])
    assert model._model.grown_last == 0  # nothing has grown: the longest
    model.update(x[:8, :, 5])
    assert model._model.grown_last == 2
    place = tt.Batch([(8, j, k) for j in range(3) for k in range(6)],
                     [x[8, j, k] for j in range(3) for k in range(6)])  # fmt: skip
    before = model.copy()
    model.update(place)
    assert model._model.grown_last == 2
    start = [f.copy() for f in before.factors_]
    again = tt.OnlineCP(2, method).fit(x[:8, :, :6], init=start, max_sweeps=0)
    again._model.n_steps, again._model.grown_last = 2, 2
    again.update(place)
    for a, b in zip(model.factors_, again.factors_, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-10)
