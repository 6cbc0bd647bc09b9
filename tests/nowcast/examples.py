"""Small triangles for tests: simulated reports with strata, weekdays, corrections."""

from __future__ import annotations

import numpy as np

from tensortide.nowcast.triangle import Triangle

START = np.datetime64("2021-11-01")


def simulated(days=80, places=3, max_delay=12, seed=0, rate=20.0, correct=0.02) -> Triangle:
    """Poisson counts of places with their own delays, waves and weekdays; complete at the end."""
    rng = np.random.default_rng(seed)
    date, delay = np.arange(days), np.arange(max_delay + 1)
    wave = rate * np.exp(0.8 * np.sin(date / 14.0)) * np.where((date % 7) >= 5, 0.5, 1.0)
    sizes = np.array([1.0, 0.4, 0.15, 0.1, 0.1])[:places]
    speeds = np.linspace(2.0, 4.0, places)
    shape = np.exp(-delay / speeds[:, None])
    shape /= shape.sum(axis=1, keepdims=True)
    mean = sizes[:, None, None] * wave[None, :, None] * shape[:, None, :]
    counts = rng.poisson(mean).astype(float)
    back = rng.random(counts.shape) < correct
    counts[back & (counts == 0)] = -1.0
    place, t, d = np.nonzero(counts)
    first = int(START.astype("datetime64[D]").astype(int))
    labels = (tuple(f"p{i}" for i in range(places)),)
    return Triangle(
        strata=("place",), labels=labels, codes=place[:, None], dates=t, delays=d,
        counts=counts[place, t, d], first=first, last=first + days - 1 + max_delay,
        max_delay=max_delay,
    )  # fmt: skip


def without_strata(triangle: Triangle) -> Triangle:
    """The same counts summed over strata."""
    from dataclasses import replace

    plain = replace(triangle, strata=(), labels=(), codes=triangle.codes[:, :0])
    return plain.summed()
