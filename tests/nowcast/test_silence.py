"""Report dates without any report: unknown while they last, a backlog afterwards."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import tensortide as tt
from tensortide.nowcast import Nowcaster
from tensortide.nowcast import nowcaster as module
from tensortide.nowcast.silence import lasting, silences, spread_back
from tests.nowcast.examples import START, simulated

FIRST, END = 70, 80  # report days of the holiday; the backlog comes on the day END


def with_holiday(triangle, first=FIRST, end=END):
    """What would have been reported in the holiday is reported on the day after it."""
    report = triangle.dates + triangle.delays
    silent = (report >= first) & (report < end)
    return replace(
        triangle, delays=np.where(silent, end - triangle.dates, triangle.delays)
    ).summed()


def errors(triangle, truth, days):
    """Mean absolute error of the seven newest dates, day by day."""
    nowcaster, found = Nowcaster(2), {}
    for day in range(55, max(days) + 1):
        nowcast = nowcaster.update(triangle.as_of(START + day))
        now = nowcast.quantiles().mean[0, :7]
        found[day] = np.abs(now - truth[day - np.arange(7)]).mean()
    return np.array([found[day] for day in days])


def test_runs_of_silence_are_found_and_told_from_weekends_and_rare_events():
    triangle = simulated(days=110, max_delay=20, rate=60.0, correct=0.0)
    late = with_holiday(triangle)
    assert silences(triangle) == []
    assert silences(late.as_of(START + 90)) == [(FIRST, END)]
    assert silences(with_holiday(triangle, 70, 72).as_of(START + 90)) == []  # a weekend
    now = late.as_of(START + 75)
    assert lasting(now, silences(now)) == 6
    rare = triangle.only(np.arange(len(triangle.counts)) % 400 == 0)
    assert silences(rare) == []


def test_a_backlog_is_spread_over_the_silence_and_nothing_is_lost():
    triangle = simulated(days=110, max_delay=20, rate=60.0, correct=0.0)
    late = with_holiday(triangle).as_of(START + 95)
    mended = spread_back(late, silences(late))
    np.testing.assert_allclose(
        mended.totals(["place"], settled=True), late.totals(["place"], settled=True)
    )
    truth = np.nan_to_num(triangle.as_of(START + 95).by_delay())
    before, after = (np.nan_to_num(t.by_delay()) for t in (late, mended))
    assert np.abs(after - truth).sum() < 0.4 * np.abs(before - truth).sum()


def test_nowcasts_go_through_a_holiday(monkeypatch):
    triangle = simulated(days=110, max_delay=20, rate=60.0, correct=0.0)
    late, truth = with_holiday(triangle), triangle.totals()
    within, after = range(FIRST + 1, END), range(END, END + 12)
    mine = errors(late, truth, [*within, *after])
    monkeypatch.setattr(module, "silences", lambda _: [])
    blind = errors(late, truth, [*within, *after])
    assert mine[: len(within)].mean() < 0.4 * blind[: len(within)].mean()
    assert mine[len(within) :].mean() < 0.4 * blind[len(within) :].mean()


def test_a_triangle_that_is_known_until_later_is_nowcast_from_its_last_report():
    triangle = simulated(days=80, max_delay=12, rate=60.0, correct=0.0)
    view = triangle.as_of(START + 60)
    nowcast = Nowcaster(2).update(view.until(START + 61))
    found = nowcast.quantiles()
    assert found.reported[0, 0] == 0.0
    assert 0.3 < found.mean[0, 0] / triangle.totals()[61] < 3.0
    with pytest.raises(tt.InputError, match="more than the maximum delay of 12 days before"):
        view.until(START + 90)


def test_intervals_know_that_nothing_is_known():
    """In a silence they are wider, hold the truth, and are forgotten afterwards."""
    triangle = simulated(days=110, max_delay=20, rate=60.0, correct=0.0)
    late, truth = with_holiday(triangle), triangle.totals()
    widths, held = {}, []
    nowcaster = Nowcaster(2)
    for day in range(40, 95):
        nowcast = nowcaster.update(late.as_of(START + day))
        found = nowcast.quantiles((0.025, 0.5, 0.975), days=7).values[0]
        widths[day] = (found[0, 2] - found[0, 0]) / found[0, 1]
        if FIRST < day < END:
            sums = np.array([truth[day - h - 6 : day - h + 1].sum() for h in range(10)])
            held.extend((found[:10, 0] <= sums) & (sums <= found[:10, 2]))
    assert np.mean(held) > 0.85
    assert widths[END - 1] > 2.0 * widths[FIRST - 1]
    assert widths[END + 10] < 2.0 * widths[FIRST - 1]


def test_one_stray_report_does_not_end_a_silence():
    triangle = simulated(days=110, max_delay=20, rate=60.0, correct=0.0)
    late = with_holiday(triangle).as_of(START + 78)
    stray = replace(
        late,
        codes=np.concatenate([late.codes, [[0]]]),
        dates=np.append(late.dates, 75),
        delays=np.append(late.delays, 1),
        counts=np.append(late.counts, 1.0),
    )
    assert silences(stray) == silences(late) == [(FIRST, 79)]
    now = [Nowcaster(2).update(t).quantiles().mean[0, :7] for t in (late, stray)]
    np.testing.assert_allclose(now[0], now[1], atol=3.0)


def test_an_epidemic_that_ends_is_no_silence():
    came = [200, 160, 110, 70, 44, 30, 22, 16, 9, 4, 4, 2, 4, 3, 0, 0, 0]
    n = 40
    counts = np.full(n, 200.0)
    counts[-len(came) :] = came
    table = {"date": np.datetime64("2026-01-01") + np.arange(n), "delay": np.zeros(n, int),
             "n": counts}  # fmt: skip
    triangle = tt.nowcast.Triangle.from_table(
        table, reference="date", delay="delay", count="n", max_delay=4
    )
    triangle = replace(triangle, last=triangle.first + n - 1)
    assert silences(triangle) == []


def test_a_backlog_that_comes_after_the_maximum_delay_was_due_within_it():
    triangle = simulated(days=110, max_delay=7, rate=60.0, correct=0.0)
    late = with_holiday(triangle, 70, 84).as_of(START + 95)
    assert late.totals()[70:76].sum() == 0.0
    mended = spread_back(late, silences(late))
    np.testing.assert_allclose(mended.totals()[70:76], triangle.totals()[70:76])
