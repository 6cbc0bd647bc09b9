"""Do models with their defaults beat what needs no model?  Errors against the best rival's.

Each stream is cut into steps, of which the first 30 % are the preparation.  Every batch is
predicted before it is learned, and a tenth of its cells is never learned, to judge by.  Errors are
means of some seeds.  The best rival is that of the stream and of the score: nobody knows it
beforehand.  Nothing is chosen by stream.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa

import tensortide as tt
from tensortide.arrays import Floats
from tensortide.experiments.compare import FIBRES, Task
from tensortide.experiments.compare_result import SLACK
from tensortide.experiments.comparison import Comparison, contest
from tensortide.experiments.rivals import RIVALS

METHODS = ("gocpt", "gocpte", "gocpte" + FIBRES)
SHAPE, RANK, SEEDS, MODES = (20, 15, 60), 5, 5, ["place", "kind", "day"]
SCORES = {"error": "Before a batch is learned", "error_held": "Cells held out"}


def growing(
    kind: str, seed: int, *, noise: float = 0.2, drift: float = 0.0, revised: bool = False
) -> Task:
    """Return a low-rank tensor that grows by a slice a step, with corrections or without."""
    truth = tt.simulate.low_rank(SHAPE, 3, kind=kind, noise=noise, drift=drift, seed=seed)
    stream = tt.simulate.growth(truth, start=1 / SHAPE[-1], observed=0.3, seed=seed)
    return _task(tt.simulate.revise(stream, seed=seed) if revised else stream)


def two_modes(seed: int) -> Task:
    """Return a tensor with new places as well as new days."""
    truth = tt.simulate.low_rank((40, 15, 40), 3, noise=0.2, seed=seed)
    return _task(tt.simulate.growth(truth, modes=(0, 2), start=1 / 40, observed=0.3, seed=seed))


def triangle(seed: int) -> Task:
    """Return reports that come late: place x day x delay."""
    truth = tt.simulate.low_rank((20, 50, 8), 3, kind="nonnegative", noise=0.2, seed=seed)
    return _task(tt.simulate.reporting(truth, start=1 / 50, observed=0.6, seed=seed))


def _task(stream: tt.simulate.Stream) -> Task:
    tables = [
        pa.table(columns | {"step": np.full(len(columns["value"]), step)})
        for step, columns in enumerate(stream.tables(MODES))
    ]
    return _cut(pa.concat_tables(tables), MODES, "value", "step")


def _cut(table: pa.Table, modes: list[str], value: str, step_by: str) -> Task:
    return Task(
        table=table, modes=modes, value=value, step_by=step_by, rank=RANK, start=0.3, hold_out=0.1
    )


def reports(seed: int) -> Task:
    """Return the hospitals of the demo: weeks, waves, delays, corrections, late joiners."""
    tables = [pa.table(table) for table in tt.simulate.admissions(60, seed=seed)]
    return _cut(pa.concat_tables(tables), ["place", "age", "date", "delay"], "count", "reported")


def panel(day: Callable[[np.random.Generator], Floats], seed: int, *, effects: bool) -> Task:
    """Return three components (or additive effects) whose days are drawn by `day`, and noise."""
    rng = np.random.default_rng(seed)
    place, kind = (rng.lognormal(0.0, 0.5, (n, 3)) for n in SHAPE[:2])
    if effects:
        x = 5.0 + place[:, :1, None] + kind[None, :, :1] + day(rng)[None, None, :, 0]
    else:
        x = np.einsum("ir,jr,tr->ijt", place, kind, day(rng))
    x = x + 0.2 * x.std() * rng.normal(size=SHAPE)
    cells = np.argwhere(rng.random(SHAPE) < 0.3)
    columns = dict(zip(MODES, cells.T, strict=True)) | {"value": x[tuple(cells.T)]}
    return _cut(pa.table(columns), MODES, "value", "day")


def walk(rng: np.random.Generator) -> Floats:
    """Return days that each differ a little from the one before."""
    return np.asarray(2.0 + np.cumsum(0.15 * rng.normal(size=(SHAPE[-1], 3)), axis=0))


def weeks(rng: np.random.Generator) -> Floats:
    """Return days that are those of a week ago but for a tenth."""
    week = rng.lognormal(0.0, 0.7, (7, 3))[np.arange(SHAPE[-1]) % 7]
    return np.asarray(week * (1.0 + 0.1 * rng.normal(size=week.shape)))


STREAMS: dict[str, Callable[[int], Task]] = {
    "low rank, uniform": lambda seed: growing("uniform", seed),
    "low rank, normal": lambda seed: growing("normal", seed),
    "low rank, non-negative": lambda seed: growing("nonnegative", seed),
    "much noise": lambda seed: growing("uniform", seed, noise=0.6),
    "drift": lambda seed: growing("normal", seed, drift=1.0),
    "corrections": lambda seed: growing("nonnegative", seed, revised=True),
    "two modes grow": two_modes,
    "late reports": triangle,
    "hospitals": reports,
    "components walk": lambda seed: panel(walk, seed, effects=False),
    "components by weekday": lambda seed: panel(weeks, seed, effects=False),
    "effects walk": lambda seed: panel(walk, seed, effects=True),
    "effects by weekday": lambda seed: panel(weeks, seed, effects=True),
}


def table_of(found: dict[str, list[Comparison]], score: str) -> list[str]:
    """Return the lines of the table of one score, medians and counts at its end."""
    lines = [
        f"| stream | best rival | {' | '.join(METHODS)} |",
        "|---|---|" + "---|" * len(METHODS),
    ]
    ratios = np.empty((len(found), len(METHODS)))
    for row, (stream, seeds) in enumerate(found.items()):
        rivals = {name: mean_error(seeds, name, score) for name in RIVALS}
        best = min(rivals, key=rivals.__getitem__)
        errors = np.array([mean_error(seeds, name, score) for name in METHODS])
        ratios[row] = errors / rivals[best]
        told = (f"{e:.3f} ({r:.2f})" for e, r in zip(errors, ratios[row], strict=True))
        lines.append(f"| {stream} | {rivals[best]:.3f} {best} | {' | '.join(told)} |")
    medians = " | ".join(f"{ratio:.2f}" for ratio in np.median(ratios, axis=0))
    counts = " | ".join(f"{n} of {len(found)}" for n in (ratios <= SLACK).sum(axis=0))
    return [*lines, f"| median of ratios | 1 | {medians} |",
            f"| within 2 % of it or better | | {counts} |"]  # fmt: skip


def mean_error(seeds: list[Comparison], name: str, score: str) -> float:
    """Return the error of a method or a rival, over the seeds of a stream."""
    return float(np.mean([getattr(found[name], score) for found in seeds]))


def main() -> None:
    """Print both tables."""
    found = {
        name: [contest(task(seed), METHODS, progress=False) for seed in range(SEEDS)]
        for name, task in STREAMS.items()
    }
    print(f"relative errors, means of {SEEDS} seeds (in brackets: against the best rival)")
    for score, words in SCORES.items():
        print(f"\n{words}:\n\n" + "\n".join(table_of(found, score)))


if __name__ == "__main__":
    main()
