"""Records from every kind of table give the same positions; labels have one type per mode."""

from __future__ import annotations

import datetime as dt

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tensortide.data.labels import NamedLabels
from tensortide.data.modes import Modes
from tensortide.errors import InputError

DATES = [dt.date(2026, 1, 2), dt.date(2026, 1, 1), dt.date(2026, 1, 2)]
COLUMNS = {
    "place": ["Kiel", "Ulm", "Kiel"],
    "date": DATES,
    "age": [3, 1, 3],
    "urgent": [True, False, True],
    "count": [1.0, 2.5, 4.0],
}
NAMES = ("place", "date", "age", "urgent")


def tables():
    arrow = pa.table(COLUMNS)
    frame = pd.DataFrame(COLUMNS)
    stamps = frame.assign(
        date=pd.to_datetime(frame["date"]), place=frame["place"].astype("category")
    )
    return {
        "dict of lists": COLUMNS,
        "pyarrow": arrow,
        "pandas": frame,
        "pandas with datetime64 and categories": stamps,
        "polars": pl.DataFrame(COLUMNS),
        "polars lazy": pl.LazyFrame(COLUMNS),
        "duckdb": duckdb.from_arrow(arrow),
        "dict of arrays": {
            n: np.array(c, dtype="datetime64[D]" if n == "date" else None)
            for n, c in COLUMNS.items()
        },
        "dict of series": {n: pl.Series(c) for n, c in COLUMNS.items()},
    }


@pytest.mark.parametrize("kind", list(tables()))
def test_every_table_gives_the_same_positions_and_labels(kind):
    modes = Modes.for_records(tables()[kind], NAMES, "count")
    arrival = modes.read(tables()[kind], "count")
    when = "datetime" if "datetime64 and" in kind else "date"
    assert [labels.kind for labels in modes.labels] == ["text", when, "integer", "boolean"]
    decoded = [[fresh[i] for i in arrival.coords[:, m]] for m, fresh in enumerate(arrival.fresh)]
    midnights = [dt.datetime.combine(d, dt.time()) for d in DATES]
    expected = COLUMNS | ({"date": midnights} if when == "datetime" else {})
    assert decoded == [expected[n] for n in NAMES]
    assert arrival.values.tolist() == COLUMNS["count"]
    assert arrival.new_shape == (2, 2, 2, 2)


@given(st.lists(st.lists(st.text(max_size=3), min_size=1, max_size=6), min_size=1, max_size=5))
def test_labels_keep_their_position_for_ever(batches):
    labels = NamedLabels("text")
    place: dict[str, int] = {}
    for batch in batches:
        modes = Modes(["a", "b"], [labels, NamedLabels("text")])
        arrival = modes.read({"a": batch, "b": batch, "value": [0.0] * len(batch)}, "value")
        labels.append(arrival.fresh[0])
        for label, position in zip(batch, arrival.coords[:, 0].tolist(), strict=True):
            assert place.setdefault(label, position) == position
    assert labels.array().tolist() == sorted(place, key=place.__getitem__)


def test_reading_does_not_remember_new_labels():
    modes = Modes.for_records(COLUMNS, NAMES, "count")
    modes.read(COLUMNS, "count")
    assert modes.shape == (0, 0, 0, 0)


def test_append_is_undone_however_far_it_got():
    labels = NamedLabels("text", ["x"])
    labels.append(["y", "z"])
    labels.truncate(1)
    assert labels.array().tolist() == ["x"]
    labels.append(["y"])
    again = Modes(["a", "b"], [labels, NamedLabels("text", ["q"])])
    assert again.cells({"a": ["y", "x"], "b": ["q", "q"]})[:, 0].tolist() == [1, 0]


def test_unused_categories_are_no_labels():
    frame = pd.DataFrame(
        {
            "a": pd.Categorical(["u", "w"], categories=["u", "v", "w"]),
            "b": [1, 2],
            "value": [1.0, 2.0],
        }
    )
    modes = Modes.for_records(frame, None, "value")
    assert modes.read(frame, "value").fresh[0] == ["u", "w"]


def test_times_within_a_day_are_datetimes():
    stamps = [dt.datetime(2026, 1, 1, 6), dt.datetime(2026, 1, 1, 7)]
    modes = Modes.for_records({"t": stamps, "b": ["x", "y"], "value": [1, 2]}, None, "value")
    assert modes.labels[0].kind == "datetime"
    assert modes.names == ("t", "b")


@pytest.mark.parametrize(
    ("records", "sentence"),
    [
        ({"a": ["x"], "value": [1.0]}, "no column 'b'"),
        (
            {"a": ["x"], "b": ["y"], "val": [1.0]},
            "no column 'value'; the columns are 'a', 'b', 'val'",
        ),
        ({"a": [1.5], "b": ["y"], "value": [1.0]}, "cannot be labels"),
        (
            {"a": ["x", None], "b": ["y", "y"], "value": [1.0, 2.0]},
            "mode 'a' is missing in record 1",
        ),
        ({"a": ["x", 1], "b": ["y", "y"], "value": [1.0, 2.0]}, "mixes types"),
        ({"a": ["x", "x"], "b": ["y"], "value": [1.0]}, "different lengths"),
        ({"a": ["x"], "b": ["y"], "value": ["many"]}, "must hold numbers"),
        ({"a": ["x"], "b": ["y"], "value": [None]}, "missing in record 0"),
    ],
)
def test_bad_tables_get_a_sentence(records, sentence):
    with pytest.raises(InputError, match=sentence):
        Modes(["a", "b"], [NamedLabels("text"), NamedLabels("text")]).read(records, "value")


def test_label_of_another_type_names_mode_and_label():
    modes = Modes(["a", "b"], [NamedLabels("text", ["x"]), NamedLabels("text", ["y"])])
    with pytest.raises(InputError, match="mode 'a' has text labels.*integer labels.*7"):
        modes.read({"a": [7], "b": ["y"], "value": [1.0]}, "value")
