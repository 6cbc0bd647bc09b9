"""`Nowcast`: what a nowcaster says of an as-of day, unit by unit and date by date."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from tensortide.arrays import Floats
from tensortide.errors import InputError
from tensortide.legacy import FormerTuple
from tensortide.nowcast.intervals import Spread, Today, quantiles, spreads
from tensortide.nowcast.periods import Days
from tensortide.nowcast.scoring import LEVELS, check_levels
from tensortide.nowcast.tail import DOUBT, tail_share
from tensortide.nowcast.triangle import Triangle
from tensortide.nowcast.units import Units
from tensortide.validate import check_count

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Quantiles(FormerTuple):
    """What a nowcast says of every target: arrays of units x dates, the newest date first.

    Parameters
    ----------
    reported
        Counts published so far; NaN where a sum reaches back before the data.
    mean
        The nowcasts: what is published and what is expected still to come.
    values
        Units x dates x levels.
    levels
        The quantile levels, the last axis of `values`.
    dates
        The first day of each period, the newest first; of sums, that of their last period.
    units
        What the first axis counts; `Nowcast.unit` finds the number of one.
    """

    reported: Floats
    mean: Floats
    values: Floats
    levels: tuple[float, ...]
    dates: Days
    units: Units
    _former: ClassVar[tuple[str, ...]] = ("reported", "mean", "values")

    def texts(self, unit: int, age: int) -> list[str]:
        """Return what is reported of a target, and its quantiles, as people write counts."""
        return [f"{v:,.0f}" for v in (self.reported[unit, age], *self.values[unit, age])]

    def __repr__(self) -> str:
        """Show how many there are."""
        units, dates, levels = self.values.shape
        return f"<Quantiles: {units:,} units, {dates:,} dates, {levels:,} levels>"


@dataclass(frozen=True, kw_only=True, eq=False)
class Nowcast:
    """The nowcast of an as-of day: every unit (sum over strata) and every date still open.

    `published` and `unseen` are units x ages, the as-of date first.
    """

    triangle: Triangle
    units: Units
    today: Today
    spread: Spread
    levels: tuple[float, ...] = LEVELS

    @property
    def as_of_date(self) -> np.datetime64:
        """The as-of date."""
        return self.triangle.as_of_date

    @property
    def silent(self) -> int:
        """For how many periods nothing has been published (`tensortide.nowcast.silence`)."""
        return self.today.silent

    def __repr__(self) -> str:
        """Show what there is a nowcast of."""
        units, dates = self.today.published.shape
        return f"<Nowcast as of {self.as_of_date}: {units:,} units, {dates:,} open dates>"

    def unit(self, **labels: Any) -> int:
        """Return the number of a unit: ``unit(age_group="80+")``, strata left out are summed."""
        for name in labels:
            self.triangle.axis_of(name)
        key = tuple(labels.get(name) for name in self.units.strata)
        if key not in self.units.keys:
            raise InputError(f"there is no unit {labels!r} as of {self.as_of_date}.")
        return self.units.keys.index(key)

    def quantiles(
        self, levels: Sequence[float] | None = None, *, days: int = 1, settled: bool = False
    ) -> Quantiles:
        """Return what is reported, the nowcast and its quantiles, of every unit and open date.

        With `days` 7 a target is the sum of seven dates that ends at that age.  The target is the
        count at the maximum delay; with `settled` it is what the count grows to after that
        (`tensortide.nowcast.tail`).
        """
        chosen = check_levels(self.levels if levels is None else levels)
        check_count("days", days, least=1)
        published, now, sd = spreads(self.today, self.spread, days)
        if settled:
            tail = tail_share(self.triangle)
            sd = np.sqrt(((1.0 + tail) * sd) ** 2 + (DOUBT * tail * now) ** 2)
            now = (1.0 + tail) * now
        found = quantiles(published, now, sd, chosen.tolist(), falls=self.today.falls)
        return Quantiles(
            reported=published,
            mean=now,
            values=found,
            levels=tuple(chosen.tolist()),
            dates=self.triangle.days()[::-1][: published.shape[1]],
            units=self.units,
        )

    def to_table(
        self,
        levels: Sequence[float] | None = None,
        *,
        days: int = 1,
        by: Sequence[str] | None = None,
        settled: bool = False,
    ) -> pa.Table:
        """Return a row per unit and date: strata, date, reported, median and quantiles.

        `by` picks one kind of sum: ``[]`` the whole, ``["age_group"]``, ...; by default all.
        `days` and `settled` say what the target is, as in `quantiles`.
        """
        import pyarrow as pa

        if isinstance(by, str):
            raise InputError(f"by must be a list of strata, such as [{by!r}], not {by!r}.")
        chosen = list(self.levels if levels is None else levels)
        found = self.quantiles(chosen, days=days, settled=settled)
        if np.isnan(found.reported).all():
            raise InputError(
                f"as of {self.as_of_date} there are no {days} dates to sum yet; choose fewer days."
            )
        keep = np.arange(len(self.units.keys))
        if by is not None:
            wanted = {self.triangle.axis_of(name) for name in by}
            keep = np.array(
                [
                    u
                    for u, key in enumerate(self.units.keys)
                    if {k for k, label in enumerate(key) if label is not None} == wanted
                ]
            )
        live = np.isfinite(found.reported[keep])
        unit, age = np.nonzero(live)
        columns: dict[str, Any] = {
            name: [self.units.keys[keep[u]][k] for u in unit]
            for k, name in enumerate(self.units.strata)
        }
        columns["date"] = found.dates[age]
        columns["reported"] = found.reported[keep][live]
        for k, level in enumerate(chosen):
            columns["median" if level == 0.5 else f"q{level:g}"] = found.values[keep][live][:, k]
        return pa.table(columns)
