"""Loaders: what they return, and what they say where a file is absent or another one."""

from __future__ import annotations

import datetime as dt

import numpy as np
import pyarrow.compute as pc
import pytest

import tensortide as tt

ARRAYS = {
    "jhu_covid": (51, 3, 8, 209),
    "de_covid_hosp_weekly": (16, 6, 7, 104),
    "de_covid_hosp_cumulative": (96, 41, 730),
    "orl_faces": (112, 92, 400),
    "indian_pines": (145, 145, 200),
    "gcss": (62, 422, 343),
}
TABLES = {
    "jhu_covid_revisions": 55_249,
    "de_covid_hosp": 2_873_280,
    "us_flights": 3_000_000,
    "us_baby_names": 1_690_784,
}


@pytest.fixture
def here(real_data, monkeypatch):
    monkeypatch.setenv("TENSORTIDE_DATA", str(real_data))


@pytest.mark.real_data
@pytest.mark.parametrize("name", ARRAYS)
def test_arrays_come_with_labels_source_and_licence(here, name):
    data = getattr(tt.datasets, name)()
    assert data.values.shape == ARRAYS[name]
    assert [len(data.labels[m]) for m in data.modes] == list(data.values.shape)
    assert data.source
    assert data.licence
    assert data.name == name


@pytest.mark.real_data
@pytest.mark.parametrize("name", TABLES)
def test_tables_have_the_columns_they_name(here, name):
    data = getattr(tt.datasets, name)()
    assert data.table.num_rows == TABLES[name]
    assert {*data.modes, data.value} - {None} <= set(data.table.column_names)
    assert data.source
    assert data.licence


@pytest.mark.real_data
def test_missing_stays_missing_and_the_complete_box_has_no_hole(here):
    assert np.isnan(tt.datasets.gcss().values).mean() == pytest.approx(0.718, abs=0.001)
    box = tt.datasets.gcss(complete=True)
    assert box.values.shape == (11, 143, 343)
    assert not np.isnan(box.values).any()


@pytest.mark.real_data
def test_weekly_counts_are_the_daily_ones(here):
    """Nothing is lost: the same total, and a week's first delay holds what its days reported."""
    weekly = tt.datasets.de_covid_hosp_weekly().values
    daily = tt.datasets.de_covid_hosp().table["count"].to_numpy().reshape(16, 6, 730, 41)
    assert weekly.sum() == daily[:, :, :728].sum()
    within = sum(daily[:, :, 7 + d, : 7 - d].sum(axis=2) for d in range(7))
    np.testing.assert_array_equal(weekly[:, :, 0, 1], within)


@pytest.mark.real_data
@pytest.mark.parametrize("name", ["de_covid_hosp_weekly", "de_covid_hosp_cumulative"])
def test_labels_of_the_german_arrays_are_those_of_the_table(here, name):
    """Totals by state and age, from the table by label and from the array by label."""
    table = tt.datasets.de_covid_hosp().table
    sums = table.group_by(["location", "age_group"]).aggregate([("count", "sum")]).to_pylist()
    wanted = {(r["location"], r["age_group"]): r["count_sum"] for r in sums}
    data = tt.datasets.__dict__[name]()
    if name == "de_covid_hosp_cumulative":
        totals = data.values[:, -1].sum(axis=1)
        found = {
            tuple(s.split(" ")): t for s, t in zip(data.labels["stratum"], totals, strict=True)
        }
    else:
        last = table.filter(pc.greater(table["date"], dt.date(2023, 4, 3)))  # cut off by weeks
        for r in last.group_by(["location", "age_group"]).aggregate([("count", "sum")]).to_pylist():
            wanted[r["location"], r["age_group"]] -= r["count_sum"]
        totals = data.values.sum(axis=(2, 3))
        states, ages = data.labels["location"], data.labels["age_group"]
        found = {(s, a): totals[i, j] for i, s in enumerate(states) for j, a in enumerate(ages)}
    assert found == wanted


@pytest.mark.real_data
def test_records_list_the_known_cells(here):
    data = tt.datasets.jhu_covid()
    records = data.records("count")
    assert len(records["count"]) == (~np.isnan(data.values)).sum()
    assert list(records) == ["state", "category", "delay", "date", "count"]


def test_an_absent_file_is_named_with_its_source(tmp_path, monkeypatch):
    monkeypatch.setenv("TENSORTIDE_DATA", str(tmp_path))
    with pytest.raises(tt.FileError, match=r"orl_faces.*no such file.*Olivetti.*TENSORTIDE_DATA"):
        tt.datasets.orl_faces()


def test_another_file_of_that_name_is_refused(tmp_path, monkeypatch):
    monkeypatch.setenv("TENSORTIDE_DATA", str(tmp_path))
    (tmp_path / "us_baby_names.parquet").write_bytes(b"something else")
    with pytest.raises(tt.FileError, match="is not the file that this version knows"):
        tt.datasets.us_baby_names()
