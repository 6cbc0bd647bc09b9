"""Chain-ladder in its variants: the classical completion of a triangle, and the baselines."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Protocol

import numpy as np

from tensortide.arrays import Floats
from tensortide.nowcast.snapshot import Snapshot
from tensortide.nowcast.units import Units

STEEPEST = 0.97  # share of a total that one delay may add, at most
FEW = 10.0  # counts below which a unit has no share of its own and takes that of the whole


class Ladder(Protocol):
    """A completion of triangles without memory; one's own class with these will do."""

    @property
    def name(self) -> str:
        """What tables call it."""
        ...

    def window(self, max_delay: int) -> int:
        """Return the dates that are needed."""
        ...

    def unseen(self, snapshot: Snapshot, units: Units) -> Floats:
        """Return what is still to come: units x ages."""
        ...


@dataclass(frozen=True, slots=True)
class Unadjusted:
    """What is published is all there will be."""

    name: str = "unadjusted"

    def window(self, max_delay: int) -> int:
        """Return the dates that are needed."""
        return max_delay + 1

    def unseen(self, snapshot: Snapshot, units: Units) -> Floats:
        """Return what is still to come: units x ages."""
        return np.zeros((len(units.keys), snapshot.n_ages))


def _sums(snapshot: Snapshot, units: Units, diagonals: int, fade: float) -> tuple[Floats, Floats]:
    """Return what came at each delay, and up to it, on the newest diagonals.

    Units x weekdays of the date x delays.  A report that is n periods old counts
    ``exp(-n / fade)``.
    """
    ages = np.arange(snapshot.n_dates - 1, -1, -1)
    report = ages[:, None] - np.arange(snapshot.n_delays)  # periods back from the as-of period
    used = (report >= 0) & (report < diagonals)
    weights = np.where(used, np.exp(-np.maximum(report, 0) / fade), 0.0)
    new, total = np.zeros((2, len(snapshot.cells), snapshot.n_weekdays, snapshot.n_delays))
    dates = [np.flatnonzero(snapshot.weekdays == w) for w in range(snapshot.n_weekdays)]
    for cells, squares in snapshot.squares():
        running = np.cumsum(squares, axis=2)
        for weekday, mine in enumerate(dates):
            new[cells, weekday] = (squares[:, mine] * weights[mine]).sum(axis=1)
            total[cells, weekday] = (running[:, mine] * weights[mine]).sum(axis=1)
    return units.total(new), units.total(total)


@dataclass(frozen=True, slots=True)
class ChainLadder:
    """Chain-ladder on the newest diagonals.

    ``h_d``, the share of the total up to delay d that comes at delay d, is estimated by sums over
    the last `diagonals` report dates; what is unseen follows from what is published.  A unit with
    fewer than ten counts at a delay takes the share of the whole.  With
    `pooled` all units have the shares of the whole; with `weekdays` each weekday of the
    reference date has its own, drawn to the unit's mean by `pseudo` counts.
    """

    diagonals: int = 60
    _: KW_ONLY
    pooled: bool = False
    weekdays: bool = False
    pseudo: float = 10.0
    name: str = "chain-ladder"

    def window(self, max_delay: int) -> int:
        """Return the dates that are needed: those with a report on one of the diagonals."""
        return self.diagonals + max_delay

    def unseen(self, snapshot: Snapshot, units: Units) -> Floats:
        """Return what is still to come: units x ages.

        A unit that is a sum has a triangle of its own, the sum; it is not the sum of ladders.
        """
        new, total = _sums(snapshot, units, self.diagonals, np.inf)
        shares = self._shares(new[:1], total[:1]) if self.pooled else self._shares(new, total)
        # the share of the final count that is out after delay d: product of 1 - h of later delays
        out = np.ones_like(shares)
        for d in range(shares.shape[2] - 2, -1, -1):
            out[:, :, d] = out[:, :, d + 1] * (1.0 - shares[:, :, d + 1])
        published = np.maximum(units.total(snapshot.published), 0.0)
        unseen = np.zeros_like(published)
        for age in range(snapshot.n_ages):
            weekday = snapshot.weekdays[snapshot.n_dates - 1 - age] if self.weekdays else 0
            seen = min(age, out.shape[2] - 1)
            unseen[:, age] = published[:, age] * (1.0 / out[:, weekday, seen] - 1.0)
        return unseen

    def _shares(self, new: Floats, total: Floats) -> Floats:
        """Return h: units x weekdays x delays."""
        news, totals = new.sum(axis=1), total.sum(axis=1)
        own = news / np.where(totals > 0.0, totals, 1.0)
        shares = np.where(totals < FEW, own[:1], own)[:, None, :]
        if self.weekdays:
            shares = (new + self.pseudo * shares) / np.maximum(total + self.pseudo, 1e-9)
        return np.asarray(np.clip(shares, -0.5, STEEPEST))


#: the baselines of every replay, by the names that its table shows
BASELINES: dict[str, Ladder] = {
    model.name: model
    for model in (
        Unadjusted(),
        ChainLadder(),
        ChainLadder(pooled=True, name="chain-ladder pooled"),
        ChainLadder(28, weekdays=True, name="chain-ladder weekday"),
    )
}


@dataclass(frozen=True, slots=True)
class HazardLadder:
    """Chain-ladder by weekday with fading diagonals, every unit drawn to the whole.

    The share of a unit and weekday is drawn, by `pseudo` counts, to that of the whole on this
    weekday times the unit's own ratio to the whole.  Diagonals fade by ``exp(-age / fade)``.
    """

    diagonals: int = 56
    fade: float = 10.0
    pseudo: float = 30.0
    name: str = "hazard ladder"

    def window(self, max_delay: int) -> int:
        """Return the dates that are needed: those with a report on one of the diagonals."""
        return self.diagonals + max_delay

    def unseen(self, snapshot: Snapshot, units: Units) -> Floats:
        """Return what is still to come: units x ages."""
        news, totals = _sums(snapshot, units, self.diagonals, self.fade)
        every, k = np.arange(snapshot.n_dates), self.pseudo
        new, total = news.sum(axis=1), totals.sum(axis=1)
        whole = new[:1] / np.maximum(total[:1], 1e-9)
        ratio = (new + k * whole) / (total + k) / np.maximum(whole, 1e-9)
        ratio = np.where(whole > 0.0, np.clip(ratio, 0.2, 5.0), 1.0)
        published = np.maximum(units.total(snapshot.published), 0.0)
        unseen = np.zeros_like(published)
        for weekday in range(snapshot.n_weekdays):
            mine = every[snapshot.weekdays == weekday]
            new, total = news[:, weekday], totals[:, weekday]
            drawn = (new[:1] + k * whole) / (total[:1] + k) * ratio
            share = np.clip((new + k * drawn) / (total + k), -0.2, 0.97)
            out = np.cumprod((1.0 - share)[:, ::-1], axis=1)[:, ::-1]
            for age in snapshot.n_dates - 1 - mine:
                if age < min(snapshot.n_ages, snapshot.n_delays - 1):
                    unseen[:, age] = published[:, age] * (1.0 / out[:, age + 1] - 1.0)
        return unseen
