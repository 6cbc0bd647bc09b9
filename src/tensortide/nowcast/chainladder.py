"""Triangles of the package chainladder, there and back."""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module
from typing import Any

import numpy as np

from tensortide.arrays import Floats, Positions
from tensortide.errors import InputError
from tensortide.nowcast.periods import first_days
from tensortide.nowcast.positions import positions_of
from tensortide.nowcast.triangle import Triangle

_GRAINS = {"Y": "year", "A": "year", "Q": "quarter", "M": "month"}
_MONTHS = {"year": 12, "quarter": 3, "month": 1}


def read_chainladder(triangle: Any) -> Triangle:
    """Return the increments of a chainladder triangle; index and columns become strata.

    Years that do not begin in January carry the number of the year in which they begin.
    """
    if not hasattr(triangle, "cum_to_incr") or not hasattr(triangle, "origin_grain"):
        raise InputError(
            f"this is no chainladder Triangle but {type(triangle).__name__}; use from_table."
        )
    if triangle.origin_grain != triangle.development_grain:
        raise InputError(
            f"origins by {triangle.origin_grain} and developments by {triangle.development_grain} "
            "differ; bring them to one grain first: triangle.grain('OYDY')."
        )
    every = _GRAINS.get(triangle.origin_grain)
    if every is None:
        raise InputError(f"the grain {triangle.origin_grain!r} is not year, quarter or month.")
    increments = triangle.cum_to_incr() if triangle.is_cumulative else triangle
    (i, c, t, d), values = _list_nonzero(increments.values)
    names = [str(name) for name in triangle.index.columns]
    rows = [tuple(row) for row in triangle.index.values.tolist()]
    columns = [str(c) for c in triangle.columns]
    labels = [tuple(dict.fromkeys(row[axis] for row in rows)) for axis in range(len(names))]
    codes = [
        positions_of([row[axis] for row in rows], known)[i] for axis, known in enumerate(labels)
    ]
    starts = triangle.origin.to_timestamp(how="s").values.astype("datetime64[M]").astype(int)
    shift = int(starts.min()) % _MONTHS[every]  # of a fiscal year
    origins = (starts - shift) // _MONTHS[every]
    delays = np.asarray(triangle.ddims, float).astype(int) // _MONTHS[every] - 1
    valuation = np.datetime64(triangle.valuation_date).astype("datetime64[M]").astype(int)
    found = Triangle(
        strata=(*names, "column"), labels=(*labels, tuple(columns)),
        codes=np.column_stack([*codes, c]), dates=origins[t] - origins.min(), delays=delays[d],
        counts=values, first=int(origins.min()), last=(int(valuation) - shift) // _MONTHS[every],
        max_delay=int(delays.max()), every=every,
    )  # fmt: skip
    return _without_single(found)


def _list_nonzero(values: Any) -> tuple[tuple[Positions, ...], Floats]:
    """Return the places and values of what is not zero, of a dense or a sparse array."""
    if hasattr(values, "coords"):  # chainladder keeps large triangles sparse: they stay so
        found = np.nan_to_num(np.asarray(values.data, np.float64))
        live = found != 0.0
        return tuple(np.asarray(axis)[live] for axis in values.coords), found[live]
    dense = np.nan_to_num(np.asarray(values, np.float64))
    places = np.nonzero(dense)
    return places, dense[places]


def _without_single(triangle: Triangle) -> Triangle:
    """Leave out strata that have a single label: they say nothing."""
    live = [k for k, known in enumerate(triangle.labels) if len(known) > 1]
    return replace(
        triangle,
        strata=tuple(triangle.strata[k] for k in live),
        labels=tuple(triangle.labels[k] for k in live),
        codes=triangle.codes[:, live],
    )


def write_chainladder(triangle: Triangle) -> Any:
    """Return a cumulative chainladder triangle; strata become its index, overflow is left out."""
    if triangle.every not in _MONTHS:
        raise InputError(
            f"chainladder knows months, quarters and years, not triangles by {triangle.every}."
        )
    try:
        chainladder: Any = import_module("chainladder")
        pd: Any = import_module("pandas")
    except ImportError:
        raise InputError("this needs the package chainladder: pip install chainladder.") from None
    triangle = triangle.only(triangle.within())
    strata = {
        name: [known[c] for c in triangle.codes[:, k]]
        for k, (name, known) in enumerate(zip(triangle.strata, triangle.labels, strict=True))
    }
    # a zero in the newest cell of every origin tells chainladder what has been observed
    origins = np.arange(triangle.n_dates)
    newest = np.minimum(triangle.last - triangle.first - origins, triangle.max_delay)
    some = {name: [known[0]] * len(origins) for name, known in
            zip(triangle.strata, triangle.labels, strict=True)}  # fmt: skip
    dates = np.concatenate([triangle.dates, origins]) + triangle.first
    reports = dates + np.concatenate([triangle.delays, newest])
    frame = pd.DataFrame(
        {name: [*strata[name], *some[name]] for name in strata}
        | {
            "origin": first_days(dates, triangle.every),
            "report": first_days(reports, triangle.every),
            "count": np.concatenate([triangle.counts, np.zeros(len(origins))]),
        }
    )
    made = chainladder.Triangle(
        frame, origin="origin", development="report", columns=["count"], index=list(strata) or None,
        cumulative=False,
    )  # fmt: skip
    return made.incr_to_cum()
