"""What fibres remember is what a model without the mistake would remember."""

from __future__ import annotations

import datetime as dt

import numpy as np
import pytest

import tensortide as tt
from tensortide.core.steps.beliefs import Beliefs

PLACES, FIRST, DAYS, WRONG, PLACE = 20, 40, 58, 1e4, 3


def waves():
    """Series that no rank of two holds: each has its own phase."""
    rng, i = np.random.default_rng(0), np.arange(PLACES)[:, None]
    base = 20.0 + 5.0 * rng.standard_normal((PLACES, 1))
    x = base + 3.0 * np.sin(np.arange(DAYS + 1) / 5.0 + i)
    return x + 0.5 * rng.standard_normal(x.shape)


def run(x, *, typo, mend=None, combine="replace"):
    """A model that learned day by day, with a typing error on the last day and what mended it."""
    model = tt.OnlineCP(2, "gocpt", seed=0, combine=combine).fit(x[:, :FIRST])
    for day in range(FIRST, DAYS):
        column = x[:, day].copy()
        if typo and day == DAYS - 1:
            column[PLACE] = WRONG
        model.update(column)
    cell = np.array([[PLACE, DAYS - 1]])
    if mend == "retract":
        model.update(retract=cell)
    elif mend == "revise":
        model.update(tt.Batch(cell, x[PLACE, DAYS - 1 :][:1]))
    elif mend == "add":
        model.update(tt.Batch(cell, x[PLACE, DAYS - 1 :][:1] - WRONG))
    return model


def fibre(model):
    return model._model.ahead.fibres.recall(
        np.array([[PLACE, DAYS]]), np.array([DAYS]), np.zeros(1, bool)
    )[1][0]


@pytest.mark.parametrize(
    ("mend", "combine"), [("retract", "replace"), ("revise", "replace"), ("add", "add")]
)
def test_what_was_wrong_leaves_no_trace_in_its_fibre(mend, combine):
    x = waves()
    model = run(x, typo=True, mend=mend, combine=combine)
    seen = x[PLACE, : DAYS - (mend == "retract")]
    np.testing.assert_allclose(fibre(model), [seen[-1], seen.mean()], rtol=1e-9)
    found = model.predict(np.array([[PLACE, DAYS - 1]]))[0]
    assert abs(found - x[PLACE, DAYS - 1]) < 5.0


@pytest.mark.parametrize("mend", ["retract", "revise"])
def test_the_next_day_is_foreseen_as_if_nothing_had_been_wrong(mend):
    """All series of that day were bent by it, not only its own."""
    x = waves()
    error = {}
    for typo in (False, True):
        info = run(x, typo=typo, mend=mend).update(x[:, DAYS])
        error[typo] = info.missed / info.norm
    assert error[True] < error[False] + (0.25 if mend == "retract" else 0.02)


def test_a_fibre_whose_only_cell_is_retracted_has_nothing():
    x = waves()
    seen = np.ones((PLACES, FIRST), bool)
    seen[PLACE, : FIRST - 1] = False
    model = tt.OnlineCP(2, "gocpt", seed=0).fit(x[:, :FIRST], mask=seen)
    model.update(retract=np.array([[PLACE, FIRST - 1]]))
    assert np.isnan(fibre(model)).all()


@pytest.mark.parametrize("method", ["gocpt", "gocpte"])
def test_a_day_that_is_retired_leaves_no_trace(method):
    """Its typing error was the newest value of a series."""
    x = waves()
    found = {}
    for typo in (False, True):
        model = tt.OnlineCP(2, method, fibres=True, seed=0).fit(x[:, :FIRST])
        for day in range(FIRST, DAYS):
            column = x[:, day].copy()
            column[PLACE] = WRONG if typo and day == DAYS - 1 else column[PLACE]
            model.update(column)
        model.retire("mode_1", [DAYS - 1])
        found[typo] = model.forecast(1, mode=1).column("value").to_numpy()[PLACE]
    if method == "gocpt":
        assert abs(found[True] - found[False]) < 3.0
    assert abs(found[True] - x[PLACE].mean()) < 0.01 * WRONG


@pytest.mark.parametrize("method", ["gocpt", "gocpte"])
def test_cells_without_weight_are_not_remembered(method):
    x = waves()[:, :FIRST]
    cells, values = np.argwhere(np.ones(x.shape)), x.ravel().copy()
    there = np.ones(len(values))
    wrong = (cells == (PLACE, FIRST - 1)).all(axis=1)
    values[wrong], there[wrong] = WRONG, 0.0
    models = [
        tt.OnlineCP(2, method, fibres=True, seed=0).fit(batch)
        for batch in (
            tt.Batch(cells, values, weights=there),
            tt.Batch(cells[~wrong], values[~wrong], shape=x.shape),
        )
    ]
    fibres = [model._model.ahead.fibres for model in models]
    with_it, without = (f.numbers[f.find(cells[wrong])[0]] for f in fibres)
    np.testing.assert_allclose(with_it[4:], without[4:], rtol=1e-12)  # count, values, label
    np.testing.assert_allclose(with_it[:4], without[:4], atol=1.0)  # residuals of another start


def test_a_cell_that_loses_its_weight_is_forgotten():
    x = waves()[:, :FIRST]
    model = tt.OnlineCP(2, "gocpt", seed=0).fit(x)
    cell = np.array([[PLACE, FIRST - 1]])
    model.update(tt.Batch(cell, x[PLACE, -1:], weights=np.zeros(1)))
    np.testing.assert_allclose(fibre(model), [x[PLACE, -2], x[PLACE, :-1].mean()], rtol=1e-9)


@pytest.mark.parametrize("method", ["gocpt", "gocpte"])
def test_positions_that_close_up_take_the_memory_along(method):
    x = waves()
    models = [tt.OnlineCP(2, method, fibres=True, seed=0).fit(x[:, :50]) for _ in range(2)]
    models[1].retire("mode_1", range(30))
    for day in range(50, DAYS):
        infos = [model.update(x[:, day]) for model in models]
    errors = [info.missed / info.norm for info in infos]
    assert errors[1] < 1.3 * errors[0]


def test_months_are_foreseen_alike_whatever_the_first_data():
    """A single month does not tell that labels are months; fibres stand by dates."""
    rng = np.random.default_rng(0)
    x = np.cumsum(0.2 * rng.standard_normal((30, 56)), axis=1) + 10.0 * rng.standard_normal((30, 1))
    months = [dt.date(2020 + k // 12, k % 12 + 1, 1) for k in range(56)]

    def table(begin, end):
        cells = [
            (f"a{i // 5}", f"b{i % 5}", months[k], x[i, k])
            for k in range(begin, end) for i in range(30)
        ]  # fmt: skip
        return dict(zip(("a", "b", "month", "value"), zip(*cells, strict=True), strict=True))

    errors = []
    for n_first in (1, 12):
        model = tt.OnlineCP(2, "gocpte", modes=["a", "b", "month"], fibres=True, seed=0)
        model.fit(table(0, n_first))
        for k in range(n_first, 50):
            model.update(table(k, k + 1))
        found = model.predict(
            {name: column for name, column in table(50, 56).items() if name != "value"},
            unknown="forecast",
        )
        errors.append(np.linalg.norm(found.reshape(6, 30).T - x[:, 50:]))
    assert errors[0] < 1.3 * errors[1]


def test_series_that_come_once_do_not_judge_the_last_value():
    """Random walks beside ten times as many cells of new series: last values keep their weight."""
    rng = np.random.default_rng(0)
    walks = np.cumsum(rng.standard_normal((30, 8, 60)), axis=2)
    walks += 10.0 * rng.standard_normal((30, 8, 1))
    once = 30
    batches = []
    for day in range(60):
        new = np.column_stack([once + np.arange(600), rng.integers(0, 8, 600), np.full(600, day)])
        once += 600
        known = np.argwhere(rng.random((30, 8, 1)) < 0.25)
        known[:, 2] = day
        values = np.concatenate([walks[tuple(known.T)], 10.0 * rng.standard_normal(600)])
        batches.append((np.concatenate([known, new]), values))
    model = tt.OnlineCP(3, "gocpte", fibres=True, seed=0)
    model.fit(tt.Batch(*(np.concatenate(part) for part in zip(*batches[:10], strict=True))))
    for cells, values in batches[10:]:
        model.update(tt.Batch(cells, values))
    beliefs, last_alone = Beliefs.of_memory(model._model.memory), np.array([[1.0, 0.0]])
    assert beliefs.blended(np.zeros(1), last_alone, known=False)[0] > 0.6
