"""From a data set to a stream of batches, and to the fitness after each of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from tensortide import datasets, simulate
from tensortide.arrays import Flags, Floats
from tensortide.data.batch import Batch
from tensortide.experiments.fitness import RunningFitness, fitness_of_known
from tensortide.experiments.scenario import Scenario, Source

Score = Callable[[Sequence[Floats]], float]


@dataclass(frozen=True)
class Step:
    """The arguments of one `update`, the fitness after it, and that of the cells to come."""

    batch: dict[str, Any]
    score: Score
    to_come: Score | None = None


@dataclass(frozen=True)
class Problem:
    """What every method of a seed is given: arguments of `fit`, then the steps."""

    first: dict[str, Any]
    steps: Callable[[], Iterator[Step]]


def problem(scenario: Scenario, source: Source, seed: int, *, quick: bool) -> Problem:
    """Return the stream of a data set for a seed."""
    options = dict(scenario.options) | dict(source.options)
    if quick:
        options |= scenario.quick
    x = load(source.name, options, seed)
    first = round(scenario.start * x.shape[-1])
    if scenario.setting == "general":
        return triangle(x, first, options.get("perturb", 0.0), seed)
    observed = None
    if scenario.setting == "completion":
        observed = simulate.random_mask(x.shape, options["observed"], seed=seed)
    return slices(x, observed, first)


def load(name: str, options: Mapping[str, Any], seed: int) -> Floats:
    """Return the array of a data set, growing mode last, cut down if asked."""
    if name == "synthetic":
        x = datasets.synthetic(options.get("shape", (50, 50, 500)), seed=seed).values
    elif name == "gcss":
        x = datasets.gcss(complete=True).values
    else:
        x = getattr(datasets, name)().values
    thin = int(options.get("thin", 1))
    if thin > 1:  # every so many rows of the first two modes: the same code on less data
        x = x[::thin, ::thin] if x.ndim == 3 else x[::thin]
    return np.ascontiguousarray(x[..., : options.get("slices", x.shape[-1])])


def slices(x: Floats, observed: Flags | None, first: int) -> Problem:
    """Return one slice a step: complete (fitness on all cells) or masked (on the hidden ones)."""
    score = RunningFitness(x, observed)

    def part(begin: int, end: int) -> dict[str, Any]:
        piece = x[..., begin:end]
        if observed is None:
            return {"records": piece}
        cells = np.argwhere(observed[..., begin:end])
        cells[:, -1] += begin
        return {"records": Batch(cells, x[tuple(cells.T)], shape=(*x.shape[:-1], end))}

    def steps() -> Iterator[Step]:
        for t in range(first, x.shape[-1]):
            yield Step(part(t, t + 1), score)

    return Problem(part(0, first), steps)


def triangle(x: Floats, first: int, perturb: float, seed: int) -> Problem:
    """Return a reporting triangle: the cell of date d and delay k is loaded at step d + k.

    The delays are the last mode but one.  With `perturb`, at each step 2 % of the loaded cells
    change by a uniform share of at most this.  Fitness: on the cells loaded so far, with the
    values of the day; apart from it, on the cells of the same dates that are to come.
    """
    cells = np.argwhere(~np.isnan(x))
    arrival = np.maximum(cells[:, -1] + cells[:, -2] - first + 1, 0)
    order = np.argsort(arrival, kind="stable")
    cells = cells[order]
    ends = np.searchsorted(arrival[order], np.arange(x.shape[-1] - first + 2))
    at = tuple(cells.T)

    def batch(now: Floats, chosen: Any, size: int) -> dict[str, Any]:
        listed = cells[chosen]
        return {"records": Batch(listed, now[tuple(listed.T)], shape=(*x.shape[:-1], size))}

    def steps() -> Iterator[Step]:
        now = x.copy()
        loaded = np.zeros(x.shape, dtype=bool)
        loaded[tuple(cells[: ends[1]].T)] = True
        rng = np.random.default_rng([seed, 7])
        for t in range(x.shape[-1] - first):
            new = np.arange(ends[t + 1], ends[t + 2])
            if perturb:
                known = int(ends[t + 1])
                revised = rng.choice(known, size=round(0.02 * known), replace=False)
                where = tuple(axis[revised] for axis in at)
                now[where] *= 1.0 + rng.uniform(-perturb, perturb, len(revised))
                new = np.concatenate([new, revised])
            loaded[tuple(cells[new].T)] = True
            size = first + t + 1
            seen = loaded[..., :size]
            today = now[..., :size]
            yield Step(
                batch(now, new, size),
                partial(fitness_of_known, np.where(seen, today, np.nan)),
                partial(fitness_of_known, np.where(seen, np.nan, today)),
            )

    return Problem(batch(x, np.arange(ends[1]), first), steps)
