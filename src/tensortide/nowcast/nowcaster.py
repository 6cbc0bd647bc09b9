"""`Nowcaster`: a step per report date, several count models averaged, intervals from the past."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any

import numpy as np

from tensortide.arrays import Floats, Positions
from tensortide.errors import InputError, NotFittedError
from tensortide.nowcast.count_model.model import CountModel
from tensortide.nowcast.count_model.state import Settings
from tensortide.nowcast.intervals import Spread, Today
from tensortide.nowcast.ladders import HazardLadder, Ladder
from tensortide.nowcast.nowcast import Nowcast
from tensortide.nowcast.rank_choice import Trials
from tensortide.nowcast.silence import lasting, silences, spread_back
from tensortide.nowcast.snapshot import Snapshot
from tensortide.nowcast.triangle import Triangle
from tensortide.nowcast.units import Units
from tensortide.validate import brief, check_number, check_seed

RANKS = (3, 4, 6)
CANDIDATES = (2, 3, 4, 6)  # of validation
ECONOMY = Settings(window=120, fade=30.0)
BACK = 200  # final dates beyond the open ones that intervals may look at


@dataclass(eq=False)
class Nowcaster:
    """Completes a reporting triangle day by day.

    Parameters
    ----------
    ranks
        Ranks of the count models that are averaged; one number picks a single model, and
        "validate" every day the one of 2, 3, 4, 6 whose nowcasts of the last four weeks were
        nearest to what is known today.
    ladders, hedge
        Chain-ladders and their share of the average; by default 15 % of one by weekday, which
        knows no components and cannot misread their mix when an epidemic turns.
    economy
        Keep no counts by delay: factors, sums and the totals of each date.  A step costs what
        its day reports; chain-ladders, which need the counts, do not take part.
    settings, seed
        Constants and start of the count models.

    Examples
    --------
    >>> import tensortide as tt
    >>> days = tt.simulate.admissions(days=40, seed=1, corrected=0.0)
    >>> tables = [day for day in days]
    >>> table = {name: np.concatenate([t[name] for t in tables]) for name in tables[0]}
    >>> triangle = Triangle.from_table(
    ...     table, reference="date", delay="delay", count="count", strata=["place", "age"],
    ...     max_delay=7)
    >>> nowcast = Nowcaster(ranks=2).update(triangle)
    >>> nowcast.quantiles().values.shape[1:]
    (7, 7)
    """

    ranks: int | str | Sequence[int] = RANKS
    ladders: Sequence[Ladder] = (HazardLadder(),)
    _: KW_ONLY
    hedge: float = 0.15
    economy: bool = False
    settings: Settings | None = None
    seed: int = 0
    name: str = "tensortide"

    def __post_init__(self) -> None:
        """Refuse what cannot be a rank."""
        validated = isinstance(self.ranks, str) and self.ranks == "validate"
        given: Any = CANDIDATES if validated else self.ranks
        listed: list[Any] = [given] if isinstance(given, int | str | np.integer) else list(given)
        listed = [int(r) if isinstance(r, np.integer) else r for r in listed]
        whole = all(isinstance(r, int) and not isinstance(r, bool) for r in listed)
        if not whole or not all(1 <= r <= 100 for r in listed):
            raise InputError(
                f"ranks must be whole numbers from 1 to 100, or 'validate', not {self.ranks!r}."
            )
        if not isinstance(self.ladders, Sequence) or not all(
            hasattr(ladder, "unseen") for ladder in self.ladders
        ):
            raise InputError(
                "ladders must be a list of chain-ladders, such as [tt.nowcast.ChainLadder()], not "
                f"{brief(self.ladders)}."
            )
        if not listed and (self.economy or not self.ladders):
            raise InputError("a nowcaster needs at least one rank, or a ladder and its history.")
        if check_number("hedge", self.hedge, least=0.0) > 1.0:
            raise InputError(f"hedge must be a share from 0 to 1, not {self.hedge!r}.")
        check_seed(self.seed)
        settings = self.settings or (ECONOMY if self.economy else Settings())
        if settings.fade is not None and not self.economy:
            raise InputError("fade belongs to the economy nowcaster: a full one has its window.")
        if settings.signed and (self.economy or any(r > 1 for r in listed)):
            raise InputError("signed settings, such as CHAIN_LADDER, are for rank 1 with history.")
        if self.economy and settings.fade is None:  # without it nothing would be carried on
            settings = replace(settings, fade=ECONOMY.fade)
        self._members = [CountModel(r, settings, self.seed) for r in listed]
        self._used: Sequence[Ladder] = () if self.economy else tuple(self.ladders)
        self._kept: Triangle | None = None
        self._trials = Trials() if validated else None
        self._spread = Spread()
        self._last: int | None = None
        self._falls = False
        self._like: tuple[Any, ...] | None = None
        self.nowcast_: Nowcast | None = None

    def update(self, triangle: Triangle) -> Nowcast:
        """Take the triangle as of a later day and return its nowcast.

        Only reports until that day can matter.  Days may be skipped; going back is refused.
        """
        if not isinstance(triangle, Triangle):
            raise InputError(
                f"a nowcaster takes a Triangle, not {brief(triangle)}; make one with "
                "Triangle.from_table or Triangle.from_line_list."
            )
        like = (triangle.strata, triangle.max_delay, triangle.every)
        if self._like not in (None, like):
            raise InputError(
                "the triangle has other strata, another maximum delay or other periods than the "
                "one before; make a new nowcaster."
            )
        if self._last is not None and triangle.last <= self._last:
            raise InputError(
                f"the triangle is as of {triangle.as_of_date}, which this nowcaster has seen; "
                "go on with a later day, or make a new nowcaster."
            )
        before = self._state()
        try:
            return self._step(triangle)
        except BaseException:  # also an interrupt: a step is made whole or not at all
            self._restore(before)
            raise

    def _state(self) -> tuple[Any, ...]:
        states = [member.state for member in self._members]
        spread, trials = copy(self._spread), copy(self._trials)
        seen = (self._last, self._like, self._falls, self.nowcast_)
        return states, self._kept, spread, trials, seen

    def _restore(self, before: tuple[Any, ...]) -> None:
        states, self._kept, self._spread, self._trials, seen = before
        self._last, self._like, self._falls, self.nowcast_ = seen
        for member, state in zip(self._members, states, strict=True):
            member.state = state

    def _step(self, triangle: Triangle) -> Nowcast:
        missed = self._missing(triangle)
        whole = self._snapshot(triangle)
        reach = triangle.max_delay + whole.silent
        windows = [m.window(reach) for m in self._members]
        whole = replace(whole, window=max(windows + [m.window(reach) for m in self._used]))
        units = Units.of(whole)
        parts = [
            units.total(model.step(whole.cut(window)))
            for model, window in zip(self._members, windows, strict=True)
        ]
        for ladder in self._used:
            cut = whole.cut(ladder.window(reach))
            part = ladder.unseen(cut, units)
            if self._members:  # beside models of cells: its cells, so that sums stay sums
                part = units.total(part[-len(whole.cells) :])
            parts.append(part)
        weights = self._weights(silent=whole.silent > 0)
        if self._trials is not None:
            past = _past(whole.triangle, units, whole)
            chosen = self._trials.best(units, whole, parts[: len(self._members)], past, missed)
            if chosen is not None:
                weights[: len(self._members)] *= len(self._members) * (
                    np.arange(len(self._members)) == chosen
                )
        unseen = np.einsum("m,mua->ua", weights, np.array(parts))
        if not np.isfinite(unseen).all():
            raise InputError(
                f"the nowcast as of {triangle.as_of_date} is not finite; do the settings allow "
                "one, or are counts of very different size?"
            )
        return self._finish(triangle, units, whole, unseen, missed)

    def _snapshot(self, triangle: Triangle) -> Snapshot:
        """Return what the models are shown: the triangle, or totals and news."""
        if not self.economy:
            runs = silences(triangle)
            return Snapshot(
                triangle=spread_back(triangle, runs), window=1, silent=lasting(triangle, runs)
            )
        news = triangle.without_negatives()
        totals = triangle.collapsed(triangle.max_delay + BACK)
        if self._kept is not None and self._last is not None:
            news, totals = triangle.since(self._last), self._kept
            if len(news.counts):
                totals = totals.joined(news.collapsed(news.n_dates))
            totals = replace(totals, last=triangle.last)
            newest = totals.dates >= totals.n_dates - triangle.max_delay - BACK
            totals = totals.only(newest)
        self._kept = totals
        news = news.on_axes(totals.labels, totals.first)
        return Snapshot(triangle=totals, window=1, news=news, silent=triangle.quiet)

    def _weights(self, *, silent: bool) -> Floats:
        """Return the share of each model and ladder in the average.

        While nothing is published a ladder has nothing to multiply.
        """
        n_models, n_ladders = len(self._members), len(self._used)
        if silent and n_models:
            return np.repeat([1.0 / n_models, 0.0], [n_models, n_ladders])
        if not n_models or not n_ladders:
            return np.full(n_models + n_ladders, 1.0 / (n_models + n_ladders))
        models = np.full(n_models, (1.0 - self.hedge) / n_models)
        return np.concatenate([models, np.full(n_ladders, self.hedge / n_ladders)])

    def _missing(self, triangle: Triangle) -> int:
        """Return how many report dates were skipped."""
        return 0 if self._last is None else triangle.last - self._last - 1

    def _finish(
        self, triangle: Triangle, units: Units, snapshot: Snapshot, unseen: Floats, missed: int
    ) -> Nowcast:
        if missed:
            self._spread.skip(missed)
        self._spread.forget_shallow(triangle.n_dates - triangle.max_delay - 1)
        self._spread.align(units.keys, unseen.shape[1])
        past = _past(snapshot.triangle, units, snapshot)
        published = units.total(snapshot.published)
        self._falls = self._falls or bool((triangle.counts < 0.0).any())
        today = Today(
            level=units.level, published=published, unseen=unseen, past=past,
            silent=snapshot.silent, falls=self._falls,
        )  # fmt: skip
        before = Spread(list(self._spread.unit_keys), self._spread.nowcasts, self._spread.unseen)
        if snapshot.silent:  # a day without reports teaches nothing about days with them
            self._spread.skip(1)
        else:
            self._spread.remember(units.keys, today.nowcast, unseen)
        self._last = triangle.last
        self._like = (triangle.strata, triangle.max_delay, triangle.every)
        self.nowcast_ = Nowcast(triangle=triangle, units=units, today=today, spread=before)
        return self.nowcast_

    def nowcast(self) -> Nowcast:
        """Return the newest nowcast."""
        if self.nowcast_ is None:
            raise NotFittedError("this nowcaster has seen no triangle yet; call update.")
        return self.nowcast_


def _past(triangle: Triangle, units: Units, snapshot: Snapshot) -> Floats:
    """Return the final counts of dates that are complete: units x dates, the newest first."""
    ages: Positions = triangle.n_dates - 1 - triangle.dates
    first, last = snapshot.n_ages, min(triangle.n_dates, snapshot.n_ages + BACK)
    width = max(last - first, 0)
    kept = (ages >= first) & (ages < last) & triangle.within()
    flat = snapshot.cell_of(triangle.codes[kept]) * width + ages[kept] - first
    sums = np.bincount(flat, triangle.counts[kept], len(snapshot.cells) * width)
    return units.total(np.asarray(sums, np.float64).reshape(len(snapshot.cells), width))
