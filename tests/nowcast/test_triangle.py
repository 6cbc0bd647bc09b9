"""Reporting triangles: reading, as-of views, corrections, mistakes of the data."""

from __future__ import annotations

import datetime as dt

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tensortide as tt
from tensortide.nowcast.triangle import Triangle
from tests.nowcast.examples import simulated

START = np.datetime64("2021-11-01")


def long_table(seed=0, days=20, max_delay=6, places=3):
    """A table of random reports by delay, some corrected downwards."""
    rng = np.random.default_rng(seed)
    n = 400
    table = {
        "place": np.array([f"p{i}" for i in rng.integers(0, places, n)]),
        "date": START + rng.integers(0, days, n),
        "delay": rng.integers(0, max_delay + 3, n),
        "n": rng.integers(-1, 5, n),
    }
    late = table["date"] + table["delay"] <= START + days - 1
    return {name: column[late] for name, column in table.items()}


def read(table, **options):
    given = {"reference": "date", "delay": "delay", "count": "n", "strata": ["place"],
             "max_delay": 6, "duplicates": "sum"}  # fmt: skip
    return Triangle.from_table(table, **given | options)


def test_report_dates_and_delays_say_the_same():
    table = long_table()
    by_delay = read(table)
    dates = {k: v for k, v in table.items() if k != "delay"}
    by_report = read(
        dates | {"report": table["date"] + table["delay"]}, delay=None, report="report"
    )
    assert by_delay.to_table().equals(by_report.to_table())


def test_cumulative_and_incident_tables_say_the_same_and_falling_totals_are_corrections():
    rows = [("2021-11-01", 0, 5), ("2021-11-01", 1, 7), ("2021-11-01", 3, 6), ("2021-11-02", 0, 2)]
    cumulative = {"date": [r[0] for r in rows], "delay": [r[1] for r in rows],
                  "n": [r[2] for r in rows]}  # fmt: skip
    incident = cumulative | {"n": [5, 2, -1, 2]}
    a = read(cumulative, strata=(), cumulative=True)
    b = read(incident, strata=())
    assert a.to_table().equals(b.to_table())
    assert a.totals().tolist()[:2] == [6.0, 2.0]


def test_a_line_list_is_counted():
    cases = {
        "onset": ["2021-11-01"] * 3 + ["2021-11-02"],
        "seen": ["2021-11-01", "2021-11-03", "2021-11-03", "2021-11-02"],
        "sex": ["f", "f", "f", "m"],
    }
    triangle = Triangle.from_line_list(cases, reference="onset", report="seen", strata=["sex"])
    assert triangle.by_delay(["sex"])[0, 0, :3].tolist() == [1.0, 0.0, 2.0]
    assert triangle.labels == (("f", "m"),)


@given(seed=st.integers(0, 2**32 - 1), back=st.integers(0, 15))
@settings(max_examples=25, deadline=None)
def test_an_as_of_view_equals_the_triangle_of_the_reports_until_then(seed, back):
    table = long_table(seed)
    whole = read(table)
    day = whole.as_of_date - back
    early = table["date"] + table["delay"] <= day
    if not (np.abs(table["n"][early]).sum() and table["n"][early].any()):
        return
    try:
        view = whole.as_of(day)
    except tt.InputError:
        return  # everything reported until then cancels out
    kept = {k: v[early] for k, v in table.items()}
    expected = read(kept).until(day)
    assert view.last == expected.last
    shared = view.to_table().sort_by([("place", "ascending"), ("reference_date", "ascending"),
                                      ("delay", "ascending")])  # fmt: skip
    assert shared.equals(
        expected.to_table().sort_by(
            [("place", "ascending"), ("reference_date", "ascending"), ("delay", "ascending")]
        )
    )


def test_an_older_date_that_is_reported_later_does_not_exist_before():
    table = {
        "date": ["2021-11-10", "2021-11-11", "2021-11-01"],
        "delay": [0, 0, 20],
        "n": [5, 4, 1],
    }
    whole = read(table, strata=(), max_delay=30)
    view = whole.as_of("2021-11-12")
    assert str(view.days()[0]) == "2021-11-10"
    assert view.totals().tolist() == [5.0, 4.0, 0.0]


def test_cells_that_could_have_been_reported_are_zeros_and_later_ones_unknown():
    table = {"date": ["2021-11-01", "2021-11-04"], "delay": [1, 0], "n": [3, 1]}
    triangle = read(table, strata=(), max_delay=4)
    square = triangle.by_delay()
    assert square.shape == (4, 5)
    np.testing.assert_array_equal(square[0], [0.0, 3.0, 0.0, 0.0, np.nan])
    np.testing.assert_array_equal(square[2], [0.0, 0.0, np.nan, np.nan, np.nan])


def test_delays_beyond_the_maximum_are_overflow_and_count_only_when_settled():
    table = {"date": ["2021-11-01"] * 2 + ["2021-11-09"], "delay": [0, 8, 0], "n": [3, 2, 1]}
    triangle = read(table, strata=(), max_delay=4)
    assert triangle.totals()[0] == 3.0
    assert triangle.totals(settled=True)[0] == 5.0
    assert triangle.as_of("2021-11-05").totals(settled=True)[0] == 3.0


@given(seed=st.integers(0, 2**32 - 1))
@settings(max_examples=25, deadline=None)
def test_moving_negatives_back_keeps_totals(seed):
    triangle = read(long_table(seed))
    moved = triangle.without_negatives()
    assert (moved.counts > 0.0).all()
    before, after = triangle.totals(["place"]), moved.totals(["place"])
    running = np.nancumsum(triangle.by_delay(["place"]), axis=-1)
    sound = running.min(axis=-1) >= 0.0  # a total that never fell below zero is kept exactly
    assert sound.any()
    np.testing.assert_array_equal(after[sound], before[sound])
    assert (after >= before).all()


def test_weeks_run_from_monday_and_months_by_the_calendar():
    table = {"date": ["2021-11-01", "2021-11-07", "2021-11-08"], "report": ["2021-11-14"] * 3,
             "n": [1, 2, 4]}  # fmt: skip
    weekly = read(table, strata=(), delay=None, report="report", every="week")
    assert weekly.totals().tolist() == [3.0, 4.0]
    assert weekly.by_delay()[0, :2].tolist() == [0.0, 3.0]
    assert str(weekly.days()[0]) == "2021-11-01"
    later = {"date": ["2021-10-30", "2021-11-10"], "report": ["2021-11-02", "2021-12-31"],
             "n": [2, 5]}  # fmt: skip
    monthly = read(later, strata=(), delay=None, report="report", every="month")
    assert monthly.by_delay()[:, :2].tolist()[0] == [0.0, 2.0]


def test_a_week_that_is_not_over_has_not_been_reported():
    dates = ["2026-01-05", "2026-01-05", "2026-01-12"]
    table = {"date": dates, "report": ["2026-01-05", "2026-01-11", "2026-01-14"], "n": [3, 7, 9]}
    with pytest.warns(tt.TensortideWarning, match="9 counts reported in the week from 2026-01-12"):
        weekly = read(table, strata=(), delay=None, report="report", every="week")
    assert str(weekly.as_of_date) == "2026-01-11"
    assert weekly.totals().tolist() == [10.0]
    with pytest.raises(tt.InputError, match="before the first reference date"):
        weekly.as_of("2026-01-06")


def test_reports_that_are_known_by_week_are_whole_weeks():
    mondays = ["2026-01-05", "2026-01-05", "2026-01-12"]
    table = {"date": mondays, "report": ["2026-01-05", "2026-01-12", "2026-01-12"], "n": [3, 7, 9]}
    weekly = read(table, strata=(), delay=None, report="report", every="week")
    by_delay = read(
        table | {"delay": [0, 1, 0]}, strata=(), delay="delay", report=None, every="week"
    )
    assert str(weekly.as_of_date) == str(by_delay.as_of_date) == "2026-01-18"
    assert weekly.totals().tolist() == by_delay.totals().tolist() == [10.0, 9.0]


def test_the_maximum_delay_goes_with_the_period():
    table = {"date": ["2026-01-05", "2026-01-12"], "delay": [0, 0], "n": [3, 4]}
    for every, most in (("day", 40), ("week", 8)):
        made = tt.nowcast.Triangle.from_table(
            table, reference="date", delay="delay", count="n", every=every
        )
        assert made.max_delay == most


def test_a_mistyped_year_and_german_dates_are_noticed():
    table = {"date": ["2026-01-05", "2206-01-06"], "delay": [0, 0], "n": [3, 4]}
    with pytest.warns(tt.TensortideWarning, match="days without any 'date' between 2026-01-05"):
        read(table, strata=())
    table = {"date": ["31.01.2026"], "delay": [0], "n": [3]}
    with pytest.raises(tt.InputError, match="year-month-day, such as 2026-01-31"):
        read(table, strata=())


def test_ages_are_in_their_natural_order():
    ages = ["15-34", "5-14", "0-4", "80+"]
    table = {"date": ["2026-01-05"] * 4, "delay": [0] * 4, "n": [1, 2, 3, 4], "age": ages}
    assert read(table, strata=["age"]).labels == (("0-4", "5-14", "15-34", "80+"),)


def test_daily_totals_are_differenced_before_they_become_weeks():
    table = {"date": ["2026-01-05"] * 3 + ["2026-01-06"] * 2,
             "report": ["2026-01-05", "2026-01-08", "2026-01-13", "2026-01-06", "2026-01-18"],
             "n": [4, 6, 10, 5, 8]}  # fmt: skip
    weekly = read(table, strata=(), delay=None, report="report", every="week", cumulative=True,
                  duplicates="error")  # fmt: skip
    assert weekly.by_delay()[0, :2].tolist() == [11.0, 7.0]


def test_delays_in_days_do_not_become_weeks():
    table = {"date": ["2026-01-06"], "delay": [3], "n": [1]}
    with pytest.raises(tt.InputError, match="counts weeks, but 'date' holds single days"):
        read(table, strata=(), every="week")


def test_any_kind_of_table_and_date_is_read():
    texts = {"date": ["2021-11-01", "2021-11-02"], "delay": [1, 0], "n": [1, 2]}
    expected = read(texts, strata=()).to_table()
    python = texts | {"date": [dt.date(2021, 11, 1), dt.date(2021, 11, 2)]}
    times = texts | {"date": [dt.datetime(2021, 11, 1, 8), dt.datetime(2021, 11, 2, 9)]}
    coded = pa.table(texts).set_column(0, "date", pa.array(texts["date"]).dictionary_encode())
    for table in (python, times, pa.table(texts), coded):
        assert read(table, strata=()).to_table().equals(expected)


def test_select_and_unknown_strata():
    triangle = read(long_table())
    part = triangle.select(place=["p1"])
    assert part.labels == (("p1",),)
    assert part.counts.sum() == triangle.totals(["place"], settled=True)[1].sum()
    with pytest.raises(tt.InputError, match="no stratum 'age'; there are 'place'"):
        triangle.totals(["age"])
    with pytest.raises(tt.InputError, match="has not all labels"):
        triangle.select(place="nowhere")


GOOD = {"date": ["2021-11-01", "2021-11-02"], "delay": [1, 0], "n": [1, 2], "report": ["x", "y"]}


@pytest.mark.parametrize(
    ("change", "options", "words"),
    [
        ({"delay": [1, -2]}, {}, "1 of 2 rows are reported before.*row 1.*early='drop'"),
        ({"delay": [1, 0.5]}, {}, "'delay' has 0.5 in row 1; delays are whole numbers"),
        ({"date": ["2021-11-01", "soon"]}, {}, "'date' has 'soon' in row 1, which is no date"),
        ({"date": ["2021-11-01", None]}, {}, "'date' is missing in row 1"),
        ({"date": [1, 2]}, {}, "'date' must hold dates"),
        ({"n": [1.0, float("nan")]}, {}, "'n'"),
        ({"n": [0, 0]}, {}, "all counts are zero"),
        ({"n": [0, -3]}, {}, "no count is above zero"),
        ({"date": ["2021-11-01", "0021-11-01"]}, {}, "typing error"),
        ({}, {"count": "cases"}, "no column 'cases'"),
        ({}, {"strata": "place"}, "strata must be a list"),
        ({}, {"max_delay": 0}, "max_delay must be a whole number from 1"),
        ({}, {"every": "hour"}, "every must be one of 'day'"),
        ({}, {"delay": None}, "either the column of report dates"),
        ({}, {"report": "report"}, "either the column of report dates"),
        ({}, {"count": "delay"}, "columns must differ"),
        ({"date": [], "delay": [], "n": [], "report": []}, {}, "the table has no rows"),
    ],
)
def test_mistakes_of_the_table_are_named(change, options, words):
    with pytest.raises(tt.InputError, match=words):
        read(GOOD | change, **{"strata": (), "duplicates": "error"} | options)


def falling(totals: bool) -> dict[str, list]:
    """Twenty dates whose increments are 8, 4, 2; or their totals."""
    counts = [8, 12, 14] if totals else [8, 4, 2]
    days = [str(np.datetime64("2021-11-01") + t) for t in range(20)]
    return {"date": [d for d in days for _ in counts], "delay": [0, 1, 2] * 20, "n": counts * 20}


@pytest.mark.parametrize("totals", [False, True])
def test_totals_that_are_read_as_increments_are_doubted_and_the_other_way(totals):
    meant = read(falling(totals), strata=(), cumulative=totals)
    assert meant.totals()[0] == 14.0
    words = "20 of 20 dates never fall.*--cumulative" if totals else "40 of 40 totals are lower"
    with pytest.warns(tt.TensortideWarning, match=words):
        read(falling(totals), strata=(), cumulative=not totals)


def test_single_cases_and_flat_counts_are_no_reason_to_doubt():
    table = falling(False) | {"n": [1] * 60}
    assert read(table, strata=()).totals().sum() == 60.0
    assert read(table, strata=(), cumulative=True).totals().sum() == 20.0


def test_labels_without_a_count_are_named():
    table = GOOD | {"place": ["a", "z"], "n": [3, 0]}
    with pytest.warns(tt.TensortideWarning, match="no count but zero of 'place' 'z'"):
        read(table, strata=["place"])


def test_a_mistyped_report_date_is_noticed():
    table = {"date": ["2021-11-01", "2021-11-02"], "n": [1, 2]}
    with pytest.warns(tt.TensortideWarning, match="without any 'seen' between 2021-11-02 and 2031"):
        read(table | {"seen": ["2021-11-02", "2031-11-02"]}, report="seen", delay=None, strata=())
    with pytest.raises(tt.InputError, match="typing error.*the last in 'delay', row 1"):
        read(table | {"delay": [1, 10**9]}, strata=())
    with pytest.raises(tt.InputError, match="4,000 at most"):
        read(GOOD, strata=(), max_delay=20_000)


def test_weeks_that_are_read_as_days_are_doubted():
    days = [str(np.datetime64("2021-11-01") + 7 * k) for k in range(5)]
    table = {"date": days, "delay": [0] * 5, "n": [3] * 5}
    with pytest.warns(tt.TensortideWarning, match="whole weeks apart; are they weeks"):
        read(table, strata=())
    assert read(table, strata=(), every="week").n_dates == 5


def test_a_time_counts_for_the_day_on_which_it_was_where_it_was():
    import pyarrow as pa

    late = dt.datetime(2021, 1, 2, 4, 30, tzinfo=dt.UTC)  # half past eleven in New York
    column = pa.array([late], pa.timestamp("us", "America/New_York"))
    triangle = read({"date": column, "delay": [0], "n": [3]}, strata=())
    assert str(triangle.days()[0]) == "2021-01-01"


def test_increments_that_rise_to_the_last_delay_are_not_doubted():
    table = falling(False) | {"n": [1, 3, 6] * 20}
    assert read(table, strata=()).totals().sum() == 200.0


def test_rows_keep_their_numbers_when_others_are_dropped():
    table = {"date": ["2021-11-05", "2021-11-01", "2021-11-02", "2021-11-01"],
             "delay": [-1, 0, 0, 0], "n": [1, 1, 1, 1]}  # fmt: skip
    with (
        pytest.warns(tt.TensortideWarning, match="1 of 4 rows are dropped"),
        pytest.raises(tt.InputError, match="first rows 1 and 3"),
    ):
        read(table, strata=(), early="drop", duplicates="error")


def test_labels_that_look_like_one_are_doubted():
    table = GOOD | {"place": ["North", "north "]}
    with pytest.warns(tt.TensortideWarning, match="'place' has the labels 'North' and 'north '"):
        assert read(table, strata=["place"]).labels == (("North", "north "),)


def test_until_goes_forward_and_as_of_back():
    triangle = read(GOOD, strata=())
    again = triangle.until("2021-11-04").until("2021-11-05")
    assert (again.quiet, again.n_dates) == (3, 5)
    with pytest.raises(tt.InputError, match="2021-11-01 is before the last report.*as_of looks"):
        triangle.until("2021-11-01")


def test_early_reports_can_be_dropped():
    with pytest.warns(tt.TensortideWarning, match="1 of 2 rows are dropped"):
        kept = read(GOOD | {"delay": [1, -2]}, strata=(), early="drop")
    assert kept.totals().tolist() == [1.0, 0.0]
    with (
        pytest.warns(tt.TensortideWarning, match="2 of 2 rows"),
        pytest.raises(tt.InputError, match="no row is left"),
    ):
        read(GOOD | {"delay": [-1, -2]}, strata=(), early="drop")
    with pytest.raises(tt.InputError, match="are the two columns swapped"):
        read(GOOD | {"delay": [-1, -2]}, strata=())


def test_repeated_cells_need_a_word_from_the_user():
    twice = {k: [*v, v[0]] for k, v in GOOD.items()}
    with pytest.raises(tt.InputError, match="1 rows repeat a cell, first rows 0 and 2"):
        read(twice, strata=(), duplicates="error")
    assert read(twice, strata=(), duplicates="sum").totals()[0] == 2.0
    assert read(twice, strata=(), duplicates="last").totals()[0] == 1.0


@pytest.mark.parametrize(
    ("day", "words"),
    [
        ("2021-10-30", "before the first reference date, 2021-11-01"),
        ("2021-12-24", "after the last report, 2021-11-02"),
        ("2021-11-01", "nothing had been reported as of 2021-11-01"),
        ("today", "must be a date such as"),
        (7, "must be a date such as"),
    ],
)
def test_as_of_dates_outside_the_data_are_refused(day, words):
    table = {"date": ["2021-11-01"], "delay": [1], "n": [4]}
    with pytest.raises(tt.InputError, match=words):
        read(table, strata=()).as_of(day)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ["genins", "raa", "abc", "ukmotor", "mortgage", "usauto"])
def test_triangles_of_chainladder_come_and_go(name):
    chainladder = pytest.importorskip("chainladder")
    sample = chainladder.load_sample(name)
    triangle = Triangle.from_chainladder(sample)
    values = np.asarray(sample.values, float)
    back = triangle.to_chainladder()
    # index and columns become strata, which come back as the index: compare by their names
    if triangle.strata:
        assert triangle.strata == ("column",)
        order = [back.index.values[:, 0].tolist().index(c) for c in sample.columns]
        returned = np.asarray(back.values, float)[order, 0]
        values = values[0]
    else:
        returned = np.asarray(back.values, float)
    np.testing.assert_allclose(np.nan_to_num(returned), np.nan_to_num(values), rtol=1e-12)
    with pytest.raises(tt.InputError, match="no chainladder Triangle"):
        Triangle.from_chainladder(values)
    daily = read(GOOD, strata=())
    with pytest.raises(tt.InputError, match="not triangles by day"):
        daily.to_chainladder()


@pytest.mark.filterwarnings("ignore")
def test_fiscal_years_of_chainladder_keep_their_diagonal():
    chainladder = pytest.importorskip("chainladder")
    import pandas as pd

    rows = [(f"{2006 + k}-07-01", f"{2007 + k + d}-06-30", 100.0 + 10 * k + d)
            for k in range(4) for d in range(4 - k)]  # fmt: skip
    frame = pd.DataFrame(rows, columns=["origin", "report", "paid"])
    sample = chainladder.Triangle(
        frame, origin="origin", development="report", columns=["paid"], cumulative=False
    )
    if sample.origin_grain != sample.development_grain:
        sample = sample.grain("OYDY")
    square = Triangle.from_chainladder(sample).by_delay()
    assert square.shape == (4, 4)
    for k in range(4):
        assert square[k, : 4 - k].tolist() == [100.0 + 10 * k + d for d in range(4 - k)]
        assert np.isnan(square[k, 4 - k :]).all()


@pytest.mark.filterwarnings("ignore")
def test_a_sparse_triangle_of_chainladder_is_never_made_dense():
    chainladder = pytest.importorskip("chainladder")
    sample = chainladder.load_sample("prism")
    assert np.prod(sample.shape) > 1e9
    triangle = Triangle.from_chainladder(sample)
    assert triangle.every == "month"
    assert len(triangle.counts) < 200_000
    total = sample.cum_to_incr() if sample.is_cumulative else sample
    np.testing.assert_allclose(triangle.counts.sum(), np.nansum(total.values.data))


def test_records_move_to_other_labels_and_none_is_lost():
    triangle = simulated(places=2)
    moved = triangle.on_axes((("p1", "new", "p0"),), triangle.first - 3)
    assert moved.totals()[3:].tolist() == triangle.totals().tolist()
    assert moved.totals(["place"])[2, 3:].tolist() == triangle.totals(["place"])[0].tolist()
    with pytest.raises(tt.InputError, match="'place' has records of 'p1', which is not among"):
        triangle.on_axes((("p0",),), triangle.first)
