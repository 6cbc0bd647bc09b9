"""Nowcasts that begin with the first days of data, go on for long, or look far ahead."""

from __future__ import annotations

import numpy as np
import pytest

from tensortide.nowcast import Nowcaster, Settings, Triangle
from tests.nowcast.examples import START

SHARES = np.array([0.3, 0.25, 0.15, 0.1, 0.08, 0.05, 0.04, 0.03])


def steady(days: int, rate: float, max_delay: int = 7) -> Triangle:
    """As many counts every day, whose delays are known exactly."""
    rng = np.random.default_rng(3)
    counts = rng.poisson(0.5 * rate * SHARES * np.ones((2, days, 1)))
    place, t, d = np.nonzero(counts)
    table = {"place": place, "date": START + t, "delay": d, "n": counts[place, t, d]}
    whole = Triangle.from_table(
        table, reference="date", delay="delay", count="n", strata=["place"], max_delay=max_delay
    )
    return whole.as_of(START + days - 1)


def newest(triangle: Triangle, nowcaster: Nowcaster, first: int) -> np.ndarray:
    """The nowcast of the four newest dates, stepped from a first day on."""
    for day in range(first, triangle.n_dates):
        nowcast = nowcaster.update(triangle.as_of(START + day))
    return nowcast.quantiles().mean[0, :4]


@pytest.mark.parametrize("economy", [False, True])
def test_a_nowcaster_that_began_on_the_first_day_is_not_held_down_by_it(economy):
    """Delays were unknown then, and large counts give yesterday a large weight."""
    triangle = steady(60, 80_000.0)
    found = newest(triangle, Nowcaster(2, (), economy=economy), 1)
    np.testing.assert_allclose(found, 80_000.0, rtol=0.03)


def test_the_factors_of_the_economy_model_do_not_drift():
    nowcaster = Nowcaster(1, (), economy=True)
    found = newest(steady(260, 80_000.0), nowcaster, 30)
    np.testing.assert_allclose(found, 80_000.0, rtol=0.02)
    state = nowcaster._members[0].state
    assert state is not None
    np.testing.assert_allclose(state.dates[-20:].sum(axis=1), 80_000.0, rtol=0.1)


@pytest.mark.parametrize("made", [{}, {"ranks": 3, "ladders": ()}, {"economy": True}])
def test_delays_that_nobody_can_have_seen_add_nothing(made):
    """A maximum delay far beyond the data says that nothing more is known, not that more comes."""
    nowcasters = [Nowcaster(**made) for _ in range(2)]
    near, far = (
        newest(steady(50, 60.0, most), nowcaster, 46)
        for most, nowcaster in zip((7, 300), nowcasters, strict=True)
    )
    np.testing.assert_allclose(far, near, rtol=0.12)
    oldest = nowcasters[1].nowcast().today.unseen[0, -1]  # no date is older than this one
    assert abs(oldest) < 1e-9


def test_what_the_economy_model_carries_is_what_its_window_has():
    """Sums that fade cannot lose dates that leave the window, if nobody takes them away."""
    settings = Settings(window=20, fade=30.0)
    nowcaster = Nowcaster(1, (), economy=True, settings=settings)
    newest(steady(60, 500.0), nowcaster, 25)
    state = nowcaster._members[0].state
    assert state is not None
    assert state.margin is not None
    assert state.reported is not None
    ages = np.arange(len(state.margin) - 1, -1, -1)[:, None] - np.arange(8)
    weighted = state.margin * np.where(ages >= 0, np.exp(-np.maximum(ages, 0) / 30.0), 0.0)
    first = np.datetime64(int(state.first), "D")
    weekday = (first.astype(int) + 3 + np.arange(len(weighted))) % 7
    for k in range(7):
        np.testing.assert_allclose(
            state.reported.sum(axis=0)[k], weighted[weekday == k].sum(axis=0), rtol=1e-9
        )


def test_settings_of_the_economy_model_fade_unless_told_otherwise():
    plain = newest(steady(40, 2_000.0), Nowcaster(2, (), economy=True), 30)
    given = Nowcaster(2, (), economy=True, settings=Settings(window=120))
    np.testing.assert_allclose(newest(steady(40, 2_000.0), given, 30), plain, rtol=1e-12)


def test_intervals_forget_what_was_nowcast_before_all_delays_were_seen():
    """Those errors are of another kind: what nobody could foresee."""
    triangle = steady(90, 400.0)
    widths = []
    for first in (1, 40):
        nowcaster = Nowcaster(1, ())
        for day in range(first, 90):
            nowcast = nowcaster.update(triangle.as_of(START + day))
        found = nowcast.quantiles((0.025, 0.5, 0.975)).values[0]
        widths.append(found[:, 2] - found[:, 0])
    assert (widths[0] < 1.5 * widths[1]).all()
