"""The nowcaster: streaming, sums, intervals, early days, zeros, gaps, strata that join."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace

import numpy as np
import pytest

import tensortide as tt
from tensortide.nowcast import Nowcaster, Triangle
from tensortide.nowcast.intervals import Spread, Today, spreads, sum_windows
from tensortide.nowcast.ladders import BASELINES, HazardLadder
from tensortide.nowcast.nowcast import Nowcast
from tests.nowcast.examples import START, simulated, without_strata


def followed(triangle: Triangle, nowcaster: Nowcaster, first: int, last: int) -> Nowcast:
    for day in range(first, last + 1):
        nowcast = nowcaster.update(triangle.as_of(START + day))
    return nowcast


def test_medians_add_up_over_strata_and_dates():
    nowcast = followed(simulated(), Nowcaster((2, 3)), 40, 60)
    daily = nowcast.quantiles(days=1)
    now = daily.mean
    level = nowcast.units.level
    np.testing.assert_allclose(now[level == 1].sum(axis=0), now[0], rtol=1e-9)
    week = nowcast.quantiles(days=7).mean
    past = nowcast.today.past[0]
    all_dates = np.concatenate([now[0], past])
    np.testing.assert_allclose(week[0], sum_windows(all_dates, 7)[: week.shape[1]], rtol=1e-9)
    assert (np.diff(daily.values, axis=-1) >= 0.0).all()


def test_a_sum_is_never_wider_than_its_parts_together():
    nowcast = followed(simulated(), Nowcaster(2), 30, 60)
    parts = nowcast.quantiles().values
    widths = parts[..., -1] - parts[..., 0]
    level = nowcast.units.level
    assert (widths[0] <= 1.1 * widths[level == 1].sum(axis=0)).all()


def test_intervals_cover_what_they_promise_on_simulated_reports():
    triangle = simulated(days=160, rate=40.0)
    result = tt.nowcast.replay(
        triangle, ["tensortide"], [START + 90, START + 159], horizons=8, warm_up=60, days=1
    )
    for row in result.summary(base="none").to_pylist():
        assert 0.85 <= row["coverage_95"] <= 1.0, row
        assert 0.35 <= row["coverage_50"] <= 0.8, row


def test_nowcasts_begin_in_the_first_days():
    triangle = simulated()
    nowcaster = Nowcaster((2, 3))
    for day in range(1, 20):
        nowcast = nowcaster.update(triangle.as_of(START + day))
        found = nowcast.quantiles()
        assert np.isfinite(found.values).all()
        assert (found.mean >= 0.0).all()
        seven = nowcast.quantiles(days=7).values
        assert np.isfinite(seven[:, : max(day - 5, 0)]).all()


def test_a_stratum_that_appears_later_joins():
    triangle = simulated(places=3)
    late = (triangle.codes[:, 0] == 2) & (triangle.dates < 40)
    joined = triangle.only(~late)
    for options in ({}, {"economy": True}):
        nowcast = followed(joined, Nowcaster(2, **options), 30, 60)
        assert nowcast.units.keys[1:] == (("p0",), ("p1",), ("p2",))
        assert np.isfinite(nowcast.quantiles().values).all()
        assert nowcast.quantiles().mean[nowcast.unit(place="p2")].sum() > 0.0


def test_a_stratum_with_a_single_case_gets_finite_quantiles():
    triangle = simulated(places=2)
    one = replace(
        triangle,
        labels=(("p0", "p1", "p2"),),
        codes=np.concatenate([triangle.codes, [[2]]]),
        dates=np.append(triangle.dates, 20),
        delays=np.append(triangle.delays, 1),
        counts=np.append(triangle.counts, 1.0),
    )
    nowcast = followed(one, Nowcaster((2, 3)), 40, 45)
    quantiles = nowcast.quantiles().values[nowcast.unit(place="p2")]
    assert np.isfinite(quantiles).all()
    assert quantiles.max() < 10.0


@pytest.mark.parametrize("made", [{"ranks": (2, 3)}, {"ranks": "validate"},
                                  {"ranks": 2, "economy": True}])  # fmt: skip
def test_two_weeks_without_any_report_are_survived(made):
    """Longer than the maximum delay: what would have come is reported on the first day after it."""
    triangle = simulated(days=90)
    report = triangle.dates + triangle.delays
    holiday = (report >= 50) & (report < 64)
    moved = np.where(holiday, 64 - triangle.dates, triangle.delays)
    late = replace(triangle, delays=moved).summed()
    nowcaster = Nowcaster(**made)
    for day in range(40, 76):
        quantiles = nowcaster.update(late.as_of(START + day)).quantiles().values
        assert np.isfinite(quantiles).all()
        assert quantiles[0].max() < 5.0 * late.totals()[30:75].max()


def test_days_may_be_skipped_but_not_repeated():
    triangle = simulated()
    nowcaster = Nowcaster(2)
    nowcaster.update(triangle.as_of(START + 40))
    nowcaster.update(triangle.as_of(START + 44))
    assert np.isnan(nowcaster._spread.nowcasts[1:4]).all()
    with pytest.raises(tt.InputError, match="which this nowcaster has seen"):
        nowcaster.update(triangle.as_of(START + 44))


def test_the_economy_nowcaster_needs_the_news_only():
    triangle = simulated()
    whole, economy = Nowcaster(2, economy=True), Nowcaster(2, economy=True)
    whole.update(triangle.as_of(START + 40))
    economy.update(triangle.as_of(START + 40))
    for day in range(41, 50):
        view = triangle.as_of(START + day)
        a = whole.update(view)
        b = economy.update(view.since(view.last - 1))  # reports of that day alone
        np.testing.assert_array_equal(a.quantiles().values, b.quantiles().values)
    state = economy._members[0].state
    assert state is not None
    assert economy._kept is not None
    assert (economy._kept.delays == 0).all()


def test_the_economy_nowcaster_is_not_far_from_the_full_one():
    triangle = simulated(days=120, rate=60.0)
    days = [START + 70, START + 119]
    models = {
        "full": lambda: Nowcaster(2, ()),
        "economy": lambda: Nowcaster(2, economy=True),
        "chain-ladder": lambda: Nowcaster((), [BASELINES["chain-ladder"]]),
    }
    result = tt.nowcast.replay(triangle, models, days, horizons=8, days=1, warm_up=20)
    rows = {r["model"]: r["mae"] for r in result.summary().to_pylist() if r["level"] == "all"}
    assert rows["economy"] < 1.15 * rows["full"]
    assert rows["economy"] < rows["chain-ladder"]


@pytest.mark.parametrize("economy", [False, True])
def test_news_of_old_dates_and_news_beyond_the_maximum_delay_are_taken(economy):
    """A step whose reports are all overflow, and one with a date before all others."""
    triangle = simulated(correct=0.0)
    nowcaster = Nowcaster(2, economy=economy)
    followed(triangle, nowcaster, 40, 44)
    view = triangle.as_of(START + 44)
    old = replace(
        view,
        codes=np.concatenate([view.codes, [[0], [0]]]),
        dates=np.append(view.dates, [2, 0]),
        delays=np.append(view.delays, [43, 45]),
        counts=np.append(view.counts, [5.0, 7.0]),
        last=view.last + 1,
    )
    nowcast = nowcaster.update(old)
    assert np.isfinite(nowcast.quantiles().values).all()
    assert nowcast.as_of_date == START + 45
    earlier = replace(old, first=old.first - 3, dates=old.dates + 3, last=old.last + 1)
    assert np.isfinite(nowcaster.update(earlier).quantiles().values).all()


@pytest.mark.filterwarnings("ignore:.*it is not over yet")
def test_weekly_and_unstratified_triangles_are_nowcast():
    triangle = without_strata(simulated(days=140, rate=60.0, correct=0.0))
    table = triangle.to_table().to_pydict()
    table["report"] = [
        d + dt.timedelta(days=n)
        for d, n in zip(table["reference_date"], table["delay"], strict=True)
    ]
    weekly = Triangle.from_table(
        table, reference="reference_date", report="report", count="count", max_delay=3,
        every="week",
    )  # fmt: skip
    nowcaster = Nowcaster((1, 2))
    for back in (6, 5, 4, 3):
        nowcast = nowcaster.update(weekly.as_of(weekly.as_of_date - 7 * back))
    found = nowcast.quantiles()
    assert found.values.shape == (1, 3, 7)
    truth = weekly.totals()[: nowcast.triangle.n_dates][::-1][:3]
    assert (found.reported[0] <= truth).all()
    assert np.abs(found.mean[0] - truth).max() < 0.35 * truth.max()


def test_tables_have_a_row_per_unit_and_date():
    nowcast = followed(simulated(), Nowcaster(2), 40, 42)
    table = nowcast.to_table(by=["place"])
    assert table.num_rows == 3 * 12
    assert set(table["place"].to_pylist()) == {"p0", "p1", "p2"}
    assert nowcast.to_table(by=[]).num_rows == 12
    assert "median" in nowcast.to_table().column_names
    with pytest.raises(tt.InputError, match="no unit"):
        nowcast.unit(place="nowhere")
    with pytest.raises(tt.InputError, match="no stratum 'age'"):
        nowcast.unit(age="80+")


@pytest.mark.parametrize("ranks", [0, "best", (3, 0), (2.5,), (True, 500)])
def test_what_is_no_rank_is_refused(ranks):
    with pytest.raises(tt.InputError, match="ranks must be whole numbers"):
        Nowcaster(ranks)


def test_a_rank_is_chosen_by_the_last_weeks():
    triangle = simulated(rate=60.0)
    nowcaster = Nowcaster("validate", ())
    first = nowcaster.update(triangle.as_of(START + 40))
    assert np.isfinite(first.quantiles().values).all()
    nowcast = followed(triangle, nowcaster, 41, 56)
    single = [
        followed(triangle, Nowcaster(rank, ()), 40, 56).quantiles().mean for rank in (2, 3, 4, 6)
    ]
    assert any(np.allclose(nowcast.quantiles().mean, one) for one in single)


def test_a_step_that_fails_changes_nothing(monkeypatch):
    triangle = simulated()
    nowcaster, twin = Nowcaster((2, 3)), Nowcaster((2, 3))
    followed(triangle, nowcaster, 40, 42)
    followed(triangle, twin, 40, 42)
    real = HazardLadder.unseen

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(HazardLadder, "unseen", interrupted)
    with pytest.raises(KeyboardInterrupt):
        nowcaster.update(triangle.as_of(START + 43))
    monkeypatch.setattr(HazardLadder, "unseen", real)
    a = nowcaster.update(triangle.as_of(START + 43)).quantiles(days=7).values
    b = twin.update(triangle.as_of(START + 43)).quantiles(days=7).values
    np.testing.assert_array_equal(a, b)


def test_nothing_to_average_is_refused():
    with pytest.raises(tt.InputError, match="at least one rank"):
        Nowcaster((), ())
    with pytest.raises(tt.InputError, match="at least one rank"):
        Nowcaster((), [HazardLadder()], economy=True)
    with pytest.raises(tt.NotFittedError, match="no triangle yet"):
        Nowcaster(2).nowcast()


def test_a_copy_that_is_restored_goes_on_with_the_same_bits():
    import copy

    triangle = simulated()
    straight = Nowcaster((2, 3))
    followed(triangle, straight, 40, 46)
    restored = copy.deepcopy(straight)
    a = followed(triangle, straight, 47, 52).quantiles(days=7).values
    b = followed(triangle, restored, 47, 52).quantiles(days=7).values
    np.testing.assert_array_equal(a, b)


def test_the_spread_is_the_size_of_past_errors():
    rng = np.random.default_rng(0)
    level, n_ages = np.zeros(1, int), 5
    spread = Spread()
    for _ in range(150):
        noise = rng.normal(0.0, 30.0, (1, n_ages))
        spread.remember([("x",)], 1000.0 + noise, np.full((1, n_ages), 1.0))
    today = Today(
        level=level, published=np.full((1, n_ages), 999.0), unseen=np.ones((1, n_ages)),
        past=np.full((1, 200), 1000.0),
    )  # fmt: skip
    sd = spreads(today, spread, 1)[2]
    np.testing.assert_allclose(sd, 30.0, rtol=0.25)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Nowcaster().update({"date": [1]}), "takes a Triangle, not"),
        (lambda: Nowcaster(ladders=HazardLadder()), "ladders must be a list of chain-ladders"),
        (lambda: Nowcaster(ladders=["chain-ladder"]), "ladders must be a list of chain-ladders"),
        (lambda: Nowcaster(hedge="a"), "hedge must be a number"),
        (lambda: Nowcaster(seed="a"), "seed"),
        (lambda: tt.nowcast.Settings(new=-1.0), "new must be a finite number from 0 on"),
        (lambda: tt.nowcast.Settings(max_sweeps=0), "max_sweeps must be a whole number from 1"),
        (lambda: tt.nowcast.Settings(fade=0.0), "fade must be larger than 0"),
        (lambda: tt.nowcast.Settings(weekday_counts=0.0), "weekday_counts must be larger than 0"),
        (lambda: Nowcaster(settings=tt.nowcast.Settings(fade=30.0)), "fade belongs to the economy"),
        (lambda: Nowcaster(2, settings=tt.nowcast.CHAIN_LADDER), "are for rank 1 with history"),
        (lambda: Nowcaster(1, economy=True, settings=tt.nowcast.CHAIN_LADDER), "are for rank 1"),
        (lambda: tt.nowcast.replay(simulated(), {"x": Nowcaster(1)}), "must be a function"),
        (lambda: tt.nowcast.replay(simulated(), [Nowcaster(1)]), "there is no model"),
    ],
)
def test_what_a_nowcaster_cannot_take_is_one_sentence(make, words):
    with pytest.raises(tt.InputError, match=words):
        make()


def test_a_nowcast_shows_what_it_is_and_its_tables_know_their_targets():
    nowcast = Nowcaster(np.array([2, 3])).update(simulated().as_of(START + 40))
    assert repr(nowcast) == "<Nowcast as of 2021-12-11: 4 units, 12 open dates>"
    with pytest.raises(tt.InputError, match=r"by must be a list of strata, such as \['place'\]"):
        nowcast.to_table(by="place")
    with pytest.raises(tt.InputError, match="there are no 99 dates to sum yet"):
        nowcast.to_table(days=99)
    at_once, settled = (nowcast.to_table(by=[], settled=s)["median"][0].as_py() for s in (0, 1))
    assert settled >= at_once


def test_a_label_without_a_record_stops_no_step():
    triangle = simulated()
    view = triangle.as_of(START + 40)
    few = view.select(place=["p0", "p1"])
    nowcaster = Nowcaster(2, economy=True)
    nowcaster.update(few)
    quiet = replace(view.only(np.zeros(len(view.counts), bool)), last=view.last + 1)
    nowcast = nowcaster.update(quiet)
    assert nowcast.as_of_date == START + 41
    assert np.isfinite(nowcast.quantiles().values).all()
