"""Results have names; they compare by identity; what they were before works with a warning."""

from __future__ import annotations

import copy

import numpy as np
import pytest

import tensortide as tt
from tensortide.nowcast import Nowcaster
from tests.nowcast.examples import START, simulated


@pytest.fixture(scope="module")
def nowcast():
    triangle = simulated(30)
    nowcaster = Nowcaster(1, ())
    for day in range(20, 30):
        found = nowcaster.update(triangle.as_of(START + day))
    return found


@pytest.fixture(scope="module")
def replayed():
    dates = [START + 30, START + 36]
    return tt.nowcast.replay(
        simulated(60), ["chain-ladder", "unadjusted"], dates, warm_up=2, progress=False
    )


def test_quantiles_have_names_and_say_what_their_axes_are(nowcast):
    found = nowcast.quantiles((0.1, 0.5, 0.9))
    n_units, n_dates = len(found.units.keys), len(found.dates)
    assert found.reported.shape == found.mean.shape == (n_units, n_dates)
    assert found.values.shape == (n_units, n_dates, 3)
    assert found.levels == (0.1, 0.5, 0.9)
    assert found.units is nowcast.units
    assert found.dates[0] == nowcast.as_of_date
    assert (np.diff(found.dates).astype(int) == -1).all()
    np.testing.assert_array_equal(found.reported[0], nowcast.triangle.totals()[::-1][:n_dates])
    assert repr(found) == f"<Quantiles: {n_units} units, {n_dates} dates, 3 levels>"


def test_the_table_of_a_nowcast_has_the_same_dates_and_quantiles(nowcast):
    found = nowcast.quantiles()
    table = nowcast.to_table(by=[])
    assert table["date"].to_pylist() == found.dates.astype(object).tolist()
    np.testing.assert_array_equal(table["median"], found.values[0, :, 3])


def test_quantiles_unpack_as_before_and_say_what_to_write(nowcast):
    found = nowcast.quantiles()
    with pytest.warns(DeprecationWarning, match=r"write \.reported, \.mean, \.values in place of"):
        reported, mean, values = found
    assert reported is found.reported
    assert mean is found.mean
    assert values is found.values
    with pytest.warns(DeprecationWarning, match=r"write \.mean in place of \[1\]"):
        assert found[1] is found.mean
    with pytest.warns(DeprecationWarning, match=r"write \.mean, \.values in place of a slice"):
        assert found[1:] == (found.mean, found.values)
    with pytest.warns(DeprecationWarning, match="in place of unpacking it"):
        assert len(found) == 3
    with pytest.raises(IndexError):
        found[3]


def test_the_warning_points_at_the_line_that_is_to_be_changed(nowcast):
    found = nowcast.quantiles()
    with pytest.warns(DeprecationWarning, match="is no tuple any more") as by_place:
        found[0]
    with pytest.warns(DeprecationWarning, match="is no tuple any more") as unpacked:
        _, _, _ = found
    assert [one.filename for one in (*by_place, *unpacked)] == [__file__] * 2


def test_scored_and_difference_have_names_and_unpack_as_before(replayed):
    scored, difference = replayed.scored, replayed.difference("chain-ladder", "unadjusted")
    with pytest.warns(DeprecationWarning, match=r"\.final, \.asked"):
        assert tuple(scored) == (scored.final, scored.asked)
    with pytest.warns(DeprecationWarning, match=r"\.relative, \.low, \.high"):
        relative, low, high = difference
    assert (relative, low, high) == (difference.relative, difference.low, difference.high)
    with pytest.warns(DeprecationWarning, match="compare its attributes"):
        assert scored == (scored.final, scored.asked)
    assert scored


@pytest.mark.parametrize(
    "name",
    ["Triangle", "Nowcast", "Quantiles", "Replay", "ScoreDifference", "ScoredNowcasts", "Scores",
     "Nowcaster"],
)  # fmt: skip
def test_what_holds_arrays_is_compared_by_identity_and_has_a_hash(name, nowcast, replayed):
    results = {
        "Triangle": nowcast.triangle,
        "Nowcast": nowcast,
        "Quantiles": nowcast.quantiles(),
        "Replay": replayed,
        "ScoreDifference": replayed.difference("chain-ladder", "unadjusted"),
        "ScoredNowcasts": replayed.scored,
        "Scores": replayed.scores("chain-ladder"),
        "Nowcaster": Nowcaster(1, ()),
    }
    one = results[name]
    other = copy.deepcopy(one)
    assert isinstance(one, getattr(tt.nowcast, name))
    assert one in [other, one]
    assert one != other
    assert len({one, other}) == 2
