"""Forecasts: against a slow one, one step against what is predicted before learning, and words."""

from __future__ import annotations

import datetime as dt

import numpy as np
import pytest
from scipy.optimize import minimize

import tensortide as tt
from tensortide.core.steps.horizons import persistence
from tensortide.core.tensor.packed import unpack
from tensortide.online.horizon import Outlook
from tests.models import fingerprint
from tests.oracles_forecast import SlowForecast

DAYS = 40
DAY0 = dt.date(2026, 1, 1)
KINDS = [("gocpt", None), ("gocpt", False), ("gocpte", None), ("gocpte", True)]


def truth(seed=0, days=DAYS):
    rng = np.random.default_rng(seed)
    time = (
        np.cumsum(rng.normal(size=(days, 2)), axis=0)
        + np.sin(np.arange(days) * 2 * np.pi / 7)[:, None]
    )
    x = np.einsum("ir,jr,tr->ijt", rng.normal(size=(4, 2)), rng.normal(size=(3, 2)), time)
    return x + 0.3 * rng.normal(size=(4, 3, 1)) + 0.1 * rng.normal(size=x.shape)


def records(x, days, label=lambda day: DAY0 + dt.timedelta(day), skip=5):
    cells = [
        (i, j, t) for t in days for i in range(4) for j in range(3) if (3 * i + j + 2 * t) % skip
    ]
    return {
        "place": [f"p{i}" for i, _, _ in cells],
        "kind": [f"k{j}" for _, j, _ in cells],
        "day": [label(t) for *_, t in cells],
        "value": [float(x[cell]) for cell in cells],
    }


def learned(method="gocpt", fibres=None, x=None, days=DAYS - 1, label=None, gap=(), **options):
    x = truth() if x is None else x
    label = label or (lambda day: DAY0 + dt.timedelta(day))
    model = tt.OnlineCP(2, method, fibres=fibres, **options).fit(records(x, range(15), label))
    for day in range(15, days):
        if day not in gap:
            model.update(records(x, [day], label))
    return model


def by_cell(table, value="value"):
    return {(r["place"], r["kind"], r["day"]): r[value] for r in table.to_pylist()}


@pytest.mark.parametrize(("method", "fibres"), KINDS)
def test_one_step_ahead_is_what_is_predicted_before_learning(method, fibres, tmp_path):
    x = truth()
    model = learned(method, fibres, x)
    batch = records(x, [DAYS - 1])
    expected = by_cell(model.surprise(batch), "expected")
    ahead = by_cell(model.forecast(1))
    assert expected == {cell: ahead[cell] for cell in expected}  # bit by bit
    assert len(expected) > 8
    model.save(tmp_path / "m.tide")
    assert tt.load(tmp_path / "m.tide").forecast(3).equals(model.forecast(3))
    values = np.array(
        [expected[p, k, d] for p, k, d in zip(*list(batch.values())[:3], strict=True)]
    )
    missed = np.linalg.norm(values - batch["value"]) / np.linalg.norm(batch["value"])
    assert model.update(batch).prequential_error == pytest.approx(missed)


@pytest.mark.parametrize("mode", [0, 2])
def test_one_step_ahead_of_arrays_whichever_mode_goes_on(mode):
    x = np.moveaxis(truth(), 2, mode)
    first = [slice(None)] * 3
    first[mode] = slice(0, 20)
    model = tt.OnlineCP(2).fit(x[tuple(first)])
    ahead = model.forecast(1, mode)
    names = ["mode_0", "mode_1", "mode_2"]
    batch = np.take(x, [20], axis=mode)
    expected = model.surprise(batch, mode=mode).sort_by([(n, "ascending") for n in names])
    found = ahead.sort_by([(n, "ascending") for n in names])
    np.testing.assert_allclose(found["value"], expected["expected"], rtol=1e-12, atol=1e-12)
    model.update(batch, mode=mode)
    assert model.forecast(1).column(mode)[0].as_py() == 21


def slow(model, label):
    """The slow forecast of a model whose labels are whole numbers."""
    inner = model._model
    line, rows = Outlook(inner, 2).line, inner.rows()
    numbers = inner.modes.labels[2].array().tolist()
    products = {
        (f"p{i}", f"k{j}"): rows[0][inner.modes.positions_of(0, [f"p{i}"])[0]]
        * rows[1][inner.modes.positions_of(1, [f"k{j}"])[0]]
        for i in range(4)
        for j in range(3)
    }
    cells, certain = {}, None
    if inner.store is None:
        told = unpack(inner.factors.precisions()[2], inner.rank)
        certain = dict(zip(numbers, told, strict=True))
    else:
        values = inner.store.entries.all_values()
        for (i, j, t), value in zip(inner.store.entries.coords().tolist(), values, strict=True):
            fibre = inner.modes.labels[0].label(i), inner.modes.labels[1].label(j)
            cells[fibre, numbers[t]] = value
    memory = inner.ahead.fibres is not None
    by_label = dict(zip(numbers, rows[2], strict=True))
    return SlowForecast(cells, by_label, products, line.periods, memory=memory, certain=certain)


@pytest.mark.parametrize(("method", "fibres"), KINDS[:3])
def test_further_ahead_is_what_the_slow_forecast_says(method, fibres):
    model = learned(method, fibres, label=int, gap=(20, 33))
    found, other = by_cell(model.forecast(9)), slow(model, int)
    newest = DAYS - 2
    for horizon in (2, 3, 7, 9):
        for fibre in (("p0", "k1"), ("p3", "k2")):
            value = found[(*fibre, newest + horizon)]
            assert value == pytest.approx(other.value(fibre, newest + horizon), rel=1e-6, abs=1e-9)


@pytest.mark.parametrize("fibres", [None, False])
def test_weights_are_the_best_ones_in_hindsight(fibres):
    """On simplices, by another way to find them."""
    other = slow(learned("gocpt", fibres, label=int), int)
    (mixed, recalling), gram = other.weights(4)
    n, m = len(mixed), len(recalling)

    def missed(both):
        side = np.concatenate([both[:n], -both[n:]])
        return side @ gram @ side

    sums = [{"type": "eq", "fun": lambda both: both[:n].sum() - 1.0}]
    sums += [{"type": "eq", "fun": lambda both: both[n:].sum() - 1.0}] * bool(m)
    start = np.concatenate([np.full(n, 1 / n), np.full(m, 1 / max(m, 1))])
    best = minimize(missed, start, bounds=[(0, 1)] * (n + m), constraints=sums, method="SLSQP",
                    options={"ftol": 1e-14, "maxiter": 1000})  # fmt: skip
    assert missed(np.concatenate([mixed, recalling])) <= 1.02 * best.fun


def test_without_history_memories_fade_towards_the_mean_as_they_did():
    """Economy with fibres: how much of a residual is left after a step is a regression."""
    rng = np.random.default_rng(0)
    missed, recalled = rng.normal(size=(50, 3)), rng.normal(size=(50, 4))
    recalled[:, 0], weights = 0.0, np.array([0.5, 0.2, 0.3])
    missed += 0.6 * recalled[:, 1:2] + 0.4 * recalled[:, 3:]
    both = np.hstack([missed, recalled])
    beyond = recalled[:, 1] - recalled[:, 3]
    slope = np.linalg.lstsq(beyond[:, None], missed @ weights - recalled[:, 3], rcond=None)[0][0]
    assert 0.3 < slope < 0.9
    assert persistence(both.T @ both, weights) == pytest.approx(slope)
    model = learned("gocpte", True)
    ahead, cells = Outlook(model._model, 2), np.array([[0, 0, 0], [3, 2, 0]])
    label = DAY0 + dt.timedelta(DAYS - 2 + 4)
    found = ahead.values(cells, label)
    mixed, recalling = ahead._beliefs.weights_ahead()
    left = persistence(ahead._beliefs.ahead, mixed) ** 3
    known, _ = model._model.ahead.fibres.recall(cells, np.full(2, 2**62), np.zeros(2, bool))
    faded = known[:, 1:3] @ recalling[1:3] * left + known[:, 3] * recalling[1:3].sum() * (1 - left)
    ahead._fibres = None
    rest = found - ahead.values(cells, label)
    np.testing.assert_allclose(rest, faded + known[:, 3] * recalling[3], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(("method", "fibres"), KINDS)
def test_forecasts_are_free_of_scale_and_change_nothing(method, fibres):
    x = truth()
    model, large = learned(method, fibres, x), learned(method, fibres, 2.0**30 * x)
    before = fingerprint(model)
    ahead = model.forecast(70)
    assert fingerprint(model) == before
    values = ahead["value"].to_numpy()
    assert np.isfinite(values).all()
    scaled = large.forecast(70)["value"].to_numpy()
    # rounding moves the weights of candidates that are nearly as good as each other
    np.testing.assert_allclose(scaled / 2.0**30, values, rtol=0.01, atol=0.01 * values.std())


def test_a_season_goes_on():
    """Twelve of the same weeks: the next one is the same."""
    week = np.array([5.0, 6.0, 7.0, 6.0, 5.0, 1.0, 0.5])
    x = np.einsum("i,j,t->ijt", [1.0, 2.0, 3.0, 4.0], [1.0, 2.0, 0.5], np.tile(week, 12))
    ahead = by_cell(learned(x=x, days=84).forecast(10, where={"place": "p1", "kind": ["k1"]}))
    got = [ahead["p1", "k1", DAY0 + dt.timedelta(84 + k)] for k in range(10)]
    np.testing.assert_allclose(got, 4.0 * np.tile(week, 2)[:10], rtol=0.02, atol=0.1)


def some(labels):
    table = {"place": ["a", "b"] * len(labels), "day": [d for d in labels for _ in range(2)]}
    return table | {"value": [1.0 + i for i in range(2 * len(labels))]}


def month_end(month):
    return dt.date(2026 + month // 12, month % 12 + 1, 1) - dt.timedelta(1)


UTC = dt.UTC
LABELS = {
    "days": (
        [dt.date(2026, 2, d) for d in (25, 26, 27)], [dt.date(2026, 2, 28), dt.date(2026, 3, 1)]
    ),
    "weeks": (
        [dt.date(2026, 1, 5) + dt.timedelta(7 * k) for k in range(4)],
        [dt.date(2026, 2, 2), dt.date(2026, 2, 9)],
    ),
    "months": (
        [dt.date(2025, m, 1) for m in (10, 11, 12)], [dt.date(2026, 1, 1), dt.date(2026, 2, 1)]
    ),
    "month ends": ([month_end(m) for m in (10, 11, 12)], [month_end(13), month_end(14)]),
    "quarters": (
        [dt.date(2025, m, 15) for m in (1, 4, 7)], [dt.date(2025, 10, 15), dt.date(2026, 1, 15)]
    ),
    "hours": (
        [dt.datetime(2026, 1, 1, h) for h in (21, 22, 23)],
        [dt.datetime(2026, 1, 2, 0), dt.datetime(2026, 1, 2, 1)],
    ),
    "hours UTC": (
        [dt.datetime(2026, 1, 1, h, tzinfo=UTC) for h in (21, 22, 23)],
        [dt.datetime(2026, 1, 2, 0, tzinfo=UTC), dt.datetime(2026, 1, 2, 1, tzinfo=UTC)],
    ),
    "numbers": ([2000, 2005, 2010, 2015], [2020, 2025]),
}  # fmt: skip


@pytest.mark.parametrize("kind", LABELS)
@pytest.mark.parametrize("begins", [1, 3])
def test_labels_ahead_go_on_as_the_known_ones(kind, begins):
    """Also where the first data had one label only, so that nothing could be counted."""
    known, wanted = LABELS[kind]
    model = tt.OnlineCP(1).fit(some(known[:begins]))
    for label in known[begins:]:
        model.update(some([label]))
    ahead = model.forecast(2)
    assert ahead["day"].to_pylist() == wanted * 2
    assert ahead["forecast"].to_pylist() == [True] * 4
    asked = model.predict(ahead.drop_columns(["value", "forecast"]), unknown="forecast")
    assert asked.tolist() == ahead["value"].to_pylist()
    assert model.forecast(wanted).equals(ahead)


def test_calendars_and_numbers_end():
    model = tt.OnlineCP(1).fit(some([dt.date(9999, 12, d) for d in (28, 29, 30)]))
    assert model.forecast(1)["day"][0].as_py() == dt.date(9999, 12, 31)
    with pytest.raises(tt.InputError, match="2 steps after 9999-12-30 the calendar ends"):
        model.forecast(2)
    model = tt.OnlineCP(1).fit(some([2**63 - 4, 2**63 - 3, 2**63 - 2]))
    with pytest.raises(tt.InputError, match="numbers end"):
        model.forecast(2)


@pytest.mark.parametrize(("method", "fibres"), KINDS)
def test_a_label_between_two_lies_on_the_line_between_their_values(method, fibres):
    model = learned(method, fibres, gap=(20, 21, 22))
    at = [DAY0 + dt.timedelta(d) for d in (19, 20, 22, 23)]
    ahead = model.forecast(at, where={"place": ["p2"], "kind": "k0"})
    low, first, third, high = ahead["value"].to_pylist()
    assert ahead["forecast"].to_pylist() == [False, True, True, False]
    assert first == pytest.approx(0.75 * low + 0.25 * high)
    assert third == pytest.approx(0.25 * low + 0.75 * high)
    cells = {"place": ["p2"] * 4, "kind": ["k0"] * 4, "day": at}
    assert model.predict(cells, unknown="forecast").tolist() == ahead["value"].to_pylist()
    assert model.predict({k: v[:1] for k, v in cells.items()})[0] == low
    with pytest.raises(tt.InputError, match="'day' begins with 2026-01-01, so nothing is known of"):
        model.forecast([DAY0 - dt.timedelta(1)])


def test_rows_are_the_cells_that_were_observed_else_all():
    x = truth()
    table = records(x, range(20))
    keep = [k for k, (p, q) in enumerate(zip(table["place"], table["kind"], strict=True))
            if (p, q) != ("p1", "k1")]  # fmt: skip
    table = {name: [column[k] for k in keep] for name, column in table.items()}
    for method, fibres, cells in [(*kind, 11) for kind in KINDS[:2]] + [
        ("gocpte", True, 11),
        ("gocpte", None, 12),
    ]:
        model = tt.OnlineCP(2, method, fibres=fibres).fit(table)
        ahead = model.forecast(3)
        assert ahead.num_rows == 3 * cells
        assert ahead.column_names == ["place", "kind", "day", "value", "forecast"]
        assert len(by_cell(ahead)) == ahead.num_rows
        fewer = model.forecast(3, where={"place": ["p1", "p3"]})
        assert by_cell(fewer).items() <= by_cell(ahead).items()
        assert fewer.num_rows == 3 * (6 - 12 + cells)
        with pytest.raises(tt.InputError, match=f"{3 * cells} rows; choose.*max_cells above 10"):
            model.forecast(3, max_cells=10)
        with pytest.raises(tt.InputError, match="rows; choose"):
            model.forecast(10**12)
    model = tt.OnlineCP(2).fit(table)
    with pytest.raises(tt.InputError, match="none of the cells that `where` chooses has ever come"):
        model.forecast(1, where={"place": "p1", "kind": "k1"})
    lone = {"place": ["p1"], "kind": ["k1"], "day": [DAY0 + dt.timedelta(20)]}
    assert np.isfinite(model.predict(lone, unknown="forecast")).all()


@pytest.mark.parametrize(
    ("steps", "more", "words"),
    [
        (0, {}, "steps must be a whole number from 1 on, or a list of labels.*not 0"),
        (-3, {}, "not -3"),
        (2.5, {}, "not 2.5"),
        ("7", {}, "not '7'"),
        (None, {}, "not None"),
        (True, {}, "not True"),
        ([], {}, "the list of labels of mode 'day' is empty"),
        (["soon"], {}, "mode 'day' has date labels"),
        (1, {"mode": "week"}, "no mode 'week'; the modes are place, kind, day"),
        (1, {"mode": "place"}, "mode 'place' has text labels.*dates, times or whole numbers"),
        (1, {"where": {"place": "p9"}}, "mode 'place' has no label 'p9'"),
        (1, {"where": {"when": "p9"}}, "no mode 'when'"),
        (1, {"where": {"day": [DAY0]}}, "'day' is the one that is forecast; give its labels"),
        (1, {"where": ["p1"]}, "where must say labels for modes"),
        (1, {"max_cells": 0}, "max_cells must be a whole number from 1 on"),
    ],
)
def test_mistakes_are_sentences(steps, more, words):
    model = tt.OnlineCP(2).fit(records(truth(), range(10)))
    with pytest.raises(tt.InputError, match=words):
        model.forecast(steps, **more)


def test_models_that_see_nothing_ahead_say_what_to_do():
    with pytest.raises(tt.NotFittedError):
        tt.OnlineCP(2).forecast(1)
    table = records(truth(), range(10))
    cell = {name: table[name][:1] for name in ("place", "kind", "day")}
    smooth = {"day": [tt.smooth(1)]}
    for options, words in (
        ({"prior": "paper"}, "made with prior='paper'.*learn the data with prior='learned'"),
        ({"penalties": smooth, "prior": "paper"}, "made with prior='paper'"),
        ({"penalties": smooth}, r"has penalties \(mode 'day'\).*without penalties"),
        (
            {"method": "cpc_als"},
            "method 'cpc_als' is a baseline.*method='gocpt' or method='gocpte'",
        ),
    ):
        model = tt.OnlineCP(2, **options).fit(table)
        for one in (model, model.copy()):
            with pytest.raises(tt.InputError, match=words):
                one.forecast(1)
            with pytest.raises(tt.InputError, match=words):
                one.predict(cell, unknown="forecast")
    words = {"a": ["x", "y"] * 3, "b": ["u", "u", "v", "v", "w", "w"], "value": [1.0] * 6}
    with pytest.raises(tt.InputError, match="none of the modes a and b has dates.*such labels"):
        tt.OnlineCP(1).fit(words).forecast(1)


def test_which_mode_goes_on():
    """Dates before numbers; several of a kind have to be told apart, until one of them grows."""
    model = learned(label=int)
    assert model.forecast(1)["day"][0].as_py() == DAYS - 1
    days = [DAY0 + dt.timedelta(k) for k in range(4)]
    table = {"from": [d for d in days for _ in days], "to": days * 4, "age": [1, 2] * 8}
    table["value"] = [float(k % 5) for k in range(16)]
    several = tt.OnlineCP(1).fit(table)
    with pytest.raises(tt.InputError, match="'from' and 'to' have an order each.*mode='to'"):
        several.forecast(1)
    assert several.forecast(1, "from")["from"][0].as_py() == DAY0 + dt.timedelta(4)
    assert several.forecast(1, "to")["to"][0].as_py() == DAY0 + dt.timedelta(4)
    one = {"from": [DAY0 + dt.timedelta(4)], "to": days[:1], "age": [1], "value": [1.0]}
    several.update(one)
    assert several.forecast(1)["from"][0].as_py() == DAY0 + dt.timedelta(5)
    with pytest.raises(tt.InputError, match="'from' is the one that goes on.*not along 'to'"):
        several.forecast(1, "to")


def test_a_mode_with_the_name_of_a_column_keeps_it():
    table = {"value": ["a", "b"] * 4, "day": [1, 1, 2, 2, 3, 3, 4, 4], "n": [1.0, 2.0] * 4}
    ahead = tt.OnlineCP(1, modes=["value", "day"], value="n").fit(table).forecast(1)
    assert ahead.column_names == ["value", "day", "value_", "forecast"]


def test_no_cells_have_no_values():
    model = learned()
    none = {"place": [], "kind": [], "day": []}
    assert len(model.predict(none)) == len(model.predict(none, unknown="forecast")) == 0


def test_a_run_forecasts_as_its_model(tmp_path):
    x = truth()
    with tt.Tracker.create(tmp_path / "run", 2, modes=["place", "kind", "day"]) as run:
        run.ingest(records(x, range(15)))
        run.ingest(records(x, [15]))
        held = run.model.forecast(5)
    with tt.Tracker.open(tmp_path / "run", read_only=True) as run:
        assert run.model.forecast(5).equals(held)


def test_of_many_cells_some_judge(monkeypatch):
    """The weights come from every second cell, and are about the same."""
    model = learned()
    every = model.forecast(5)["value"].to_numpy()
    monkeypatch.setattr("tensortide.online.past_cells.MOST_JUDGES", 200)
    some = model.forecast(5)["value"].to_numpy()
    assert not np.array_equal(every, some)
    assert np.array_equal(every[::5], some[::5])  # one step ahead is not judged by them
    np.testing.assert_allclose(some, every, rtol=0.2, atol=0.2 * every.std())
