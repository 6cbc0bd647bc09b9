"""Days of the week that never had a label have no forecast, once enough weeks were seen."""

from __future__ import annotations

import datetime as dt

import numpy as np
import pytest

import tensortide as tt

MONDAY = dt.date(2026, 1, 5)
EXCHANGE, SHOP = range(5), range(6)
FORTNIGHT = dt.timedelta(14)


def days(weeks, opened, without=(), more=()):
    """The dates of whole weeks from a Monday on."""
    found = [MONDAY + dt.timedelta(7 * w + d) for w in range(weeks) for d in opened]
    return sorted({*found, *more} - set(without))


def table(dates):
    size = {"a": 1.0, "b": 2.0, "c": 4.0}
    return {
        "place": [p for _ in dates for p in size],
        "day": [day for day in dates for _ in size],
        "value": [s * (10 + day.weekday() + day.day % 3) for day in dates for s in size.values()],
    }


def ahead(model, steps, place="a"):
    return model.forecast(steps, where={"place": place})["day"].to_pylist()


NEW_YEAR = [MONDAY + dt.timedelta(d) for d in (1, 8)]  # holidays
SATURDAY = MONDAY + dt.timedelta(19)


@pytest.mark.parametrize(
    ("known", "weekdays"),
    [
        (days(5, EXCHANGE), [0, 1, 2, 3, 4, 0]),
        (days(5, EXCHANGE, without=NEW_YEAR), [0, 1, 2, 3, 4, 0]),
        (days(6, EXCHANGE)[:-3], [2, 3, 4, 0, 1, 2]),  # the newest one is a Tuesday
        (days(5, SHOP), [0, 1, 2, 3, 4, 5]),
        (days(5, SHOP)[:-1], [5, 0, 1, 2, 3, 4]),
        (days(6, (0, 2, 4)), [0, 2, 4, 0, 2, 4]),
        (days(4, EXCHANGE), [5, 6, 0, 1, 2, 3]),  # of Saturdays only three have gone by
        (days(6, EXCHANGE, more=[SATURDAY]), [5, 0, 1, 2, 3, 4]),  # was open once
        (days(6, range(7)), [0, 1, 2, 3, 4, 5]),
    ],
)
@pytest.mark.parametrize("begins", [2, 15])
def test_closed_days_are_stepped_over_once_they_are_known(known, weekdays, begins):
    model = tt.OnlineCP(1).fit(table(known[:begins]))
    model.update(table(known[begins:]))
    found = ahead(model, 6)
    assert [day.weekday() for day in found] == weekdays
    assert all(b > a for a, b in zip([known[-1], *found], found, strict=False))
    assert found[-1] - known[-1] <= FORTNIGHT


def test_labels_that_are_not_daily_go_on_in_their_distance():
    known = days(9, EXCHANGE)[::2]
    model = tt.OnlineCP(1).fit(table(known))
    assert np.diff([known[-1], *ahead(model, 5)]).tolist() == [dt.timedelta(2)] * 5


@pytest.mark.parametrize(
    ("method", "fibres"), [("gocpt", None), ("gocpte", None), ("gocpte", True)]
)
def test_the_label_after_closed_days_is_one_step_ahead(method, fibres):
    known = days(6, EXCHANGE)
    model = tt.OnlineCP(2, method, fibres=fibres).fit(table(known[:12]))
    for day in known[12:]:
        model.update(table([day]))
    monday = known[-1] + dt.timedelta(3)
    expected = model.surprise(table([monday]))["expected"].to_pylist()
    assert model.forecast(1)["value"].to_pylist() == pytest.approx(expected, rel=1e-14)


def test_closed_days_can_be_asked_for_by_name():
    known = days(6, EXCHANGE)
    model = tt.OnlineCP(1).fit(table(known))
    saturday, between = known[-1] + dt.timedelta(1), known[-1] - dt.timedelta(5)
    asked = model.forecast([between, saturday], where={"place": "b"})
    assert asked["day"].to_pylist() == [between, saturday]
    assert asked["forecast"].to_pylist() == [True, True]
    assert np.isfinite(asked["value"].to_pylist()).all()
