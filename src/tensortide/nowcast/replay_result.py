"""What a replay found: quantiles, truths, and the tables made of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from tensortide.arrays import Floats
from tensortide.errors import InputError
from tensortide.legacy import FormerTuple
from tensortide.nowcast.periods import Days, first_days, periods_of
from tensortide.nowcast.scoring import Scores, block_bootstrap, on_log_scale, scores
from tensortide.nowcast.units import Units
from tensortide.validate import check_choice

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ScoreDifference(FormerTuple):
    """The ratio of two models' mean scores less one (`relative`), and its 95 % interval."""

    relative: float
    low: float
    high: float
    _former: ClassVar[tuple[str, ...]] = ("relative", "low", "high")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ScoredNowcasts(FormerTuple):
    """How many nowcasts of the whole have a final count, and how many there are."""

    final: int
    asked: int
    _former: ClassVar[tuple[str, ...]] = ("final", "asked")


@dataclass(frozen=True, kw_only=True, eq=False)
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
    every: str = "day"

    @property
    def level_names(self) -> list[str]:
        """What each kind of sum is called: the strata that it does not sum over."""
        names = []
        for number in range(int(self.units.level.max()) + 1):
            key = self.units.keys[int(np.flatnonzero(self.units.level == number)[0])]
            kept = [n for n, label in zip(self.units.strata, key, strict=True) if label is not None]
            names.append(" x ".join(kept) or "all")
        return names

    def level_number(self, level: str) -> int:
        """Return the number of a kind of sum."""
        names = self.level_names
        if level not in names:
            raise InputError(f"there is no level {level!r}; there are {', '.join(names)}.")
        return names.index(level)

    @property
    def scored(self) -> ScoredNowcasts:
        """How many nowcasts of the whole have a final count, and how many there are."""
        asked = np.isfinite(next(iter(self.quantiles.values()))[:, 0, :, 0])
        final = asked & np.isfinite(self.truth[:, 0])
        return ScoredNowcasts(final=int(final.sum()), asked=int(asked.sum()))

    def __repr__(self) -> str:
        """Show what was replayed."""
        models = ", ".join(self.quantiles)
        return f"<Replay as of {self.dates[0]} to {self.dates[-1]}: {models}>"

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
        self,
        model: str,
        other: str,
        *,
        level: str = "all",
        measure: str = "wis",
        log: bool = False,
        seed: int = 0,
    ) -> ScoreDifference:
        """Return the ratio of two models' mean scores less one, and its 95 % interval.

        Negative: `model` is better.  Blocks of as-of days are resampled, both models together;
        of fewer than five days there is no interval (NaN).
        """
        check_choice("measure", measure, ("wis", "mae"))
        chosen = self.units.level == self.level_number(level)
        found = []
        for name in (model, other):
            score = self.scores(name, log=log)
            values = np.abs(score.error) if measure == "mae" else score.wis
            found.append(values[:, chosen])
        live = np.isfinite(found[0] + found[1])
        means = [np.where(live, f, 0.0).sum(axis=(1, 2)) for f in found]
        keep = live.any(axis=(1, 2))
        mine, theirs = means[0][keep], means[1][keep]
        if not theirs.sum() > 0.0:
            return ScoreDifference(relative=np.nan, low=np.nan, high=np.nan)
        low, high = block_bootstrap(mine, theirs, seed=seed)
        relative = float(mine.mean() / theirs.mean() - 1.0)
        return ScoreDifference(relative=relative, low=low - 1.0, high=high - 1.0)

    def to_table(self) -> pa.Table:
        """Return every quantile: as_of, model, strata, date, horizon, level, value, truth.

        `date` is the first day of the last period that a target sums over.
        """
        import pyarrow as pa

        tables = []
        for model, found in self.quantiles.items():
            day, unit, horizon, level = np.nonzero(np.isfinite(found))
            columns: dict[str, Any] = {"as_of": self.dates[day], "model": np.full(len(day), model)}
            for k, name in enumerate(self.units.strata):
                labels = [key[k] for key in self.units.keys]
                columns[name] = [labels[u] for u in unit]
            periods = periods_of(self.dates, self.every)[day] - horizon
            columns |= {
                "date": first_days(periods, self.every),
                "horizon": horizon,
                "level": np.array(self.levels)[level],
                "value": found[day, unit, horizon, level],
                "truth": pa.array(self.truth[day, unit, horizon], from_pandas=True),  # or null
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


def score_texts(row: Mapping[str, Any]) -> list[str]:
    """Return a row of a summary by level for people; no relative WIS where there is no base."""
    relative = row.get("relative_wis")
    return [
        row["level"], row["model"], f"{row['wis']:,.2f}",
        "" if relative is None else f"{relative:.2f}", f"{row['coverage_50']:.0%}",
        f"{row['coverage_95']:.0%}", f"{row['bias']:+,.2f}", f"{row['mae']:,.2f}",
    ]  # fmt: skip
