"""Losses, penalties and constraints through the estimator: streams, files, labels, mistakes."""

from __future__ import annotations

import datetime as dt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tensortide as tt

DAYS = np.arange("2026-01-01", "2026-03-01", dtype="datetime64[D]")


def counts(seed=0, rate=0.7, shape=(8, 6, 30), rank=2):
    """A manufactured Poisson tensor: its means and a draw."""
    rng = np.random.default_rng(seed)
    factors = [rng.gamma(1.0, 1.0, (n, rank)) for n in shape]
    mean = rate * np.einsum("ir,jr,kr->ijk", *factors)
    return mean, rng.poisson(mean).astype(float)


def table(x, first, last, *, zeros):
    """The records of some days as a labelled table, with or without its zeros."""
    part = x[:, :, first:last]
    cells = np.argwhere(np.ones_like(part) if zeros else part > 0)
    return {
        "place": np.char.add("p", cells[:, 0].astype(str)),
        "age": cells[:, 1],
        "day": DAYS[cells[:, 2] + first],
        "count": part[tuple(cells.T)],
    }


def error(model, mean, seen):
    """The relative absolute error of the means in cells that were not seen."""
    values = np.einsum("ir,jr,kr->ijk", *model.factors_)
    return np.abs(values - mean)[~seen].sum() / mean[~seen].sum()


def test_poisson_completion_recovers_a_poisson_tensor_better_than_least_squares():
    ratios = []
    for seed in range(10):
        mean, x = counts(seed)
        seen = np.random.default_rng(seed).random(x.shape) < 0.3
        batch = tt.Batch(np.argwhere(seen), x[seen], shape=x.shape)
        positive = {mode: tt.nonnegative() for mode in range(3)}
        poisson = tt.OnlineCP(2, loss="poisson").fit(batch)
        squares = tt.OnlineCP(2, penalties=positive).fit(batch)
        ratios.append(error(poisson, mean, seen) / error(squares, mean, seen))
    assert np.mean(ratios) < 0.92
    assert np.sum(np.array(ratios) < 1.0) >= 8


@pytest.mark.parametrize("prior", ["paper", "learned"])
@pytest.mark.parametrize("loss", ["poisson", "negative_binomial", "squared"])
def test_absent_zeros_are_the_same_as_listed_zeros(loss, prior):
    _, x = counts(1)
    parts = {"place": tt.nonnegative()}
    made = {"rank": 2, "loss": loss, "penalties": parts, "modes": ["place", "age", "day"],
            "value": "count", "prior": prior}  # fmt: skip
    method = tt.gocpt(alpha=0.1) if prior == "paper" else tt.gocpt()
    listed = tt.OnlineCP(**made, method=method).fit(table(x, 0, 20, zeros=True))
    absent = tt.OnlineCP(**made, method=method, absent="zero").fit(
        table(x, 0, 20, zeros=False), init=_aligned(listed, x), max_sweeps=0
    )
    a = listed.update(table(x, 20, 22, zeros=True))
    b = absent.update(table(x, 20, 22, zeros=False))
    assert b.objective == pytest.approx(a.objective, rel=0.02)


@pytest.mark.parametrize("seed", range(4))
def test_with_absent_zeros_sparse_counts_end_as_well_as_with_listed_ones(seed):
    rng = np.random.default_rng(seed)
    mean = np.einsum("ir,jr,kr->ijk", *(rng.gamma(0.5, 0.6, (n, 2)) for n in (15, 10, 20)))
    x = rng.poisson(mean).astype(float)
    x = x[x.sum(axis=(1, 2)) > 0][:, x.sum(axis=(0, 2)) > 0][:, :, x.sum(axis=(0, 1)) > 0]
    listed = tt.OnlineCP(2, loss="poisson", seed=seed).fit(x)
    batch = tt.Batch(np.argwhere(x > 0), x[x > 0], shape=x.shape)
    absent = tt.OnlineCP(2, loss="poisson", absent="zero", seed=seed).fit(batch)
    assert absent.info_.objective < 1.02 * listed.info_.objective
    for mode, rows in enumerate(absent.factors_):
        assert (rows.sum(axis=1) > 0.0).all(), f"a label of mode {mode} with counts is at zero"


def test_rank_one_with_absent_zeros_is_the_product_of_the_margins():
    y = np.array([[30.0, 20, 40, 10, 30, 20], [1, 0, 0, 0, 0, 0]])
    batch = tt.Batch(np.argwhere(y > 0), y[y > 0], shape=y.shape)
    init = [np.array([[5.0], [5.0]]), np.full((6, 1), 5.0)]
    model = tt.OnlineCP(1, tt.gocpt(beta=0.0), loss="poisson", absent="zero", prior="paper")
    model.fit(batch, init=init, tol=1e-12)
    expected = np.outer(y.sum(axis=1), y.sum(axis=0)) / y.sum()
    np.testing.assert_allclose(model.reconstruct(), expected, rtol=1e-5)


def _aligned(model, x):
    """The factors of a model in the order in which the labels of the sparse table appear."""
    sparse = table(x, 0, 20, zeros=False)
    rows = []
    for factor, name in zip(model.factors_, ("place", "age", "day"), strict=True):
        place = {label: k for k, label in enumerate(model.labels_[name].tolist())}
        seen = list(dict.fromkeys(np.asarray(sparse[name]).tolist()))
        rows.append(factor[[place[label] for label in seen]])
    return rows


@pytest.mark.parametrize("method", ["gocpt", "gocpte"])
@pytest.mark.parametrize("absent", ["missing", "zero"])
def test_a_stream_of_counts_is_followed_by_both_objectives(method, absent):
    _, x = counts(2, rate=2.0)
    model = tt.OnlineCP(
        2, method, loss="poisson", absent=absent, modes=["place", "age", "day"], value="count"
    )
    zeros = absent == "missing"
    model.fit(table(x, 0, 15, zeros=zeros))
    for day in range(15, 30):
        info = model.update(table(x, day, day + 1, zeros=zeros))
        assert np.isfinite(info.objective)
    assert all((f >= 0.0).all() for f in model.factors_)
    assert model.score(table(x, 0, 30, zeros=True)) > 0.5


def test_a_label_that_was_all_zero_comes_back_when_counts_arrive():
    made = tt.OnlineCP(1, "gocpte", loss="poisson", absent="zero", modes=["a", "b"], value="n")
    made.fit({"a": ["x", "x", "y"], "b": [1, 2, 1], "n": [4.0, 5.0, 0.0]})
    for day in range(3, 9):
        made.update({"a": ["x", "y"], "b": [day, day], "n": [5.0, 4.0]})
    assert made.predict({"a": ["y"], "b": [8]})[0] > 1.0


def test_smooth_ties_days_in_the_order_of_the_calendar_not_of_arrival():
    rng = np.random.default_rng(3)
    shuffled = rng.permutation(40)
    wave = 5.0 + 4.0 * np.sin(np.arange(40) / 6.0)
    values = wave + rng.normal(0.0, 1.5, (6, 40))
    records = {
        "place": np.repeat([f"p{i}" for i in range(6)], 40),
        "day": np.tile(DAYS[shuffled], 6),
        "value": values[:, shuffled].ravel(),
    }
    errors = {}
    for name, parts in {"rough": None, "smooth": {"day": tt.smooth(weight=1.0)}}.items():
        model = tt.OnlineCP(1, penalties=parts).fit(records)
        fitted = model.predict({"place": ["p0"] * 40, "day": DAYS[:40]})
        errors[name] = np.abs(fitted / fitted.mean() - wave / wave.mean()).mean()
    assert errors["smooth"] < 0.8 * errors["rough"]


def test_a_season_ties_each_day_to_the_same_day_of_the_week_before():
    day = np.arange(28)
    x = np.where(day % 7 >= 5, 1.0, 3.0)[None, :] * np.array([[1.0], [2.0]])
    seen = np.ones_like(x, bool)
    seen[:, 24:] = False  # the last days, a weekend among them, are unknown but listed once
    cells = np.argwhere(seen)
    batch = tt.Batch(cells, x[seen], shape=x.shape)
    model = tt.OnlineCP(1, tt.gocpt(beta=1e-6), penalties={1: tt.smooth(7)}).fit(batch)
    values = model.factors_[0] @ model.factors_[1].T
    np.testing.assert_allclose(values, x, rtol=0.05)


def test_a_random_walk_goes_on_over_a_gap():
    records = {"a": ["p", "q"] * 3, "day": np.repeat(DAYS[[0, 1, 10]], 2), "value": [1.0] * 6}
    model = tt.OnlineCP(1, penalties={"day": tt.smooth()}).fit(records)
    assert model.predict({"a": ["p"], "day": DAYS[[10]]})[0] == pytest.approx(1.0, rel=0.05)


def test_fixed_rows_stay_and_new_ones_are_free():
    _, x = counts(4, rate=3.0)
    made = {"modes": ["place", "age", "day"], "value": "count", "loss": "poisson"}
    model = tt.OnlineCP(2, "gocpt", **made, penalties={"age": tt.fixed([1, 2])})
    model.fit(table(x, 0, 10, zeros=True), init=_start(x))
    before = model.factors_[1]
    np.testing.assert_array_equal(before[1:3], _start(x)[1][1:3])
    model.update(table(x, 10, 12, zeros=True))
    after = model.factors_[1]
    np.testing.assert_array_equal(after[1:3], before[1:3])
    assert (after[0] != before[0]).any()
    whole = tt.OnlineCP(2, "gocpt", **made, penalties={"age": tt.fixed()})
    whole.fit(table(x, 0, 10, zeros=True))
    old = whole.factors_[1]
    whole.update(table(x, 10, 12, zeros=True))
    np.testing.assert_array_equal(whole.factors_[1], old)


def _start(x):
    rng = np.random.default_rng(0)
    return [rng.random((n, 2)) + 0.5 for n in (*x.shape[:2], 10)]


def test_labels_to_fix_may_come_later_or_be_retired(tmp_path):
    _, x = counts(15, rate=3.0)
    parts = {"age": tt.fixed(np.array([1, 99])), "day": tt.fixed([DAYS[3], DAYS[40]])}
    model = tt.OnlineCP(
        2, "gocpt", loss="poisson", modes=["place", "age", "day"], value="count", penalties=parts
    )
    model.fit(table(x, 0, 10, zeros=True))
    row = model.factors_[2][3]
    model.update(table(x, 10, 11, zeros=True))
    np.testing.assert_array_equal(model.factors_[2][3], row)
    model.save(tmp_path / "model")
    twin = tt.load(tmp_path / "model")
    twin.retire("day", [DAYS[3]])
    twin.update(table(x, 11, 12, zeros=True))


@pytest.mark.parametrize("loss", ["poisson", "negative_binomial"])
@pytest.mark.parametrize("method", ["gocpt", "gocpte"])
def test_a_positive_model_of_zeros_learns_again(loss, method):
    _, x = counts(16, rate=3.0)
    model = tt.OnlineCP(1, method, loss=loss, modes=["place", "age", "day"], value="count")
    model.fit(table(np.zeros_like(x), 0, 5, zeros=True))
    for day in range(5, 20):
        model.update(table(x, day, day + 1, zeros=True))
    assert model.predict({"place": ["p0"], "age": [0], "day": DAYS[[19]]})[0] > 0.0
    assert model.info_.learned_error < 0.9


def test_the_objective_does_not_rise_when_a_new_component_meets_an_l1_term(monkeypatch):
    from tensortide.core.steps import goal

    _, x = counts(17, rate=3.0)
    told: list[float] = []
    real = goal.sweep_modes

    def watched(goal_, modes, watch=None):
        real(goal_, modes, lambda _, value: told.append(value))

    model = tt.OnlineCP(2, "gocpt", penalties={1: tt.l1(50.0)}).fit(x[:, :, :20])
    model.change_rank(4)
    monkeypatch.setattr("tensortide.core.steps.blocks.sweep_modes", watched)
    model.update(x[:, :, 20:22])
    assert len(told) == 4
    assert (np.diff(told) <= 1e-9 * np.abs(told[:-1])).all()


def test_a_simplex_mode_holds_a_distribution_per_component():
    _, x = counts(5, rate=3.0)
    model = tt.OnlineCP(
        2, "gocpt", loss="poisson", modes=["place", "age", "day"], value="count",
        penalties={"age": tt.simplex()},
    )  # fmt: skip
    model.fit(table(x, 0, 10, zeros=True))
    model.update(table(x, 10, 12, zeros=True))
    ages = model.factors_[1]
    np.testing.assert_allclose(ages.sum(axis=0), 1.0, atol=1e-6)
    assert (ages >= 0.0).all()


def test_l1_makes_loadings_exactly_zero():
    _, x = counts(6)
    parts = {1: [tt.l1(0.5), tt.nonnegative()]}
    dense = tt.OnlineCP(3, loss="poisson").fit(x)
    sparse = tt.OnlineCP(3, loss="poisson", penalties=parts).fit(x)
    assert (sparse.factors_[1] == 0.0).sum() > (dense.factors_[1] == 0.0).sum()


@pytest.mark.parametrize("prior", ["paper", "learned"])
def test_log_odds_are_predicted_as_probabilities(prior):
    rng = np.random.default_rng(7)
    odds = np.einsum("ir,jr,kr->ijk", *(1.5 * rng.standard_normal((n, 2)) for n in (12, 10, 15)))
    x = (rng.random(odds.shape) < 1.0 / (1.0 + np.exp(-odds))).astype(float)
    method = tt.gocpt(beta=0.05) if prior == "paper" else "gocpt"
    model = tt.OnlineCP(2, method, loss="bernoulli", prior=prior).fit(x)
    cells = np.argwhere(np.ones_like(x))
    p = model.predict(cells)
    assert ((p >= 0.0) & (p <= 1.0)).all()
    assert ((p > 0.5) == (x.ravel() > 0.5)).mean() > 0.7


def test_huber_is_not_moved_by_outliers_as_least_squares_is():
    rng = np.random.default_rng(8)
    truth = np.einsum("ir,jr,kr->ijk", *(rng.standard_normal((n, 1)) for n in (8, 8, 8)))
    x = truth + 0.05 * rng.standard_normal(truth.shape)
    x.flat[rng.choice(x.size, 25, replace=False)] += 30.0
    misses = {}
    for loss in ("squared", tt.losses.Huber(0.3)):
        model = tt.OnlineCP(1, loss=loss).fit(x)
        values = np.einsum("ir,jr,kr->ijk", *model.factors_)
        misses[str(loss)] = np.abs(values - truth).mean()
    assert misses["Huber(delta=0.3)"] < 0.3 * misses["squared"]


def test_any_differentiable_loss_can_be_given():
    _, x = counts(9, rate=2.0)
    own = tt.losses.Custom(lambda x, y: (x - y) ** 2, lambda x, y: 2.0 * (y - x))
    by_slope = tt.OnlineCP(2, loss=own, prior="paper").fit(x, max_sweeps=2000, tol=1e-9)
    exact = tt.OnlineCP(2, prior="paper").fit(x, tol=1e-9)
    assert by_slope.info_.objective == pytest.approx(exact.info_.objective, rel=1e-3)
    with pytest.raises(tt.InputError, match="functions of your own cannot be saved"):
        by_slope.save("never-written")


def test_saved_and_loaded_goes_on_with_the_same_bits(tmp_path):
    _, x = counts(10, rate=2.0)
    model = tt.OnlineCP(
        2, "gocpte", loss=tt.losses.NegativeBinomial(5.0), modes=["place", "age", "day"],
        value="count", penalties={"day": [tt.smooth(7, 0.5), tt.ridge(0.1)], "age": tt.fixed([1])},
    )  # fmt: skip
    model.fit(table(x, 0, 10, zeros=True))
    model.save(tmp_path / "model")
    twin = tt.load(tmp_path / "model")
    assert twin.loss == tt.losses.NegativeBinomial(5.0)
    for day in (10, 11):
        model.update(table(x, day, day + 1, zeros=True))
        twin.update(table(x, day, day + 1, zeros=True))
    for a, b in zip(model.factors_, twin.factors_, strict=True):
        np.testing.assert_array_equal(a, b)


def test_a_tracked_run_keeps_its_loss(tmp_path):
    _, x = counts(11)
    with tt.Tracker.create(
        tmp_path / "run", 2, modes=["place", "age", "day"], value="count", loss="poisson",
        penalties={"day": tt.smooth()},
    ) as run:  # fmt: skip
        run.ingest(table(x, 0, 10, zeros=True))
    with tt.Tracker.open(tmp_path / "run") as run:
        run.ingest(table(x, 10, 11, zeros=True))
        assert run.model.loss == tt.losses.Poisson()
        assert (run.model.factors_[0] >= 0.0).all()


def test_another_rank_stays_non_negative():
    _, x = counts(12, rate=2.0)
    model = tt.OnlineCP(3, loss="poisson").fit(x)
    model.change_rank(4)
    model.update(x[:, :, :2])
    assert all((f >= 0.0).all() for f in model.factors_)
    lost = model.change_rank(2)
    assert 0.0 < lost < 1.0
    assert all((f >= 0.0).all() for f in model.factors_)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"loss": "poison"}, "loss must be one of"),
        ({"loss": 3}, "loss must be one of"),
        ({"penalties": [tt.smooth()]}, "penalties must be a dict"),
        ({"penalties": {"day": "smooth"}}, "must be parts such as"),
        ({"penalties": {"day": [tt.simplex(), tt.l1(1.0)]}}, "does not go with"),
        ({"penalties": {"day": [tt.simplex(), tt.nuclear(1.0)]}}, "one of simplex and nuclear"),
        ({"loss": "poisson", "penalties": {"day": tt.nuclear(1.0)}}, "needs non-negative"),
        ({"loss": "gamma", "absent": "zero"}, "has no zeros"),
        ({"loss": "poisson", "method": "mast"}, "is made for least squares"),
        ({"penalties": {"day": tt.smooth()}, "method": "olstec"}, "is made for least squares"),
        ({"loss": "poisson", "method": tt.gocpte(strategy="imputed")}, "least squares"),
    ],
)
def test_what_does_not_go_together_is_refused_before_any_data(options, words):
    with pytest.raises(tt.InputError, match=words):
        tt.OnlineCP(**{"rank": 2, "method": "gocpte"} | options)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: tt.smooth(0), "period must be"),
        (lambda: tt.smooth(7, -1.0), "weight of smoothness"),
        (lambda: tt.l1(-1.0), "weight of the L1"),
        (lambda: tt.ridge("much"), "weight of the ridge"),
        (lambda: tt.fixed("Berlin"), "must be a list"),
        (lambda: tt.losses.Huber(-1.0), "delta"),
    ],
)
def test_parts_refuse_what_they_cannot_be_made_of(make, words):
    with pytest.raises(tt.InputError, match=words):
        make()


def test_labels_without_a_distance_cannot_be_smooth():
    records = {"place": ["a", "b"], "day": DAYS[:2], "value": [1.0, 2.0]}
    with pytest.raises(tt.InputError, match="mode 'place' has text labels"):
        tt.OnlineCP(1, penalties={"place": tt.smooth()}).fit(records)
    with pytest.raises(tt.InputError, match="no mode 'when'"):
        tt.OnlineCP(1, penalties={"when": tt.smooth()}).fit(records)


def test_a_value_outside_the_loss_leaves_the_model_as_it_was():
    _, x = counts(13)
    model = tt.OnlineCP(2, "gocpte", loss="poisson", modes=["place", "age", "day"], value="count")
    model.fit(table(x, 0, 10, zeros=True))
    before = model.factors_
    bad = table(x, 10, 11, zeros=True)
    bad["count"][3] = -2.0
    with pytest.raises(tt.InputError, match="loss 'poisson' takes values from 0 on"):
        model.update(bad)
    for a, b in zip(before, model.factors_, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("loss", ["poisson", "negative_binomial", "gamma"])
def test_values_as_small_as_what_stands_for_zero_are_refused(loss):
    with pytest.raises(tt.InputError, match="largest value is 8e-09; give the values in a smaller"):
        tt.OnlineCP(1, loss=loss).fit(np.full((3, 3), 8e-9))


@pytest.mark.parametrize("unit", [1.0, 1e-4, 1e4])
def test_a_custom_loss_without_curvature_is_learned_in_any_unit(unit):
    _, x = counts(13)
    loss = tt.losses.Custom(lambda x, y: unit * (x - y) ** 2, lambda x, y: 2.0 * unit * (y - x))
    found, plain = (
        tt.OnlineCP(2, tt.gocpt(beta=0.0), loss=given, prior="paper", seed=1).fit(
            x[:, :, :15], max_sweeps=30
        )
        for given in (loss, "squared")
    )
    for model in (found, plain):
        model.update(x[:, :, 15:])
    assert found.score(x) > plain.score(x) - 0.01


def test_a_custom_loss_keeps_the_curvature_that_it_is_given():
    """Counts by their logarithm: curvatures of rows differ by thousands, and all are learned."""
    rng = np.random.default_rng(4)
    level = np.repeat([1.0, 10.0], [12, 3])
    x = rng.poisson(np.exp(level)[:, None] * np.ones((15, 8))).astype(float)
    loss = tt.losses.Custom(
        lambda x, y: np.exp(y) - x * y, lambda x, y: np.exp(y) - x, lambda x, y: np.exp(y) + 0.0 * x
    )
    start = [level[:, None] + 0.5, np.ones((8, 1))]
    model = tt.OnlineCP(1, tt.gocpt(beta=0.0), loss=loss, prior="paper")
    model.fit(x, init=start, max_sweeps=40)
    rows, columns = model.factors_
    np.testing.assert_allclose(np.exp(rows @ columns.T)[:12].mean(), x[:12].mean(), rtol=0.02)


def test_a_mode_with_no_penalty_is_a_mode_without_one():
    _, x = counts(13)
    plain, listed = (tt.OnlineCP(2, penalties=p).fit(x) for p in (None, {0: []}))
    for a, b in zip(plain.factors_, listed.factors_, strict=True):
        np.testing.assert_array_equal(a, b)


def test_too_many_zeros_for_a_loss_that_has_to_look_at_each_are_refused():
    coords = np.array([[0, 0, 0], [999, 999, 999]])
    batch = tt.Batch(coords, np.array([1.0, 1.0]), shape=(1000, 1000, 1000))
    with pytest.raises(tt.InputError, match=r"look at every zero, 1.0e\+09 cells"):
        tt.OnlineCP(1, loss="bernoulli", absent="zero").fit(batch)


@given(seed=st.integers(0, 2**32 - 1))
@settings(max_examples=10, deadline=None)
def test_the_order_of_records_does_not_matter(seed):
    _, x = counts(14, shape=(4, 3, 6))
    model = tt.OnlineCP(2, loss="poisson", modes=["place", "age", "day"], value="count")
    model.fit(table(x, 0, 5, zeros=True))
    twin, last = model.copy(), table(x, 5, 6, zeros=True)
    order = np.random.default_rng(seed).permutation(len(last["count"]))
    model.update(last)
    twin.update({name: column[order] for name, column in last.items()})
    for a, b in zip(model.factors_, twin.factors_, strict=True):
        np.testing.assert_array_equal(a, b)


def test_dates_may_be_given_as_python_dates():
    records = {"a": ["p", "p"], "day": [dt.date(2026, 1, 1), dt.date(2026, 1, 2)], "value": [1, 2]}
    model = tt.OnlineCP(1, penalties={"day": [tt.smooth(), tt.fixed([dt.date(2026, 1, 1)])]})
    assert model.fit(records).shape_ == (1, 2)


@pytest.mark.parametrize("prior", ["paper", "learned"])
@pytest.mark.parametrize("loss", ["poisson", "gamma"])
@pytest.mark.parametrize("method", ["gocpt", "gocpte"])
def test_counts_in_thousands_are_learned_like_counts(loss, method, prior):
    """These losses know no unit: the anchor to the old model must not either."""
    rng = np.random.default_rng(0)
    mean = np.einsum("ir,jr,kr->ijk", *(rng.gamma(3.0, 1.0, (n, 2)) for n in (6, 5, 14)))
    x = np.maximum(rng.poisson(mean), 1.0)
    # far from equal components, where rounding would decide which way they part
    start = [rng.gamma(3.0, 1.0, (n, 2)) for n in (6, 5, 10)]
    found = []
    for unit in (1.0, 1000.0):
        model = tt.OnlineCP(2, method, loss=loss, prior=prior, seed=1)
        scaled = [unit ** (1 / 3) * f for f in start]
        model.fit(unit * x[:, :, :10], init=scaled, max_sweeps=60, tol=0.0)
        for day in range(10, 14):
            model.update(unit * x[:, :, day : day + 1])
        found.append(model.reconstruct() / unit)
    # The ridge has a unit: beside gamma, which has none at all, it is felt a little.  Counts have
    # one, too, for learned priors: a thousand of them are known better than one.
    tight = loss == "poisson" and prior == "paper"
    np.testing.assert_allclose(found[0], found[1], rtol=1e-4 if tight else 0.05)


def test_an_economy_model_of_large_counts_follows_them():
    """With an anchor as for least squares, a doubling of all counts would be ignored."""
    rng = np.random.default_rng(1)
    place, day = rng.gamma(3.0, 300.0, 8), np.full(20, 1.0)
    model = tt.OnlineCP(1, "gocpte", loss="poisson", modes=["place", "day"], value="n")

    def table(days, size, places=8):
        p, d = np.meshgrid(np.arange(places), days, indexing="ij")
        n = rng.poisson(size * place[p] * day[d % 20])
        return {"place": p.ravel(), "day": d.ravel(), "n": n.ravel().astype(float)}

    model.fit(table(np.arange(10), 1.0))
    before = model.predict({"place": [0], "day": [9]})[0]
    only = {k: v[:1] for k, v in table(np.array([9]), 1.0, 1).items()} | {"n": [2.0 * before]}
    for _ in range(30):  # the same correction again and again
        model.update(only)
    after = model.predict({"place": [0], "day": [9]})[0]
    assert after > 1.3 * before


def test_rows_that_are_given_stay_as_they_are():
    x = np.random.default_rng(2).poisson(3.0, (4, 3, 5)).astype(float)
    init = [np.abs(np.random.default_rng(n).standard_normal((n, 2))) for n in (4, 3, 5)]
    init[0][1] = 0.0
    model = tt.OnlineCP(2, loss="poisson").fit(x, init=init, max_sweeps=0)
    for wanted, found in zip(init, model.factors_, strict=True):
        np.testing.assert_array_equal(wanted, found)
    held = tt.OnlineCP(2, loss="poisson", penalties={0: tt.fixed()}).fit(x, init=init)
    np.testing.assert_array_equal(held.factors_[0], init[0])


def test_smooth_says_when_it_ties_nothing_and_takes_numpy_periods():
    weekly = np.datetime64("2026-01-05") + 7 * np.arange(6)
    table = {
        "place": np.repeat(["a", "b"], 6), "date": np.tile(weekly, 2),
        "n": np.arange(12.0),
    }  # fmt: skip
    parts = {"date": tt.smooth(np.int64(5))}
    model = tt.OnlineCP(1, modes=["place", "date"], value="n", penalties=parts)
    with pytest.warns(tt.TensortideWarning, match=r"smooth\(5\) ties nothing in mode 'date'"):
        model.fit(table)


def test_a_walk_over_weekly_dates_is_tied_as_one_over_days():
    values = np.random.default_rng(3).gamma(3.0, 1.0, (3, 8))
    found = []
    for step in (1, 7):
        dates = np.datetime64("2026-01-05") + step * np.arange(8)
        table = {
            "place": np.repeat(["a", "b", "c"], 8), "date": np.tile(dates, 3), "n": values.ravel(),
        }  # fmt: skip
        parts = {"date": tt.smooth(weight=0.5)}
        model = tt.OnlineCP(1, modes=["place", "date"], value="n", penalties=parts).fit(table)
        found.append(model.reconstruct())
    np.testing.assert_allclose(found[0], found[1])


@pytest.mark.parametrize("prior", ["paper", "learned"])
@pytest.mark.parametrize("method", ["gocpt", "gocpte"])
@pytest.mark.parametrize("loss", ["poisson", "negative_binomial"])
def test_a_step_with_absent_zeros_is_the_step_with_listed_zeros(loss, method, prior):
    """Same start, same data: also the anchor to the old model must weigh the same."""
    rng = np.random.default_rng(4)
    x = rng.poisson(0.4 * np.einsum("i,j,k->ijk", *(rng.gamma(2.0, 0.7, n) for n in (9, 8, 12))))
    x[:, 0], x[0] = 1.0, 1.0  # every label has an entry
    init = [rng.random((n, 1)) + 0.2 for n in (9, 8, 10)]
    made = {"rank": 1, "loss": loss, "modes": ["place", "age", "day"], "value": "count",
            "prior": prior}  # fmt: skip
    # Few sweeps with learned priors: with listed zeros old days stand outside the step and hold the
    # scale of all modes, with zeros of another loss than Poisson's they take part in it.
    how = {"alpha": 0.5, "sweeps": 300} if prior == "paper" else {"sweeps": 5}
    made["method"] = getattr(tt, method)(**how)
    models = [tt.OnlineCP(**made), tt.OnlineCP(**made, absent="zero")]
    for model, zeros in zip(models, (True, False), strict=True):
        model.fit(table(x, 0, 10, zeros=zeros), init=init, max_sweeps=0)
        model.update(table(x, 10, 12, zeros=zeros))
    assert models[0].shape_ == models[1].shape_
    # learned priors rest on what rows know, zeros of Poisson's loss add no curvature, and with
    # zeros of another loss old days take part: a twentieth of the prior draws them to their mean
    apart = 0.12 if (loss, method) == ("negative_binomial", "gocpte") else 0.04
    close = {"atol": 0.02} if prior == "paper" else {"rtol": apart}
    np.testing.assert_allclose(models[0].reconstruct(), models[1].reconstruct(), **close)


def test_an_entry_without_weight_changes_no_bit_of_a_step():
    rng = np.random.default_rng(5)
    x = rng.poisson(3.0, (6, 5, 9)).astype(float)
    found = []
    for odd in (0.0, 1e6):
        model = tt.OnlineCP(2, "gocpte", loss="poisson", seed=0).fit(x[:, :, :8])
        coords = np.argwhere(np.ones((6, 5, 1))) + np.array([0, 0, 8])
        values, weights = x[:, :, 8].ravel().copy(), np.ones(30)
        values[3], weights[3] = odd, 0.0
        model.update(tt.Batch(coords, values, weights=weights))
        found.append(model.factors_)
    for a, b in zip(*found, strict=True):
        np.testing.assert_array_equal(a, b)


def test_fixed_rows_stay_beside_a_simplex():
    x = np.random.default_rng(6).poisson(4.0, (4, 3, 5)).astype(float)
    init = [np.random.default_rng(n).random((n, 2)) + 0.1 for n in (4, 3, 5)]
    parts = {0: tt.fixed(), 1: tt.simplex()}
    model = tt.OnlineCP(2, loss="poisson", penalties=parts).fit(x, init=init)
    np.testing.assert_array_equal(model.factors_[0], init[0])


@pytest.mark.parametrize("part", [None, tt.smooth(7, 1e-9), tt.fixed([0])])
def test_a_slice_without_entries_is_the_mean_whatever_is_said_of_others(part):
    x = 10.0 + np.random.default_rng(7).random((6, 5, 12))
    x[:, :, 5] = np.nan
    model = tt.OnlineCP(1, penalties=None if part is None else {2: part}).fit(x)
    assert model.reconstruct()[:, :, 5].mean() == pytest.approx(np.nanmean(x), rel=0.05)


def test_negative_first_factors_are_refused_where_they_cannot_be():
    x = np.ones((3, 4))
    init = [np.ones((3, 1)), -np.ones((4, 1))]
    with pytest.raises(tt.InputError, match="init has negative loadings in mode 'mode_1'"):
        tt.OnlineCP(1, loss="poisson").fit(x, init=init)


def test_labels_to_fix_may_be_any_kind_of_date_and_must_be_of_the_modes_kind():
    import datetime as dt

    days = [f"2026-01-0{d}" for d in (1, 2, 3)]
    table = {"place": ["a", "b"] * 3, "day": np.repeat(days, 2).astype("M8[D]"),
             "n": np.arange(1.0, 7.0)}  # fmt: skip
    init = [np.ones((2, 1)), np.array([[5.0], [6.0], [7.0]])]
    for label in ("2026-01-02", dt.date(2026, 1, 2), dt.datetime(2026, 1, 2),
                  np.datetime64("2026-01-02", "ns")):  # fmt: skip
        model = tt.OnlineCP(
            1, modes=["place", "day"], value="n", penalties={"day": tt.fixed([label])}
        ).fit(table, init=init)
        assert model.factors_[1][1, 0] == 6.0
        assert model.factors_[1][0, 0] != 5.0
    for wrong in (["x"], [["2026-01-02"]]):
        with pytest.raises(tt.InputError, match="labels are of another kind"):
            tt.OnlineCP(
                1, modes=["place", "day"], value="n", penalties={"day": tt.fixed(wrong)}
            ).fit(table, init=init)


def test_zeros_of_the_old_box_are_not_looked_at(monkeypatch):
    """A new slice costs what it holds, however long the tensor has become."""
    from tensortide.core.objective import regions as zeros

    looked = []
    real = zeros._values
    monkeypatch.setattr(zeros, "_values", lambda r, z: looked.append(len(r) * len(z)) or real(r, z))
    work = []
    for length in (8, 56):
        x = np.random.default_rng(0).poisson(0.5, (4, 5, length + 1)).astype(float)
        made = {"rank": 1, "method": "gocpte", "loss": "negative_binomial", "absent": "zero",
                "modes": ["place", "age", "day"], "value": "count"}  # fmt: skip
        model = tt.OnlineCP(**made).fit(table(x, 0, length, zeros=False), max_sweeps=2, starts=1)
        looked.clear()
        model.update(table(x, length, length + 1, zeros=False))
        work.append(sum(looked))
    assert work[1] < 3 * work[0]


def test_half_is_a_probability_and_no_value_that_a_ridge_has_pressed_down():
    model = tt.OnlineCP(1, loss="bernoulli").fit(np.full((4, 5), 0.5))
    np.testing.assert_allclose(model.predict(np.array([[0, 0]])), 0.5, atol=1e-3)


BROKEN = {
    "must be a function": lambda: tt.losses.Custom(3, 4),
    "must give a number for each entry": lambda: tt.losses.Custom(
        lambda x, y: ((x - y) ** 2).sum(), lambda x, y: 2 * (y - x)
    ),
    "is not finite": lambda: tt.losses.Custom(lambda x, y: x * np.nan, lambda x, y: 2 * (y - x)),
}


@pytest.mark.parametrize("words", BROKEN)
def test_a_custom_loss_that_cannot_work_is_refused(words):
    with pytest.raises(tt.InputError, match=words):
        tt.OnlineCP(1, loss=BROKEN[words]()).fit(np.ones((3, 4)))


def test_a_custom_loss_may_have_one_curvature_for_all():
    x = np.random.default_rng(8).random((5, 6, 9)) + 1.0
    made = tt.losses.Custom(lambda x, y: (x - y) ** 2, lambda x, y: 2 * (y - x), lambda x, y: 2.0)
    found = []
    for loss in (made, tt.losses.Custom(made.value, made.slope), "squared"):
        model = tt.OnlineCP(1, tt.gocpte(alpha=1.0, sweeps=200), loss=loss, prior="paper", seed=0)
        model.fit(x[:, :, :8])
        model.update(x[:, :, 8:])
        found.append(model.reconstruct())
    np.testing.assert_allclose(found[0], found[2], rtol=1e-3)
    np.testing.assert_allclose(found[1], found[2], rtol=1e-2)
