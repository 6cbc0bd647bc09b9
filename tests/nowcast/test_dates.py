"""The prior of the dates: a local line, how far it is trusted, and what comes of it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tensortide as tt
from tensortide.nowcast.count_model.date_prior import STEADY, _line, date_holds, date_prior
from tensortide.nowcast.count_model.start import first_state
from tensortide.nowcast.count_model.state import Settings
from tensortide.nowcast.ladders import ChainLadder
from tensortide.nowcast.snapshot import Snapshot
from tests.nowcast.examples import simulated

N_DATES, MAX_DELAY = 90, 12


def curve_triangle(size, *, seed=0):
    """Three places that report at different speeds; `size` is the expected count of each date."""
    rng = np.random.default_rng(seed)
    shares = np.exp(-np.arange(MAX_DELAY + 1) / np.array([2.0, 3.0, 4.0])[:, None])
    shares /= shares.sum(axis=1, keepdims=True)
    mean = np.array([0.6, 0.3, 0.1])[:, None, None] * size[None, :, None] * shares[:, None]
    counts = rng.poisson(mean)
    place, day, delay = np.nonzero(counts)
    table = {
        "place": np.array(["a", "b", "c"])[place],
        "date": np.datetime64("2024-01-01") + day,
        "delay": delay,
        "count": counts[place, day, delay],
    }
    return tt.nowcast.Triangle.from_table(
        table, reference="date", delay="delay", count="count", strata=["place"],
        max_delay=MAX_DELAY,
    )  # fmt: skip


def error(nowcaster, triangle, first, last):
    """Mean absolute error of the five newest dates, all places together."""
    truth, found = triangle.totals(), []
    for day in range(first - 25, last):
        nowcast = nowcaster.update(triangle.as_of(np.datetime64("2024-01-01") + day))
        if day >= first:
            now = nowcast.quantiles().mean[0, :5]
            found.append(np.abs(now - truth[day - np.arange(5)]).mean())
    return np.mean(found)


@settings(deadline=None, max_examples=25)
@given(seed=st.integers(0, 10_000), n=st.integers(3, 12))
def test_the_line_is_a_weighted_ridge_regression(seed, n):
    rng = np.random.default_rng(seed)
    level, weight = 0.1 * rng.standard_normal(n), rng.random(n) + 0.1
    at = np.arange(n)
    apart = at[None, :] - at[:, None]
    found = _line(level, np.tile(weight, (n, 1)), apart)
    middle = np.average(at, weights=weight)
    design = np.column_stack([np.ones(n), at - middle])
    ridge = np.diag([0.0, STEADY * weight.sum()])
    normal = design.T @ (weight[:, None] * design) + ridge
    height, slope = np.linalg.solve(normal, design.T @ (weight * level))
    if abs(slope) < 0.1:  # steeper ones are cut
        np.testing.assert_allclose(found, height + slope * (at - middle), atol=1e-10)


def parts(triangle, day):
    snapshot = Snapshot(triangle=triangle.as_of(np.datetime64("2024-01-01") + day), window=60)
    start = first_state(snapshot, 2, 0)
    prior = date_prior(start.dates, snapshot.n_dates, snapshot.weekdays, start.delays)
    holds = date_holds(snapshot, Settings())
    return snapshot, prior, prior.adapt(snapshot, start, holds), holds


def test_a_prior_that_the_reports_confirm_is_left_alone():
    _, prior, adapted, _ = parts(curve_triangle(np.full(N_DATES, 80.0)), 70)
    change = adapted.mean.sum(axis=1) / prior.mean.sum(axis=1)
    assert np.median(np.abs(change - 1.0)) < 1e-9
    assert np.abs(change - 1.0).max() < 0.25


def test_reports_that_contradict_replace_the_total_and_keep_the_mix():
    size = np.where(np.arange(N_DATES) < 68, 5.0, 500.0)
    snapshot, prior, adapted, holds = parts(curve_triangle(size), 68)
    before, after = (p.mean.sum(axis=1) for p in (prior, adapted))
    assert before[-1] < 20.0
    assert 200.0 < after[-1] < 700.0
    np.testing.assert_allclose(after[:-1], before[:-1], rtol=0.3)
    mixes = [p.mean[-1] / p.mean[-1].sum() for p in (prior, adapted)]
    np.testing.assert_allclose(*mixes)
    assert snapshot.by_date[-1] < 300.0
    assert holds[-1] == Settings().new


T = np.arange(N_DATES)
CURVES = {
    # the bound is the error beside chain-ladder's, which assumes nothing of the dates
    "outbreak": (np.where(T < 35, 0.2, np.minimum(0.2 * 2 ** ((T - 35) / 4), 200.0)), 65, 80, 1.5),
    "jump": (np.where(T < 55, 0.3, 100.0), 55, 75, 1.3),
    "large numbers": (20_000 * np.exp(0.8 * np.sin(T / 14)), 60, 78, 1.5),
    # the line overshoots a sharp peak for some days
    "fall": (1000 * np.exp(-np.abs(T - 58) / np.where(T < 58, 20, 8)), 54, 76, 2.4),
    "steady": (np.full(N_DATES, 200.0), 60, 78, 1.0),
}


@pytest.mark.parametrize("name", CURVES)
def test_the_prior_does_not_run_away_with_the_dates(name):
    size, first, last, bound = CURVES[name]
    triangle = curve_triangle(size)
    mine = error(tt.nowcast.Nowcaster(), triangle, first, last)
    assert mine < bound * error(tt.nowcast.Nowcaster((), [ChainLadder()]), triangle, first, last)


def test_the_first_day_has_a_prior_too():
    triangle = simulated(5)
    nowcast = tt.nowcast.Nowcaster(2).update(triangle.as_of(triangle.days()[0]))
    assert np.isfinite(nowcast.quantiles().values).all()
