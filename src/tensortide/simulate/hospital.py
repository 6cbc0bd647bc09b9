"""A reporting stream as hospitals send it: waves, weekdays, delays, corrections, new places.

Counts of admissions by place, age group, date and delay.  Every day brings a new date and the
late reports of earlier ones; some published counts are corrected, and places join on the way.

>>> days = list(admissions(days=30, seed=1))
>>> len(days), sorted(days[0])
(30, ['age', 'count', 'date', 'delay', 'place', 'reported'])
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from typing import Any

import numpy as np

from tensortide.arrays import Floats
from tensortide.errors import InputError

PLACES = (
    "Berlin", "Bremen", "Dresden", "Essen", "Hamburg", "Kiel", "Leipzig", "Mainz", "Munich",
    "Potsdam", "Rostock", "Ulm",
)  # fmt: skip
AGES = ("0-4", "5-14", "15-34", "35-59", "60-79", "80+")
N_DELAYS = 8
N_LATE = 3  # places that join on the way
FIRST = dt.date(2026, 1, 5)

#: Three diseases that hit the ages differently, each with its season (days) and its delays.
_AGES = np.array([[0.9, 0.5, 0.2, 0.15, 0.2, 0.3], [0.1, 0.3, 0.9, 0.8, 0.4, 0.2],
                  [0.05, 0.05, 0.15, 0.4, 1.0, 1.3]])  # fmt: skip
_SEASONS = ((70.0, 0.1), (95.0, 0.45), (130.0, 0.8))
_FADING = (0.9, 1.6, 2.6)
_WEEKDAYS = np.array([1.15, 1.1, 1.05, 1.0, 1.0, 0.75, 0.6])


def expected(days: int, *, seed: int = 0) -> Floats:
    """Return the mean of every cell: place x age x date x delay."""
    rng = np.random.default_rng([seed, 17])
    sizes = rng.gamma(4.0, 6.0, (len(PLACES), 1)) * (0.4 + rng.random((len(PLACES), 3)))
    dates = np.arange(days)
    waves = np.stack(
        [1.15 + np.cos(2 * np.pi * (dates / length - shift)) for length, shift in _SEASONS], axis=1
    )
    waves *= _WEEKDAYS[dates % 7][:, None]
    delays = np.exp(-np.arange(N_DELAYS)[:, None] / np.array(_FADING))
    delays /= delays.sum(axis=0)
    return np.asarray(np.einsum("pr,ar,dr,kr->padk", sizes, _AGES.T, waves, delays))


def admissions(
    days: int = 120, *, seed: int = 0, corrected: float = 0.01
) -> Iterator[dict[str, Any]]:
    """Yield the table of each report day, oldest first.

    A share `corrected` of the counts of the last three weeks is published anew every day,
    changed by a fifth at most.
    """
    if days < 1:
        raise InputError(f"days must be at least 1, not {days!r}.")
    rng = np.random.default_rng([seed, 18])
    counts = rng.poisson(expected(days, seed=seed)).astype(float)
    joined = np.zeros(len(PLACES), int)
    joined[-N_LATE:] = (np.arange(1, N_LATE + 1) * days) // (N_LATE + 1)
    calendar = np.array([FIRST + dt.timedelta(days=d) for d in range(days)])
    for today in range(days):
        place, age, date, delay = np.indices(counts.shape).reshape(4, -1)
        due = (date + delay == today) & (joined[place] <= today)
        late = (date + delay < today) & (date + delay >= today - 21) & (joined[place] <= today)
        again = late & (rng.random(late.size) < corrected)
        cells = tuple(axis[due | again] for axis in (place, age, date, delay))
        revised = again[due | again]
        factor = 1.0 + rng.uniform(-0.2, 0.2, len(revised))
        counts[cells] = np.where(revised, np.round(counts[cells] * factor), counts[cells])
        yield {
            "reported": np.full(len(revised), calendar[today]).astype("datetime64[D]"),
            "place": np.array(PLACES)[cells[0]],
            "age": np.array(AGES)[cells[1]],
            "date": calendar[cells[2]].astype("datetime64[D]"),
            "delay": cells[3],
            "count": counts[cells],
        }
