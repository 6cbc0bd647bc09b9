"""Replays: strictly as of, the same table for all, summaries that add up."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import tensortide as tt
from tensortide.nowcast import BASELINES, Nowcaster, replay
from tensortide.nowcast.replay_result import Replay
from tests.nowcast.examples import START, simulated, without_strata

DATES = [START + 50, START + 59]


@pytest.fixture(scope="module")
def result() -> Replay:
    models = {"tensortide": lambda: Nowcaster(2)} | {
        name: (lambda ladder=ladder: Nowcaster((), [ladder])) for name, ladder in BASELINES.items()
    }
    return replay(simulated(), models, DATES, horizons=8, warm_up=15)


def test_every_model_is_scored_on_the_same_targets(result):
    rows = result.summary().to_pylist()
    assert {r["level"] for r in rows} == {"all", "place"}
    assert {r["model"] for r in rows} == {"tensortide", *BASELINES}
    for level in ("all", "place"):
        assert len({r["forecasts"] for r in rows if r["level"] == level}) == 1
    ladder = next(r for r in rows if r["model"] == "chain-ladder" and r["level"] == "all")
    assert ladder["relative_wis"] == 1.0
    for row in rows:
        parts = row["dispersion"] + row["overprediction"] + row["underprediction"]
        assert parts == pytest.approx(row["wis"])


def test_the_truth_is_the_count_at_the_maximum_delay(result):
    triangle = simulated()
    totals = triangle.totals()
    for k, day in enumerate(range(50, 60)):
        for horizon in range(8):
            last = day - horizon
            assert result.truth[k, 0, horizon] == totals[last - 6 : last + 1].sum()


def test_what_is_reported_later_cannot_change_a_replay(result):
    triangle = simulated()
    later = triangle.dates + triangle.delays > 59
    shaken = replace(triangle, counts=np.where(later, 40.0, triangle.counts))
    again = replay(shaken, {"tensortide": lambda: Nowcaster(2)}, DATES, horizons=8, warm_up=15)
    np.testing.assert_array_equal(again.quantiles["tensortide"], result.quantiles["tensortide"])
    assert not np.array_equal(again.truth, result.truth)


def test_unadjusted_counts_are_too_low_and_all_others_better(result):
    rows = {r["model"]: r for r in result.summary().to_pylist() if r["level"] == "all"}
    assert rows["unadjusted"]["bias"] < 0.0
    assert all(rows["unadjusted"]["mae"] > r["mae"] for m, r in rows.items() if m != "unadjusted")


def test_summaries_by_horizon_and_unit(result):
    by_horizon = result.summary(by=("level", "horizon"), base="chain-ladder").to_pylist()
    young = [r for r in by_horizon if r["model"] == "unadjusted" and r["level"] == "all"]
    assert [r["horizon"] for r in young] == list(range(8))
    assert young[0]["mae"] > young[-1]["mae"]
    units = {r["unit"] for r in result.summary(by=("unit",)).to_pylist()}
    assert units == {"all", "p0", "p1", "p2"}
    with pytest.raises(tt.InputError, match="by takes"):
        result.summary(by=("weekday",))


def test_differences_have_an_interval_about_them(result):
    found = result.difference("tensortide", "unadjusted", level="all")
    assert found.low <= found.relative <= found.high < 0.0
    same = result.difference("tensortide", "tensortide")
    assert same.low == same.relative == same.high == 0.0
    with pytest.raises(tt.InputError, match="measure must be one of"):
        result.difference("tensortide", "unadjusted", measure="coverage")
    with pytest.raises(tt.InputError, match="no level 'age'"):
        result.difference("tensortide", "unadjusted", level="age")
    with pytest.raises(tt.InputError, match="no model 'mine'"):
        result.scores("mine")


def test_the_logarithmic_scale_is_about_relative_errors(result):
    plain = {r["model"]: r["wis"] for r in result.summary(by=()).to_pylist()}
    log = {r["model"]: r["wis"] for r in result.summary(by=(), log=True).to_pylist()}
    assert all(log[m] < plain[m] for m in plain)


def test_every_quantile_can_be_had_as_a_table(result):
    table = result.to_table()
    assert table.num_rows == sum(np.isfinite(q).sum() for q in result.quantiles.values())
    assert {"as_of", "model", "place", "date", "horizon", "level", "value", "truth"} == set(
        table.column_names
    )


def test_settled_counts_may_be_the_truth():
    triangle = simulated()
    settled = replace(triangle, counts=1.1 * triangle.counts)
    plain = replay(triangle, ["chain-ladder"], DATES, horizons=5, warm_up=5)
    grown = replay(triangle, ["chain-ladder"], DATES, horizons=5, warm_up=5, settled=settled)
    np.testing.assert_allclose(grown.truth, 1.1 * plain.truth)
    raised = grown.quantiles["chain-ladder"][..., 3] / plain.quantiles["chain-ladder"][..., 3]
    assert (raised >= 1.0).all()
    assert raised.max() < 1.2


def test_a_tail_is_read_off_the_last_delays():
    from tensortide.nowcast.tail import tail_share

    steady = simulated(days=150, correct=0.0, rate=2000.0)
    delays = np.arange(13)
    speeds = np.linspace(2.0, 4.0, 3)
    sizes = np.array([1.0, 0.4, 0.15])
    shape = np.exp(-delays / speeds[:, None])
    beyond = np.exp(-np.arange(13, 60) / speeds[:, None]).sum(axis=1) / shape.sum(axis=1)
    expected = (sizes * beyond).sum() / sizes.sum()
    assert tail_share(steady) == pytest.approx(expected, rel=0.4)
    young = steady.as_of(START + 5)
    assert tail_share(young) == 0.0


@pytest.mark.parametrize(
    ("models", "dates", "words"),
    [
        (["prophet"], DATES, "no model 'prophet'"),
        (["tensortide"], [], "dates must be a list"),
        (["tensortide"], "2021-12-01", "dates must be a list"),
        (["tensortide"], ["2020-01-01", "2021-12-01"], "as-of dates must lie between"),
        (["tensortide"], ["soon"], "must be a date such as"),
    ],
)
def test_what_cannot_be_replayed_is_refused(models, dates, words):
    with pytest.raises(tt.InputError, match=words):
        replay(simulated(), models, dates)


def test_a_triangle_that_is_too_short_is_refused():
    with pytest.raises(tt.InputError, match="too short to choose as-of dates"):
        replay(simulated(days=10), ["chain-ladder"])


def test_all_pictures_can_be_drawn(result):
    from tensortide.nowcast import plots

    triangle = simulated()
    nowcast = Nowcaster(2).update(triangle.as_of(START + 50))
    drawn = [
        plots.nowcast(nowcast, later=triangle),
        plots.nowcast(nowcast, days=7, place="p1"),
        plots.triangle(triangle),
        plots.delays(triangle),
        plots.delays(triangle, by="place"),
        plots.delays_over_time(triangle),
        plots.wis(result),
        plots.coverage(result, "place"),
    ]
    for figure in drawn:
        assert figure.data
        assert figure.layout.yaxis.title.text


def test_listed_weeks_are_all_scored():
    rows = [(START + 7 * t, d) for t in range(30) for d in range(3)]
    table = {"date": [t for t, _ in rows], "delay": [d for _, d in rows], "n": [9] * len(rows)}
    weekly = tt.nowcast.Triangle.from_table(
        table, reference="date", delay="delay", count="n", max_delay=2, every="week"
    )
    listed = [START + 7 * t + 2 for t in (12, 13, 14)]  # Wednesdays: the week before was over
    found = tt.nowcast.replay(weekly, ["chain-ladder"], listed, warm_up=3)
    assert [str(d) for d in found.dates] == [str(START + 7 * t - 1) for t in (12, 13, 14)]


def test_a_replay_shows_itself_and_knows_its_levels(result):
    assert repr(result).startswith("<Replay as of 20")
    with pytest.raises(tt.InputError, match="there is no level 'age'; there are all, place"):
        tt.nowcast.plots.wis(result, "age")
    scored = result.scored
    assert 0 < scored.final <= scored.asked == result.truth[:, 0].size
    assert result.difference("tensortide", "unadjusted", log=True).relative < 0.0


def test_more_than_two_dates_are_those_that_are_scored():
    triangle = simulated()
    chosen = [START + 40, START + 43, START + 47]
    some = replay(triangle, ["chain-ladder"], chosen, warm_up=5)
    every = replay(triangle, ["chain-ladder"], [START + 40, START + 47], warm_up=5)
    assert some.dates.tolist() == np.array(chosen).tolist()
    np.testing.assert_array_equal(
        some.quantiles["chain-ladder"], every.quantiles["chain-ladder"][[0, 3, 7]]
    )
    assert some.truth.shape[2] == triangle.max_delay  # fewer than 29 horizons


@pytest.mark.filterwarnings("ignore:.*it is not over yet")
def test_weeks_are_scored_one_by_one():
    import datetime as dt

    table = without_strata(simulated(days=140, rate=60.0, correct=0.0)).to_table().to_pydict()
    table["report"] = [
        d + dt.timedelta(days=n)
        for d, n in zip(table["reference_date"], table["delay"], strict=True)
    ]
    weekly = tt.nowcast.Triangle.from_table(
        table, reference="reference_date", report="report", count="count", max_delay=2,
        every="week",
    )  # fmt: skip
    result = replay(weekly, ["chain-ladder"], warm_up=5)
    assert (result.days, result.every) == (1, "week")
    row = result.to_table().to_pylist()[-1]
    assert (row["as_of"] - row["date"]).days == 6 + 7 * row["horizon"]
