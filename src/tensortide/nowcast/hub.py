"""Nowcasts in the form of the German Nowcast Hub: one row per target and quantile."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tensortide.errors import InputError
from tensortide.nowcast.intervals import sum_windows
from tensortide.nowcast.nowcast import Nowcast
from tensortide.nowcast.nowcaster import Nowcaster
from tensortide.nowcast.replayer import WARM_UP, nowcast_days
from tensortide.nowcast.scoring import LEVELS
from tensortide.nowcast.triangle import Triangle

if TYPE_CHECKING:
    import pyarrow as pa

DAYS, HORIZONS = 7, 29


def total_label(labels: Sequence[Any]) -> str:
    """Return what the sum over some labels is called.

    Age groups sum to the group from the youngest on; names with a common beginning to that.

    >>> total_label(["00-04", "05-14", "80+"]), total_label(["DE-BW", "DE-BY"])
    ('00+', 'DE')
    >>> total_label(["north", "south"])
    'all'
    """
    texts = [str(label) for label in labels]
    if all(re.fullmatch(r"\d+(-\d+|\+)", text) for text in texts):
        youngest = min(texts, key=lambda text: int(re.split(r"[-+]", text)[0]))
        return re.split(r"[-+]", youngest)[0] + "+"
    first, last = min(texts), max(texts)
    alike = [a == b for a, b in zip(first, last, strict=False)]
    shared = first[: alike.index(False) if False in alike else len(alike)]
    beginning = re.match(r"(.*\w)[-_ ./]", shared)
    return beginning[1] if beginning and len(texts) > 1 else "all"


def hub_rows(
    nowcast: Nowcast, levels: Sequence[float] = LEVELS, totals: Sequence[str] | None = None
) -> pa.Table:
    """Return the 7-day sums of the whole and of every single stratum, horizons 0 to 28.

    A stratum called age, ages or age_group is the age group, the other one the location; a
    stratum that a unit sums over has the name of its sum, from `totals` or the labels known.
    Horizons from the maximum delay on are final counts.
    """
    import pyarrow as pa

    units = nowcast.units
    if nowcast.triangle.every != "day":
        raise InputError("the hub's format is about sums of seven days; use --every day.")
    if len(units.strata) > 2:
        raise InputError(
            f"the hub's format has a location and an age group, not {len(units.strata)} strata."
        )
    found = nowcast.quantiles(levels, days=DAYS).values
    final = sum_windows(nowcast.today.past, DAYS)[:, :, None]
    found = np.concatenate([found, np.repeat(final, len(levels), axis=2)], axis=1)[:, :HORIZONS]
    sums = totals or [total_label(known) for known in nowcast.triangle.labels]
    axes = hub_axes(units.strata)
    single = [u for u, key in enumerate(units.keys) if sum(part is not None for part in key) <= 1]
    names: list[tuple[str, str]] = []
    for u in single:
        words = []
        for k, axis in enumerate(axes):
            label = None if axis is None else units.keys[u][axis]
            total = ("all", "00+")[k] if axis is None else sums[axis]
            words.append(total if label is None else str(label))
        names.append((words[0], words[1]))
    # a stratum with one label is its own sum: one of the two is enough
    kept = [k for k, name in enumerate(names) if names.index(name) == k]
    single, names = [single[k] for k in kept], [names[k] for k in kept]
    live = np.isfinite(found[single])
    unit, horizon, level = np.nonzero(live)
    dates = nowcast.triangle.days()[::-1]
    return pa.table(
        {
            "location": np.array([location for location, _ in names])[unit],
            "age_group": np.array([age for _, age in names])[unit],
            "forecast_date": np.full(len(unit), nowcast.as_of_date),
            "target_end_date": dates[horizon],
            "quantile": np.array(levels, float)[level],
            "value": found[single][live],
        }
    )


def hub_axes(strata: Sequence[str]) -> tuple[int | None, int | None]:
    """Return which stratum is the location and which the age group.

    >>> hub_axes(["age_group", "location"]), hub_axes(["place"]), hub_axes(["agency", "age"])
    ((1, 0), (0, None), (0, 1))
    """
    form = r"(.*[_ ])?ages?([_ ]?(groups?|class(es)?|bands?))?"
    ages = [k for k, name in enumerate(strata) if re.fullmatch(form, name.lower())]
    age = ages[0] if ages else (1 if len(strata) > 1 else None)
    others = [k for k in range(len(strata)) if k != age]
    return (others[0] if others else None), age


def hub_columns(strata: Sequence[str]) -> str:
    """Say which stratum fills which column.

    >>> hub_columns(["place", "sex"])
    "location is 'place', age_group is 'sex'; rows of the whole and of single labels."
    """
    names = zip(("location", "age_group"), hub_axes(strata), strict=True)
    told = [f"{name} is {strata[axis]!r}" for name, axis in names if axis is not None]
    return ", ".join(told or ["no strata"]) + "; rows of the whole and of single labels."


def hub_table(
    triangle: Triangle,
    first: Any,
    last: Any,
    make: Callable[[], Nowcaster] = Nowcaster,
    *,
    warm_up: int = WARM_UP,
    progress: bool | None = None,
) -> pa.Table:
    """Return the rows of all as-of days from `first` to `last`, each as of its day."""
    import pyarrow as pa

    totals = [total_label(known) for known in triangle.labels]  # the same name on every day
    days = nowcast_days(triangle, make(), [first, last], warm_up, progress)
    return pa.concat_tables([hub_rows(nowcast, totals=totals) for nowcast, asked in days if asked])
