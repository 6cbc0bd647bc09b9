"""Which of several models has been nearest: as-of validation on the last weeks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from tensortide.arrays import Floats
from tensortide.nowcast.intervals import SETTLING, Spread
from tensortide.nowcast.positions import positions_of
from tensortide.nowcast.snapshot import Snapshot
from tensortide.nowcast.units import Units

WEEKS_BACK = 28  # as-of days that are judged
YOUNG = 14  # ages of dates that are judged: later ones are nearly complete


@dataclass(eq=False)
class Trials:
    """The past nowcasts of each model."""

    spreads: list[Spread] = field(default_factory=list)

    def __copy__(self) -> Trials:
        """Return the trials with spreads of their own."""
        from copy import copy

        return Trials([copy(spread) for spread in self.spreads])

    def best(
        self, units: Units, snapshot: Snapshot, parts: Sequence[Floats], past: Floats, missed: int
    ) -> int | None:
        """Return the model whose past nowcasts are nearest to what is known today; None at first.

        The truth of a date that is still open is today's mean of all models, from an age of
        a week on.
        """
        published = units.total(snapshot.published)
        known = np.concatenate([published + np.mean(parts, axis=0), past], axis=1)
        if not self.spreads:
            self.spreads = [Spread() for _ in parts]
        misses = np.full(len(parts), np.nan)
        for k, (spread, part) in enumerate(zip(self.spreads, parts, strict=True)):
            if missed:
                spread.skip(missed)
            misses[k] = self._mean_miss(spread, units, known)
            spread.remember(units.keys, published + part, part)
        return None if np.isnan(misses).any() else int(misses.argmin())

    def _mean_miss(self, spread: Spread, units: Units, known: Floats) -> float:
        """Return the mean absolute miss of one model, over the whole and single strata."""
        coarse = np.flatnonzero(units.level <= len(units.strata))
        place = positions_of(units.keys, spread.unit_keys)
        total, count = 0.0, 0
        for back, nowcast in enumerate(spread.nowcasts[:WEEKS_BACK], start=1):
            ages = np.arange(min(YOUNG, nowcast.shape[1]))
            ages = ages[(ages + back >= SETTLING) & (ages + back < known.shape[1])]
            for u in coarse:
                if place[u] >= 0 and len(ages):
                    gaps = known[u, ages + back] - nowcast[place[u], ages]
                    total += float(np.abs(gaps[np.isfinite(gaps)]).sum())
                    count += int(np.isfinite(gaps).sum())
        return total / count if count else float("nan")
