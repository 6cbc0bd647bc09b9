"""Columns that Arrow knows and few people use, on their way into a run."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tensortide as tt

PLACES = ["A", "B", "A", "B"]


def tables():
    codes = pa.array([0, 1, 0, 1], pa.int32())
    views = pa.array(PLACES, pa.string_view())
    yield "views", views
    yield (
        "coded views",
        pa.DictionaryArray.from_arrays(codes, pa.array(["A", "B"], pa.string_view())),
    )
    yield "runs", pa.RunEndEncodedArray.from_arrays(pa.array([1, 2, 3, 4], pa.int32()), PLACES)


def refused():
    words = pa.array(["A", None])
    codes = pa.array([0, 1, 0, 1], pa.int32())
    yield "no word", pa.DictionaryArray.from_arrays(codes, words), "is missing"
    far = pa.DictionaryArray.from_arrays(pa.array([0, 9, 0, 1], pa.int32()), ["A", "B"], safe=False)
    yield "far index", far, "has index 9 in record 1"


def table(place):
    return pa.table({"place": place, "day": [1, 1, 2, 2], "n": [1.0, 2.0, 3.0, 4.0]})


@pytest.mark.parametrize(("name", "place"), list(tables()), ids=lambda x: str(x)[:11])
def test_odd_text_is_text(tmp_path, name, place):
    made = {"modes": ["place", "day"], "value": "n"}
    with tt.Tracker.create(tmp_path / "run", 1, **made) as run:
        assert run.track(table(place), name="memory").records == 4
        assert run.model.labels_["place"].tolist() == ["A", "B"]
        reader = pa.RecordBatchReader.from_batches(table(place).schema, table(place).to_batches())
        assert run.track(reader).records == 4
        try:
            pq.write_table(table(place), tmp_path / "a.parquet")
        except pa.ArrowNotImplementedError:
            return  # not in files yet
        assert run.track(tmp_path / "a.parquet").records == 4
        assert run.model.labels_["place"].tolist() == ["A", "B"]


@pytest.mark.parametrize(("name", "place", "message"), list(refused()), ids=lambda x: str(x)[:9])
def test_odd_columns_are_refused_with_a_sentence(tmp_path, name, place, message):
    made = {"modes": ["place", "day"], "value": "n"}
    with tt.Tracker.create(tmp_path / "run", 1, **made) as run:
        with pytest.raises(tt.InputError, match=message):
            run.track(table(place))
        assert not run.fitted
