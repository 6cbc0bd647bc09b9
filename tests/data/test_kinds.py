"""Every kind of column of every library works, or is refused with one sentence.

As label and as value, in `fit`, `update` and `predict`; no two labels become one.
"""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from zoneinfo import ZoneInfo

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import tensortide as tt
from tests.models import fingerprint

NO_LABEL, NO_NUMBER, MIXED, FINE = "cannot be labels", "must hold", "mixes types", "record [0-3] .*"
GONE, LOST, FAR = "missing in record 1", "column 'a' has index", "beyond 2.63"
FINER = "finer than microseconds, first in record 0 .*round"
OBJECT = object()
DAY, HOUR = dt.date(2020, 1, 1), dt.datetime(2020, 1, 1, 5)
DAYS = [dt.date(2020, 1, d) for d in (1, 2, 3, 4)]
TIMES = [dt.datetime(2020, 1, d, 6) for d in (1, 2, 3, 4)]
BERLIN = ZoneInfo("Europe/Berlin")
FOUR, WORDS, ONES = [1, 2, 3, 4], list("pqrp"), [1.0, 2.0, 3.0, 4.0]
DECIMALS = [Decimal("1.0"), Decimal(2), Decimal("2.5"), Decimal(3)]


def coded(indices, words, **options):
    return pa.DictionaryArray.from_arrays(pa.array(indices, pa.int8()), words, **options)


def objects(*values):
    return pd.Series(values, dtype=object)


def runs(values):
    return pa.RunEndEncodedArray.from_arrays(pa.array([2, 4], pa.int32()), pa.array(values))


# what the column is, what it holds as labels, what as values: a list, or the refusal
PANDAS = {
    "Int64": (pd.array(FOUR, dtype="Int64"), FOUR, ONES),
    "Int64 NA": (pd.array([1, None, 3, 4], dtype="Int64"), GONE, GONE),
    "boolean NA": (pd.array([True, None, True, True], dtype="boolean"), GONE, GONE),
    "string": (pd.array(WORDS, dtype="string[pyarrow]"), WORDS, NO_NUMBER),
    "period": (pd.period_range("2020-01", periods=4, freq="M"), NO_LABEL, NO_NUMBER),
    "interval": (pd.interval_range(0, 4), NO_LABEL, NO_NUMBER),
    "timedelta": (pd.to_timedelta(FOUR, unit="D"), NO_LABEL, NO_NUMBER),
    "nanoseconds": (pd.to_datetime(FOUR), FINER, NO_NUMBER),
    "whole microseconds": (pd.to_datetime(TIMES).as_unit("ns"), TIMES, NO_NUMBER),
    "zone": (
        pd.to_datetime(TIMES).tz_localize("Europe/Berlin"),
        [t - dt.timedelta(hours=1) for t in TIMES],
        NO_NUMBER,
    ),
    "category": (pd.Categorical(WORDS), WORDS, NO_NUMBER),
    "category of numbers": (pd.Categorical(FOUR), FOUR, ONES),
    "category NA": (pd.Categorical(["p", None, "q", "r"]), GONE, NO_NUMBER),
    "category of nanoseconds": (pd.Categorical(pd.to_datetime(FOUR)), FINER, NO_NUMBER),
    "sparse": (pd.arrays.SparseArray(FOUR), FOUR, ONES),
    "sparse floats": (pd.arrays.SparseArray(ONES), NO_LABEL, ONES),
    "sparse NA": (pd.arrays.SparseArray([1.0, np.nan, 2.0, 3.0]), GONE, GONE),
    "complex": ([1j, 2, 3, 4], "complex", "complex"),
    "long double": (np.array(FOUR, np.longdouble), NO_LABEL, ONES),
    "float16": (np.array(FOUR, np.float16), NO_LABEL, ONES),
    "uint64": (np.array([1, 2, 3, 2**63], np.uint64), FAR, [1.0, 2.0, 3.0, 2.0**63]),
    "number and text": (objects(1, "1", 2, "2"), MIXED, MIXED),
    "flag and number": (objects(True, 1, False, 0), MIXED, MIXED),
    "number and flag": (objects(1, True, 0, False), MIXED, MIXED),
    "flag and NaN": (objects(True, np.nan, False, True), GONE, GONE),
    "text and NaN": (objects("p", np.nan, "q", "r"), GONE, NO_NUMBER),
    "date and time": (objects(DAY, HOUR, DAY, HOUR), "times with dates", "times with dates"),
    "time and NaT": (objects(HOUR, pd.NaT, HOUR, HOUR), GONE, NO_NUMBER),
    "stamps": (objects(*map(pd.Timestamp, FOUR)), FINER, FINER),
    "lists": (objects([1], [2], [3], [4]), NO_LABEL, NO_NUMBER),
    "dicts": (objects({"x": 1}, {}, {}, {}), NO_LABEL, NO_NUMBER),
    "bytes": (objects(b"a", b"b", b"c", b"d"), NO_LABEL, NO_NUMBER),
    "things": (objects(OBJECT, OBJECT, OBJECT, OBJECT), MIXED, MIXED),
    "decimals": (objects(*DECIMALS), NO_LABEL, [1.0, 2.0, 2.5, 3.0]),
}
POLARS = {
    "Decimal": (pl.Series(DECIMALS), NO_LABEL, [1.0, 2.0, 2.5, 3.0]),
    "whole Decimal": (pl.Series(FOUR).cast(pl.Decimal(20, 0)), FOUR, ONES),
    "Enum": (pl.Series(WORDS, dtype=pl.Enum(["q", "r", "p"])), WORDS, NO_NUMBER),
    "Categorical": (pl.Series(WORDS, dtype=pl.Categorical), WORDS, NO_NUMBER),
    "Duration": (pl.Series([dt.timedelta(d) for d in FOUR]), NO_LABEL, NO_NUMBER),
    "List": (pl.Series([[1], [2], [3], [4]]), NO_LABEL, NO_NUMBER),
    "Array": (pl.Series([[1, 2]] * 4, dtype=pl.Array(pl.Int64, 2)), NO_LABEL, NO_NUMBER),
    "Struct": (pl.Series([{"x": 1}] * 4), NO_LABEL, NO_NUMBER),
    "Object": (pl.Series([OBJECT] * 4, dtype=pl.Object), NO_LABEL, NO_NUMBER),
    "Null": (pl.Series([None] * 4), "missing in record 0", "missing in record 0"),
    "Int128": (pl.Series(FOUR, dtype=pl.Int128), FOUR, ONES),
    "large Int128": (
        pl.Series([1, 2, 3, 2**100], dtype=pl.Int128),
        "record 3 is beyond 2.63",
        [1.0, 2.0, 3.0, 2.0**100],
    ),
    "largest Int128": (pl.Series([2**127 - 1] * 4, dtype=pl.Int128), "column 'a'", "column 'a'"),
    "Binary": (pl.Series([b"a", b"b", b"c", b"d"]), NO_LABEL, NO_NUMBER),
    "Time": (pl.Series([dt.time(h) for h in FOUR]), NO_LABEL, NO_NUMBER),
    "nanoseconds": (pl.Series(FOUR).cast(pl.Datetime("ns")), FINER, NO_NUMBER),
    "milliseconds": (pl.Series(TIMES).cast(pl.Datetime("ms")), TIMES, NO_NUMBER),
    "Date": (pl.Series(DAYS), DAYS, NO_NUMBER),
}
ARROW = {
    "large_string": (pa.array(WORDS, pa.large_string()), WORDS, NO_NUMBER),
    "string_view": (pa.array(WORDS, pa.string_view()), WORDS, NO_NUMBER),
    "string_view null": (pa.array(["p", None, "q", "r"], pa.string_view()), GONE, NO_NUMBER),
    "binary": (pa.array([b"a"] * 4), NO_LABEL, NO_NUMBER),
    "binary_view": (pa.array([b"a"] * 4, pa.binary_view()), NO_LABEL, NO_NUMBER),
    "decimal": (pa.array(DECIMALS), NO_LABEL, [1.0, 2.0, 2.5, 3.0]),
    "decimal256": (pa.array(FOUR).cast(pa.decimal256(50, 0)), FOUR, ONES),
    "runs": (runs(["p", "q"]), ["p", "p", "q", "q"], NO_NUMBER),
    "runs of numbers": (runs([1, 2]), [1, 1, 2, 2], [1.0, 1.0, 2.0, 2.0]),
    "runs with null": (runs([None, 2]), "missing in record 0", "missing in record 0"),
    "dictionary null": (coded([0, 1, 0, 2], pa.array(["p", None, "q"])), GONE, NO_NUMBER),
    "dictionary null number": (coded([0, 1, 0, 2], pa.array([1, None, 3])), GONE, GONE),
    "unused null": (coded([0, 0, 0, 2], pa.array(["p", None, "q"])), list("pppq"), NO_NUMBER),
    "negative index": (coded([0, -1, 0, 2], pa.array(list("pqr")), safe=False), LOST, LOST),
    "index beyond": (coded([0, 9, 0, 2], pa.array(list("pqr")), safe=False), LOST, LOST),
    "negative, numbers": (coded([0, -1, 0, 2], pa.array(FOUR), safe=False), LOST, LOST),
    "words twice": (coded([0, 1, 0, 2], pa.array(["p", "p", "q"])), list("pppq"), NO_NUMBER),
    "coded views": (coded([0, 1, 2, 0], pa.array(list("pqr"), pa.string_view())), WORDS, NO_NUMBER),
    "coded codes": (
        coded([0, 1, 2, 0], pa.array(list("pqr")).dictionary_encode()),
        WORDS,
        NO_NUMBER,
    ),
    "coded nanoseconds": (
        coded([0, 1, 2, 0], pa.array(FOUR, pa.timestamp("ns"))),
        FINER,
        NO_NUMBER,
    ),
    "chunks with a null word": (
        pa.chunked_array(
            [coded([0, 1], pa.array(["p", None])), coded([0, 1], pa.array(["q", "r"]))]
        ),
        GONE,
        NO_NUMBER,
    ),
    "chunks with other words": (
        pa.chunked_array(
            [coded([0, 1], pa.array(["p", "q"])), coded([0, 1], pa.array(["r", "p"]))]
        ),
        WORDS,
        NO_NUMBER,
    ),
    "null": (pa.nulls(4), "missing in record 0", "missing in record 0"),
    "list": (pa.array([[1]] * 4), NO_LABEL, NO_NUMBER),
    "map": (pa.array([[("k", 1)]] * 4, pa.map_(pa.string(), pa.int64())), NO_LABEL, NO_NUMBER),
    "float16": (pa.array(np.array(FOUR, np.float16)), NO_LABEL, ONES),
    "duration": (pa.array(FOUR, pa.duration("s")), NO_LABEL, NO_NUMBER),
    "nanoseconds": (pa.array(FOUR, pa.timestamp("ns")), FINER, NO_NUMBER),
    "nanoseconds, zone": (pa.array(FOUR, pa.timestamp("ns", tz="Europe/Berlin")), FINER, NO_NUMBER),
    "far times": (pa.array([2**60, 1, 2, 3], pa.timestamp("s")), "years must lie", NO_NUMBER),
    "parts of days": (pa.array(FOUR, pa.date64()), "no whole days", NO_NUMBER),
    "no UTF-8": (
        pa.Array.from_buffers(
            pa.string(),
            4,
            [None, pa.array([0, 1, 2, 3, 4], pa.int32()).buffers()[1], pa.py_buffer(b"\xff\xfeab")],
        ),
        "cannot be read",
        "no text",
    ),
    "uuid": (pa.array([b"0123456789abcdef"] * 4, pa.uuid()), NO_LABEL, NO_NUMBER),
}
LISTS = {
    "date and time": (
        [DAY, HOUR, DAY, HOUR],
        "record 0 .*all of them as times",
        "times with dates",
    ),
    "time and date": (
        [HOUR, DAY, HOUR, DAY],
        "record 1 .*all of them as times",
        "times with dates",
    ),
    "zone and none": ([TIMES[0].replace(tzinfo=dt.UTC), *TIMES[1:]], "time zone.*record 1", "zone"),
    "none and zone": ([*TIMES[:3], TIMES[3].replace(tzinfo=dt.UTC)], "time zone.*record 3", "zone"),
    "the hour twice": (
        [dt.datetime(2020, 10, 25, 2, 30, fold=f, tzinfo=BERLIN) for f in (0, 1, 0, 1)],
        [dt.datetime(2020, 10, 25, h, 30) for h in (0, 1, 0, 1)],
        NO_NUMBER,
    ),
    "stamps": ([pd.Timestamp(n) for n in FOUR], FINER, FINER),
    "number and flag": ([1, True, 0, False], MIXED, MIXED),
    "flag and number": ([True, 1, False, 0], MIXED, MIXED),
    "NumPy's flag and number": ([np.True_, 1, np.False_, 0], MIXED, MIXED),
    "NumPy's number and flag": ([np.int64(1), True, 0, False], MIXED, MIXED),
    "number and text": ([1, "1", 2, "2"], MIXED, MIXED),
    "NumPy's number and text": ([np.int64(1), "1", 2, "2"], MIXED, MIXED),
    "NumPy's text and number": ([np.str_("1"), 1, "2", 2], MIXED, MIXED),
    "NumPy's numbers": ([np.int64(n) for n in FOUR], FOUR, ONES),
    "NumPy's dates": (list(np.array(DAYS, "datetime64[D]")), DAYS, NO_NUMBER),
    "NumPy's nanoseconds": (list(np.array(FOUR, "datetime64[ns]")), FINER, NO_NUMBER),
    "far units": (
        [np.datetime64("9999-01-01"), np.datetime64(1000, "ns"), *np.array(DAYS[:2], "M8[D]")],
        "no single unit",
        "no single unit",
    ),
    "months": (np.array(["2020-01"] * 4, "datetime64[M]"), "unit", "unit"),
    "complex": (np.array([1j, 2, 3, 4]), "complex", "complex"),
    "table": (np.ones((4, 2)), "1-dimensional", "1-dimensional"),
    "masked": (np.ma.array(FOUR, mask=[0, 1, 0, 0]), GONE, GONE),
    "set": ({1, 2, 3, 4}, "must be a list or an array", "must be a list or an array"),
    "dict": (dict.fromkeys(FOUR), "must be a list or an array", "must be a list or an array"),
    "huge": ([1, 2, 3, 2**70], MIXED, MIXED),
    "decimals": ([Decimal(1), Decimal("1.0"), Decimal(2), Decimal(3)], NO_LABEL, [1, 1, 2, 3]),
    "NUL": (["a", "a\0", "b", "c"], ["a", "a\0", "b", "c"], NO_NUMBER),
    "sparse series": (pd.Series(pd.arrays.SparseArray(FOUR)), FOUR, ONES),
    "Int128 series": (pl.Series(FOUR, dtype=pl.Int128), FOUR, ONES),
}
DUCKDB = {
    "n::HUGEINT": (FOUR, ONES),
    "n::UBIGINT": (FOUR, ONES),
    "n::DECIMAL(9, 2)": (NO_LABEL, ONES),
    "'a'::BLOB": (NO_LABEL, NO_NUMBER),
    "INTERVAL 1 DAY": (NO_LABEL, NO_NUMBER),
    "[n]": (NO_LABEL, NO_NUMBER),
    "{'x': n}": (NO_LABEL, NO_NUMBER),
    "DATE '2019-12-31' + n::INTEGER": (DAYS, NO_NUMBER),
    "TIMESTAMP_NS '2020-01-01 00:00:00.000000001'": (FINER, NO_NUMBER),
    "'p'::ENUM('q', 'p')": (["p"] * 4, NO_NUMBER),
    "TIME '01:00:00'": (NO_LABEL, NO_NUMBER),
    "n > 2": ([False, False, True, True], [0.0, 0.0, 1.0, 1.0]),
    "NULL": ("missing in record 0", "missing in record 0"),
    "CASE WHEN n <> 2 THEN n END": (GONE, GONE),
}


def query(what):
    return duckdb.sql(
        f"SELECT {what} AS a, 'x' AS b, 'y' AS c, 2.0 AS v "
        "FROM (VALUES (1), (2), (3), (4)) AS t(n) ORDER BY n"
    )


MAKERS = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "arrow": pa.table, "dict": dict}
KINDS = {"pandas": PANDAS, "polars": POLARS, "arrow": ARROW, "dict": LISTS}
CASES = [
    pytest.param(MAKERS[library], *case, id=f"{library}: {name}")
    for library, kinds in KINDS.items()
    for name, case in kinds.items()
]
CASES += [
    pytest.param(lambda columns: query(columns["a"]), what, *expected, id=f"duckdb: {what}")
    for what, expected in DUCKDB.items()
]
OTHERS = {"b": ["x"] * 4, "c": ["y"] * 4, "v": [2.0] * 4}


def model():
    return tt.OnlineCP(1, modes=["a", "b"], value="v", duplicates="mean")


def known():
    return model().fit({"a": ["p", "q"], "b": ["x", "z"], "v": [1.0, 2.0]}, max_sweeps=2)


@pytest.mark.parametrize(("make", "column", "labels", "values"), CASES)
def test_every_kind_of_column_is_labels_or_is_refused_with_a_sentence(make, column, labels, values):
    records = make({"a": column, **OTHERS})
    if isinstance(labels, str):
        with pytest.raises(tt.InputError, match=labels):
            model().fit(records)
        before = known()
        state = fingerprint(before)
        with pytest.raises(tt.InputError, match=labels):
            before.update(records)
        with pytest.raises(tt.InputError, match=labels):
            before.predict(records)
        assert fingerprint(before) == state
        return
    fitted = model().fit(records, max_sweeps=2)
    assert fitted.labels_["a"].tolist() == list(dict.fromkeys(labels))
    fitted.update(records)
    assert fitted.shape_ == (len(set(labels)), 1)
    assert np.isfinite(fitted.predict(records)).all()


@pytest.mark.parametrize(("make", "column", "labels", "values"), CASES)
def test_every_kind_of_column_is_values_or_is_refused_with_a_sentence(make, column, labels, values):
    records = make({"a": column, **OTHERS})
    fresh = tt.OnlineCP(1, modes=["b", "c"], value="a", duplicates="mean")
    before = tt.OnlineCP(1, modes=["b", "c"], value="a", duplicates="mean")
    before.fit({"b": ["x", "z"], "c": ["y", "y"], "a": [1.0, 2.0]}, max_sweeps=2)
    if isinstance(values, str):
        state = fingerprint(before)
        for learn in (fresh.fit, before.update):
            with pytest.raises(tt.InputError, match=values):
                learn(records)
        assert fingerprint(before) == state
        return
    fresh.fit(records, max_sweeps=2)
    before.update(records)
    stored = before._model.store.entries.all_values()
    np.testing.assert_allclose(stored[0], np.mean(values), rtol=1e-15)


@pytest.mark.parametrize(
    "make",
    [
        lambda names: pd.DataFrame([["p", "x", "y", 1.0]], columns=names),
        lambda names: pa.Table.from_arrays([pa.array(["p"])] * 3 + [pa.array([1.0])], names),
        lambda names: duckdb.sql(f"SELECT 1 AS {', 2 AS '.join(names)}"),
        lambda names: {"a": ["p"], 1: ["x"], "1": ["y"], "v": [1.0]},
    ],
    ids=["pandas", "arrow", "duckdb", "dict"],
)
def test_two_columns_of_one_name_are_refused(make):
    with pytest.raises(tt.InputError, match="there are two columns '[b1]'"):
        tt.OnlineCP(1, value="v").fit(make(["a", "b", "b", "v"]))


def test_a_column_called_like_an_attribute_is_a_column():
    frame = pd.DataFrame({"column_names": ["p", "q"], "columns": ["x", "y"], "v": [1.0, 2.0]})
    assert tt.OnlineCP(1, value="v").fit(frame).shape_ == (2, 2)


@pytest.mark.parametrize(
    "values", [np.array([1j]), np.array([1], "m8[s]"), np.array([1], "M8[s]"), [10**400]]
)
def test_a_batch_takes_real_numbers_only(values):
    with pytest.raises(tt.InputError, match="must hold"):
        tt.Batch([[0, 0]], values)


def test_a_masked_value_of_a_batch_is_missing():
    with pytest.raises(tt.InputError, match="missing .* in record 1"):
        tt.Batch([[0, 0], [0, 1]], np.ma.array([1, 2], mask=[False, True]))
