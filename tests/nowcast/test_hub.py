"""Rows in the form of the German Nowcast Hub."""

from __future__ import annotations

import re

import numpy as np
import pytest

import tensortide as tt
from tensortide.nowcast import Nowcaster, Triangle
from tensortide.nowcast.hub import hub_rows, hub_table, total_label
from tests.nowcast.examples import START, simulated

COLUMNS = ["location", "age_group", "forecast_date", "target_end_date", "quantile", "value"]


def german(days=70, seed=0) -> Triangle:
    """A triangle with states and ages as the hub names them."""
    rng = np.random.default_rng(seed)
    states, ages = ["DE-BW", "DE-BY", "DE-TH"], ["00-04", "05-14", "80+"]
    mean = np.einsum("l,a,t,d->latd", [3.0, 2.0, 1.0], [0.5, 1.0, 3.0], np.ones(days),
                     0.75 ** np.arange(41))  # fmt: skip
    counts = rng.poisson(mean)
    state, a, t, d = np.nonzero(counts)
    table = {
        "location": np.array(states)[state], "age_group": np.array(ages)[a],
        "date": np.datetime64("2021-08-01") + t, "delay": d, "count": counts[state, a, t, d],
    }  # fmt: skip
    return Triangle.from_table(
        table, reference="date", delay="delay", count="count",
        strata=["location", "age_group"], max_delay=40,
    )  # fmt: skip


def test_the_rows_are_what_the_hub_asks_for():
    triangle = german()
    table = hub_table(
        triangle, "2021-09-25", "2021-09-26", lambda: Nowcaster(2), warm_up=3, progress=False
    )
    assert table.column_names == COLUMNS
    rows = table.to_pylist()
    units = {(r["location"], r["age_group"]) for r in rows}
    assert units == {("DE", "00+"), *(("DE", a) for a in ("00-04", "05-14", "80+")),
                     *((s, "00+") for s in ("DE-BW", "DE-BY", "DE-TH"))}  # fmt: skip
    assert {str(r["forecast_date"]) for r in rows} == {"2021-09-25", "2021-09-26"}
    assert sorted({r["quantile"] for r in rows}) == [0.025, 0.1, 0.25, 0.5, 0.75, 0.9, 0.975]
    back = {(r["forecast_date"] - r["target_end_date"]).days for r in rows}
    assert back == set(range(29))
    assert table.num_rows == 2 * 7 * 29 * 7


def test_values_are_sums_of_seven_days_and_rise_with_the_quantile():
    triangle = german()
    nowcast = Nowcaster(2).update(triangle.as_of("2021-09-26"))
    rows = hub_rows(nowcast).to_pylist()
    old = [r for r in rows if (r["location"], r["age_group"]) == ("DE", "00+")
           and str(r["target_end_date"]) == "2021-08-29"]  # fmt: skip
    values = [r["value"] for r in sorted(old, key=lambda r: r["quantile"])]
    assert values == sorted(values)
    totals = triangle.totals()[22:29].sum()
    assert values[3] == pytest.approx(totals, rel=0.1)


def test_more_than_two_strata_do_not_fit():
    table = {"date": ["2021-08-01"], "delay": [0], "n": [1], "a": ["x"], "b": ["y"], "c": ["z"]}
    triangle = Triangle.from_table(
        table, reference="date", delay="delay", count="n", strata=["a", "b", "c"], max_delay=2
    )
    with pytest.raises(tt.InputError, match="not 3 strata"):
        hub_rows(Nowcaster(1).update(triangle.until("2021-08-03")))


def test_sums_have_names():
    assert total_label(["0-9", "10-19", "20+"]) == "0+"
    assert total_label(["US-CA", "US-NY"]) == "US"
    assert total_label(["Bremen", "Berlin"]) == "all"
    assert total_label(["DE-BE"]) == "all"


def test_two_days_of_the_german_triangle(real_data):
    from tensortide.experiments.nowcast_study import german_triangle

    triangle = german_triangle().as_of("2021-09-12")
    assert triangle.shape[:2] == (16, 6)
    table = hub_table(
        triangle, "2021-09-11", "2021-09-12", lambda: Nowcaster(3), warm_up=8, progress=False
    )
    assert table.num_rows == 2 * 23 * 29 * 7
    rows = table.to_pylist()
    assert len({r["location"] for r in rows}) == 17
    nation = [r["value"] for r in rows if (r["location"], r["quantile"]) == ("DE", 0.5)]
    assert min(nation) > 0.0


def test_the_studies_run_and_draw(real_data, tmp_path):
    from tensortide.experiments.nowcast_study import STUDIES, run_study

    text, files = run_study(STUDIES["nowcast-choices"], tmp_path, quick=True)
    assert [file.name for file in files] == [
        "nowcast-choices-wis.svg", "nowcast-choices-coverage.svg",
    ]  # fmt: skip
    assert all(file.stat().st_size > 10_000 for file in files)
    assert "| model | nation | states | ages | states by age |" in text
    assert re.search(r"\| tensortide( \| \d\.\d{3} \(\d+%\)){4} \|", text), text
    assert "| chain-ladder | 1.000 (" in text
    assert max(STUDIES["nowcast-choices"].last, "2021-11-21") == "2021-11-21"
    assert STUDIES["nowcast"].first > "2022-04-29"


def test_one_label_is_its_own_sum_and_final_counts_fill_the_horizons():
    triangle = simulated(places=1, max_delay=7)
    nowcast = Nowcaster(1).update(triangle.as_of(START + 60))
    rows = hub_rows(nowcast)
    keys = list(zip(*(rows[n].to_pylist() for n in ("location", "age_group", "target_end_date",
                                                    "quantile")), strict=True))  # fmt: skip
    assert len(keys) == len(set(keys)) == 29 * 7 * 2  # p0, and the whole
    old = [r for r in rows.to_pylist() if r["target_end_date"] == (START + 40).item()]
    assert {r["value"] for r in old} == {triangle.as_of(START + 60).totals()[34:41].sum()}
