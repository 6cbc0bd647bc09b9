"""Strict as-of replays: what every model would have said on past days, scored by what came."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tensortide.core.types import Floats
from tensortide.errors import InputError
from tensortide.nowcast.calendar import Days, as_day, complete_until, last_days, periods_of
from tensortide.nowcast.intervals import windowed
from tensortide.nowcast.ladder import BASELINES
from tensortide.nowcast.nowcaster import Nowcaster
from tensortide.nowcast.scoring import (
    LEVELS,
    Scores,
    block_bootstrap,
    check_levels,
    on_log_scale,
    scores,
)
from tensortide.nowcast.snapshot import Snapshot, Units
from tensortide.nowcast.triangle import Triangle
from tensortide.readers.progress import watched_days
from tensortide.validate import check_choice

if TYPE_CHECKING:
    import pyarrow as pa

OURS = "tensortide"
WARM_UP = 120  # as-of days before the first one that is scored, for the intervals to learn from


@dataclass(frozen=True)
class Replay:
    """Quantiles of every model, day, unit and horizon, and the truth that came later.

    Arrays are days x units x horizons (x levels); NaN where a unit was not there yet, or where
    its final count is not in the data.
    """

    dates: Days
    units: Units
    levels: tuple[float, ...]
    days: int
    truth: Floats
    quantiles: dict[str, Floats]

    @property
    def level_names(self) -> list[str]:
        """What each kind of sum is called: the strata that it does not sum over."""
        names = []
        for number in range(int(self.units.level.max()) + 1):
            key = self.units.keys[int(np.flatnonzero(self.units.level == number)[0])]
            kept = [n for n, label in zip(self.units.strata, key, strict=True) if label is not None]
            names.append(" x ".join(kept) or "all")
        return names

    def scores(self, model: str, *, log: bool = False) -> Scores:
        """Return the scores of a model, each an array days x units x horizons."""
        quantiles, truth = self._of(model), self.truth
        if log:
            quantiles, truth = on_log_scale(quantiles, truth)
        return scores(quantiles, truth, self.levels)

    def summary(
        self, *, base: str = "chain-ladder", by: Sequence[str] = ("level",), log: bool = False
    ) -> pa.Table:
        """Return a row per model and group: WIS and its parts, relative WIS, coverage, bias, MAE.

        `by` may name "level", "horizon" and "unit"; the relative WIS is to `base`, where it
        is among the models, on the same forecasts.
        """
        import pyarrow as pa

        for name in by:
            if name not in ("level", "horizon", "unit"):
                raise InputError(f"by takes 'level', 'horizon' and 'unit', not {name!r}.")
        rows: list[dict[str, Any]] = []
        every = {model: self.scores(model, log=log) for model in self.quantiles}
        live = np.isfinite(np.sum([s.wis for s in every.values()], axis=0))
        for group, mask in self._groups(by):
            chosen = live & mask
            if not chosen.any():
                continue
            for model, score in every.items():
                wis = float(score.wis[chosen].mean())
                row = group | {"model": model, "wis": wis}
                if base in every:
                    row["relative_wis"] = wis / float(every[base].wis[chosen].mean())
                for part in ("dispersion", "overprediction", "underprediction"):
                    row[part] = float(getattr(score, part)[chosen].mean())
                for interval, covered in sorted(score.covered.items()):
                    row[f"coverage_{round(100 * interval)}"] = float(covered[chosen].mean())
                row["bias"] = float(score.error[chosen].mean())
                row["mae"] = float(np.abs(score.error[chosen]).mean())
                row["forecasts"] = int(chosen.sum())
                rows.append(row)
        return pa.Table.from_pylist(rows)

    def difference(
        self, model: str, other: str, *, level: str = "all", measure: str = "wis", seed: int = 0
    ) -> tuple[float, float, float]:
        """Return the ratio of two models' mean scores less one, and its 95 % interval.

        Negative: `model` is better.  Blocks of as-of days are resampled, both models together.
        """
        names = self.level_names
        check_choice("measure", measure, ("wis", "mae"))
        if level not in names:
            raise InputError(f"there is no level {level!r}; there are {', '.join(names)}.")
        chosen = self.units.level == names.index(level)
        found = []
        for name in (model, other):
            score = self.scores(name)
            values = np.abs(score.error) if measure == "mae" else score.wis
            found.append(values[:, chosen])
        live = np.isfinite(found[0] + found[1])
        means = [np.where(live, f, 0.0).sum(axis=(1, 2)) for f in found]
        keep = live.any(axis=(1, 2))
        mine, theirs = means[0][keep], means[1][keep]
        low, high = block_bootstrap(mine, theirs, seed=seed)
        return float(mine.mean() / theirs.mean() - 1.0), low - 1.0, high - 1.0

    def to_table(self) -> pa.Table:
        """Return every quantile: as_of, model, strata, date, horizon, level, value, truth."""
        import pyarrow as pa

        tables = []
        for model, found in self.quantiles.items():
            day, unit, horizon, level = np.nonzero(np.isfinite(found))
            columns: dict[str, Any] = {
                "as_of": self.dates[day],
                "model": np.full(len(day), model),
            }
            for k, name in enumerate(self.units.strata):
                labels = [key[k] for key in self.units.keys]
                columns[name] = [labels[u] for u in unit]
            columns |= {
                "horizon": horizon,
                "level": np.array(self.levels)[level],
                "value": found[day, unit, horizon, level],
                "truth": self.truth[day, unit, horizon],
            }
            tables.append(pa.table(columns))
        return pa.concat_tables(tables)

    def _of(self, model: str) -> Floats:
        if model not in self.quantiles:
            known = ", ".join(map(repr, self.quantiles))
            raise InputError(f"there is no model {model!r} in this replay; there are {known}.")
        return self.quantiles[model]

    def _groups(self, by: Sequence[str]) -> Iterable[tuple[dict[str, Any], Any]]:
        shape = self.truth.shape
        groups: list[tuple[dict[str, Any], Any]] = [({}, np.ones(shape, bool))]
        for name in by:
            parts: list[tuple[Any, Any]] = []
            if name == "level":
                for number, label in enumerate(self.level_names):
                    parts.append((label, (self.units.level == number)[None, :, None]))
            elif name == "unit":
                for u, key in enumerate(self.units.keys):
                    label = ", ".join(str(part) for part in key if part is not None) or "all"
                    parts.append((label, (np.arange(shape[1]) == u)[None, :, None]))
            else:
                parts = [(h, (np.arange(shape[2]) == h)[None, None, :]) for h in range(shape[2])]
            groups = [
                (facts | {name: label}, mask & part)
                for facts, mask in groups
                for label, part in parts
            ]
        return groups


def replay(
    triangle: Triangle,
    models: Mapping[str, Callable[[], Nowcaster]] | Sequence[str] | None = None,
    dates: Sequence[Any] | None = None,
    *,
    days: int = 7,
    horizons: int = 29,
    levels: Sequence[float] = LEVELS,
    warm_up: int = WARM_UP,
    settled: Triangle | None = None,
    progress: bool | None = None,
) -> Replay:
    """Nowcast as of each of `dates` (a first and a last one, or all), with every model.

    A model is a function that makes a nowcaster; names stand for our default
    ("tensortide") and the baselines of `tensortide.nowcast.ladder`, all with the same interval
    layer.  A nowcast of a day sees reports until that day only; the `warm_up` days before the
    first one are nowcast too, as the past from which intervals are learned.  The truth is the
    count at the maximum delay, or that of a triangle of `settled` counts.
    """
    makers = _makers(models)
    start, asked = as_of_days(triangle, dates, warm_up)
    chosen = tuple(check_levels(levels).tolist())
    scored = asked[asked >= start]
    whole = Snapshot(triangle, triangle.n_dates)
    units = Units.of(whole)
    truth = _truth(triangle if settled is None else settled, units, whole, scored, days, horizons)
    final = settled is not None
    place = {key: k for k, key in enumerate(units.keys)}
    shape = (len(scored), len(units.keys), horizons, len(chosen))
    found = {name: np.full(shape, np.nan) for name in makers}
    nowcasters = {name: make() for name, make in makers.items()}
    with watched_days(len(asked), show=progress) as tell:
        for day in asked:
            view = triangle.as_of(day)
            for name, nowcaster in nowcasters.items():
                nowcast = nowcaster.update(view)
                if day >= start:
                    found_now = nowcast.quantiles(chosen, days=days, settled=final)
                    quantiles = found_now[2][:, :horizons]
                    rows = [place[key] for key in nowcast.units.keys]
                    at = int(np.searchsorted(scored, day))
                    found[name][at, rows, : quantiles.shape[1]] = quantiles
            tell(str(day))
    return Replay(scored, units, chosen, days, truth, found)


def as_of_days(
    triangle: Triangle, dates: Sequence[Any] | None, warm_up: int
) -> tuple[np.datetime64, Days]:
    """Return the first day that counts, and all as-of days with those before it."""
    first, last = _range(triangle, dates)
    reported = triangle.first + int((triangle.dates + triangle.delays).min())
    begin = max(triangle.first + 1, reported, first - max(warm_up, 0))
    days = np.asarray(last_days(np.arange(begin, last + 1), triangle.every))
    return np.datetime64(last_days(first, triangle.every)), days


def _makers(
    models: Mapping[str, Callable[[], Nowcaster]] | Sequence[str] | None,
) -> dict[str, Callable[[], Nowcaster]]:
    known: dict[str, Callable[[], Nowcaster]] = {OURS: Nowcaster}
    for name, ladder in BASELINES.items():
        known[name] = lambda ladder=ladder: Nowcaster((), [ladder])  # type: ignore[misc]
    if models is None:
        return known
    if isinstance(models, Mapping):
        return dict(models)
    listed = [models] if isinstance(models, str) else list(models)
    for name in listed:
        if name not in known:
            raise InputError(
                f"there is no model {name!r}; there are {', '.join(map(repr, known))}, or give a "
                "dict of functions that make nowcasters."
            )
    return {name: known[name] for name in listed}


def _range(triangle: Triangle, dates: Sequence[Any] | None) -> tuple[int, int]:
    """Return the first and the last as-of period."""
    if dates is None:
        first = triangle.first + triangle.max_delay + 14
        last = triangle.last - triangle.max_delay
        if first > last:
            raise InputError(
                "the triangle is too short for a replay: two weeks beyond the maximum delay have "
                "to be there before the first as-of date, and the maximum delay after the last."
            )
        return first, last
    if isinstance(dates, str) or not len(dates):
        raise InputError("dates must be a list of as-of dates, the first and the last at least.")
    asked = np.array([as_day(d, "dates") for d in dates], "datetime64[D]")
    first, last = (complete_until(day, triangle.every) for day in (asked.min(), asked.max()))
    reported = triangle.first + int((triangle.dates + triangle.delays).min())
    earliest = max(triangle.first + 1, reported)
    if first < earliest or last > triangle.last:
        raise InputError(
            f"as-of dates must lie between {last_days(earliest, triangle.every)}, when there is "
            f"something to nowcast from, and {triangle.as_of_date}, the last report."
        )
    return first, last


def _truth(
    triangle: Triangle,
    units: Units,
    whole: Snapshot,
    scored: Days,
    days: int,
    horizons: int,
) -> Floats:
    """Return the final count of every target; NaN where it is not in the data."""
    cells = np.zeros((len(whole.cells), triangle.n_dates))
    place = {
        tuple(known[c] for known, c in zip(whole.triangle.labels, row, strict=True)): k
        for k, row in enumerate(whole.cells)
    }
    keys = [
        tuple(known[c] for known, c in zip(triangle.labels, row, strict=True))
        for row in np.unique(triangle.codes, axis=0)
    ]
    totals = triangle.totals(triangle.strata)
    for key in keys:
        if key in place:
            at = tuple(k.index(part) for k, part in zip(triangle.labels, key, strict=True))
            cells[place[key]] = totals[at]
    daily = units.total(cells)
    complete = triangle.last - triangle.max_delay - triangle.first
    daily[:, complete + 1 :] = np.nan
    sums = windowed(daily, days)  # of the dates t .. t + days - 1
    found = np.full((len(scored), len(daily), horizons), np.nan)
    for k, period in enumerate(periods_of(scored, triangle.every)):
        for horizon in range(horizons):
            start = period - triangle.first - horizon - days + 1
            if 0 <= start < sums.shape[1]:
                found[k, :, horizon] = sums[:, start]
    return found
