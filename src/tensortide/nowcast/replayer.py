"""Strict as-of replays: what every model would have said on past days, scored by what came."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from tensortide.arrays import Floats, Positions
from tensortide.errors import InputError
from tensortide.nowcast.intervals import sum_windows
from tensortide.nowcast.ladders import BASELINES
from tensortide.nowcast.nowcast import Nowcast
from tensortide.nowcast.nowcaster import Nowcaster
from tensortide.nowcast.periods import Days, as_day, complete_until, last_days, periods_of
from tensortide.nowcast.positions import positions_of
from tensortide.nowcast.replay_result import Replay
from tensortide.nowcast.scoring import LEVELS, check_levels
from tensortide.nowcast.snapshot import Snapshot
from tensortide.nowcast.triangle import Triangle
from tensortide.nowcast.units import Units
from tensortide.progress import watched_days
from tensortide.validate import brief, check_count

OURS = "tensortide"
WARM_UP = 120  # as-of days before the first one that is scored, for the intervals to learn from


def replay(
    triangle: Triangle,
    models: Mapping[str, Callable[[], Nowcaster]] | Sequence[str] | None = None,
    dates: Sequence[Any] | None = None,
    *,
    days: int | None = None,
    horizons: int | None = None,
    levels: Sequence[float] = LEVELS,
    warm_up: int = WARM_UP,
    settled: Triangle | None = None,
    progress: bool | None = None,
) -> Replay:
    """Nowcast as of each of `dates`, with every model, and score.

    Two dates are the first and the last of a range, more than two are those to be scored (the
    days between them are nowcast as well); without dates all that have enough before and
    after them.  Targets are sums of `days` dates (seven of days, else one), up to `horizons`
    periods back (29, or the maximum delay where that is less).

    A model is a function that makes a nowcaster; names stand for our default
    ("tensortide") and the baselines of `tensortide.nowcast.ladders`, all with the same interval
    layer.  A nowcast of a day sees reports until that day only; the `warm_up` days before the
    first one are nowcast too, as the past from which intervals are learned.  The truth is the
    count at the maximum delay, or that of a triangle of `settled` counts.
    """
    makers = _makers(models, triangle.every)
    start, asked = as_of_days(triangle, dates, warm_up)
    chosen = tuple(check_levels(levels).tolist())
    scored = asked[asked >= start]
    if dates is not None and len(dates) > 2:
        listed = [complete_until(as_day(d, "dates"), triangle.every) for d in dates]
        scored = scored[np.isin(periods_of(scored, triangle.every), listed)]
    if days is None:
        days = 7 if triangle.every == "day" else 1
    if horizons is None:
        horizons = min(29, triangle.max_delay)
    check_count("days", days, least=1)
    check_count("horizons", horizons, least=1)
    wanted = set(scored.tolist())
    whole = Snapshot(triangle=triangle, window=triangle.n_dates)
    units = Units.of(whole)
    truth = _truth(triangle if settled is None else settled, units, whole, scored, days, horizons)
    if not np.isfinite(truth).any():
        raise InputError(
            "no nowcast of these as-of dates can be scored: that takes counts which are final, "
            f"{triangle.max_delay} {triangle.every}s after their date."
        )
    final = settled is not None
    shape = (len(scored), len(units.keys), horizons, len(chosen))
    found = {name: np.full(shape, np.nan) for name in makers}
    nowcasters = {name: make() for name, make in makers.items()}
    with watched_days(len(asked), show=progress) as tell:
        for day in asked:
            view = triangle.as_of(day)
            for name, nowcaster in nowcasters.items():
                nowcast = nowcaster.update(view)
                if day.item() in wanted:
                    found_now = nowcast.quantiles(chosen, days=days, settled=final)
                    quantiles = found_now.values[:, :horizons]
                    rows = positions_of(nowcast.units.keys, units.keys)
                    at = int(np.searchsorted(scored, day))
                    found[name][at, rows, : quantiles.shape[1]] = quantiles
            tell(str(day))
    return Replay(
        dates=scored, units=units, levels=chosen, days=days, truth=truth, quantiles=found,
        every=triangle.every,
    )  # fmt: skip


def as_of_days(
    triangle: Triangle, dates: Sequence[Any] | None, warm_up: int
) -> tuple[np.datetime64, Days]:
    """Return the first day that counts, and all as-of days with those before it."""
    first, last = _range(triangle, dates)
    reported = triangle.first + int((triangle.dates + triangle.delays).min())
    begin = max(triangle.first + 1, reported, first - max(warm_up, 0))
    days = np.asarray(last_days(np.arange(begin, last + 1), triangle.every))
    return np.datetime64(last_days(first, triangle.every)), days


def nowcast_days(
    triangle: Triangle, nowcaster: Nowcaster, ends: Sequence[Any], warm_up: int,
    progress: bool | None = None,
) -> Iterator[tuple[Nowcast, bool]]:  # fmt: skip
    """Nowcast every day up to the last of `ends`; tell of each if it is not of the warm-up."""
    begin, days = as_of_days(triangle, ends, warm_up)
    with watched_days(len(days), show=progress) as tell:
        for day in days:
            yield nowcaster.update(triangle.as_of(day)), bool(day >= begin)
            tell(str(day))


def baselines(every: str) -> dict[str, Callable[[], Nowcaster]]:
    """Return functions that make the baselines; weekdays are a matter of days."""
    return {
        name: lambda ladder=ladder: Nowcaster((), [ladder])  # type: ignore[misc]
        for name, ladder in BASELINES.items()
        if every == "day" or not getattr(ladder, "weekdays", False)
    }


def _makers(
    models: Mapping[str, Callable[[], Nowcaster]] | Sequence[str] | None, every: str
) -> dict[str, Callable[[], Nowcaster]]:
    known: dict[str, Callable[[], Nowcaster]] = {OURS: Nowcaster, **baselines(every)}
    if models is None:
        return known
    if isinstance(models, Mapping):
        for name, make in models.items():
            if not callable(make):
                raise InputError(
                    f"model {name!r} must be a function that makes a nowcaster, such as "
                    f"lambda: Nowcaster(3), not {brief(make)}."
                )
        return dict(models)
    listed = [models] if isinstance(models, str) else list(models)
    for name in listed:
        if not isinstance(name, str) or name not in known:
            raise InputError(
                f"there is no model {brief(name)}; there are {', '.join(map(repr, known))}, or "
                "give a dict of functions that make nowcasters."
            )
    return {name: known[name] for name in listed}


def _range(triangle: Triangle, dates: Sequence[Any] | None) -> tuple[int, int]:
    """Return the first and the last as-of period."""
    if dates is None:
        first = triangle.first + triangle.max_delay + 14
        last = triangle.last - triangle.max_delay
        if first > last:
            raise InputError(
                f"the triangle is too short to choose as-of dates: that takes {triangle.max_delay} "
                f"{triangle.every}s (the maximum delay) and 14 more before the first, and as many "
                "as the maximum delay after the last; name the dates (--from and --to), or take a "
                "shorter maximum delay."
            )
        return first, last
    if isinstance(dates, str) or not isinstance(dates, Sequence | np.ndarray) or not len(dates):
        raise InputError("dates must be a list of as-of dates, the first and the last at least.")
    asked = np.array([as_day(d, "dates") for d in dates], "datetime64[D]")
    # of weeks or longer: those that end within the range, or the last one before it
    first = int(periods_of(np.asarray([asked.min()]), triangle.every)[0])
    last = complete_until(asked.max(), triangle.every)
    first = min(first, last)
    if len(asked) > 2:  # each names the last period that was over by then
        first = complete_until(asked.min(), triangle.every)
    reported = triangle.first + int((triangle.dates + triangle.delays).min())
    earliest = max(triangle.first + 1, reported)
    if earliest > triangle.last:
        raise InputError(
            f"all reports are of one {triangle.every}, {triangle.as_of_date}: how late they come "
            f"can be learned from the next {triangle.every} on."
        )
    if first < earliest or last > triangle.last:
        raise InputError(
            f"as-of dates must lie between {last_days(earliest, triangle.every)}, when there is "
            f"something to nowcast from, and {triangle.as_of_date}, the last report."
        )
    return first, last


def _truth(
    triangle: Triangle, units: Units, whole: Snapshot, scored: Days, days: int, horizons: int
) -> Floats:
    """Return the final count of every target; NaN where it is not in the data."""
    if (triangle.strata, triangle.every) != (whole.triangle.strata, whole.triangle.every):
        raise InputError(
            "the settled counts must have the strata and periods of the triangle: "
            f"{', '.join(whole.triangle.strata) or 'none'}, by {whole.triangle.every}."
        )
    daily = units.total(_by_cell(triangle, whole))
    complete = triangle.last - triangle.quiet - triangle.max_delay - triangle.first
    daily[:, complete + 1 :] = np.nan
    sums = sum_windows(daily, days)  # of the dates t .. t + days - 1
    found = np.full((len(scored), len(daily), horizons), np.nan)
    for k, period in enumerate(periods_of(scored, triangle.every)):
        for horizon in range(horizons):
            start = period - triangle.first - horizon - days + 1
            if 0 <= start < sums.shape[1]:
                found[k, :, horizon] = sums[:, start]
    return found


def _by_cell(triangle: Triangle, whole: Snapshot) -> Floats:
    """Return the totals of a triangle, cells of another one x dates.

    A cell with a label of which nothing is known has no final count.
    """
    names = _cell_names(whole.triangle, whole.cells)
    distinct, which = np.unique(triangle.codes, axis=0, return_inverse=True)
    cell = positions_of(_cell_names(triangle, distinct), names)[which.reshape(-1)]
    kept = triangle.within() & (cell >= 0)
    flat = cell[kept] * triangle.n_dates + triangle.dates[kept]
    size = len(names) * triangle.n_dates
    cells = np.bincount(flat, triangle.counts[kept], size).astype(np.float64)
    cells = cells.reshape(len(names), triangle.n_dates)
    for k, name in enumerate(names):
        if any(part not in known for part, known in zip(name, triangle.labels, strict=True)):
            cells[k] = np.nan
    return cells


def _cell_names(triangle: Triangle, cells: Positions) -> list[tuple[Any, ...]]:
    """Return the labels of each cell."""
    return [tuple(known[c] for known, c in zip(triangle.labels, row, strict=True)) for row in cells]
