"""Low-rank tensors and their evolution as streams of records.  Everything is seeded.

A stream is a set of observed cells, each with the step at which it arrives: nothing is
dropped, and all batches together are exactly the observed cells (plus revisions).

>>> truth = low_rank((4, 3, 10), rank=2, seed=1)
>>> stream = growth(truth, start=0.5, seed=1)
>>> [len(batch) for batch in stream]
[60, 12, 12, 12, 12, 12]
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from tensortide.arrays import Floats, Positions, Shape
from tensortide.data.batch import Batch
from tensortide.errors import InputError
from tensortide.validate import check_choice, check_rank

KINDS = ("uniform", "normal", "nonnegative")
_LARGEST_DENSE = 50_000_000


@dataclass(frozen=True, eq=False, kw_only=True)
class LowRank:
    """A tensor of low rank that is never written out unless asked.

    `drift` moves the first factor along the last mode, so that old and new slices differ;
    `noise` is the standard deviation of Gaussian noise relative to the values' root mean
    square, fixed for every cell by the seed.
    """

    factors: tuple[Floats, ...]
    direction: Floats
    noise: float
    drift: float
    scale: float
    seed: int

    @property
    def shape(self) -> Shape:
        """Size of each mode."""
        return tuple(len(f) for f in self.factors)

    def values(self, coords: Any, *, clean: bool = False) -> Floats:
        """Return the values at (n, N) positions, without noise if `clean`."""
        cells = np.asarray(coords, np.int64)
        product = self.factors[0][cells[:, 0]]
        if self.drift:
            share = cells[:, -1] / max(self.shape[-1] - 1, 1)
            product = product + self.drift * share[:, None] * self.direction[cells[:, 0]]
        for mode in range(1, len(self.factors)):
            product = product * self.factors[mode][cells[:, mode]]
        exact = np.asarray(product.sum(axis=1))
        if clean or not self.noise:
            return exact
        return exact + self.noise * self.scale * _gaussian(cells, self.seed)

    def dense(self, *, clean: bool = False) -> Floats:
        """Return the whole tensor, if it is small."""
        if float(np.prod(self.shape, dtype=float)) > _LARGEST_DENSE:
            raise InputError(f"a dense tensor of shape {self.shape} is too large; use values().")
        cells = np.stack(np.unravel_index(np.arange(int(np.prod(self.shape))), self.shape), axis=1)
        return self.values(cells, clean=clean).reshape(self.shape)


def low_rank(
    shape: Sequence[int],
    rank: int,
    *,
    kind: str = "uniform",
    noise: float = 0.0,
    drift: float = 0.0,
    seed: int = 0,
) -> LowRank:
    """Draw factors from uniform [0, 1], standard normal, or sparse non-negative numbers."""
    check_choice("kind", kind, KINDS)
    sizes = tuple(int(s) for s in shape)
    if len(sizes) < 2 or min(sizes) < 1:
        raise InputError(f"shape must have at least 2 sizes from 1 on, not {shape!r}.")
    rng = np.random.default_rng([seed, 2])  # not the numbers a model with this seed starts from
    factors = tuple(_draw(kind, (size, check_rank(rank)), rng) for size in sizes)
    direction = _draw(kind, factors[0].shape, rng)
    grams = np.prod([f.T @ f / len(f) for f in factors], axis=0)
    return LowRank(
        factors=factors, direction=direction, noise=noise, drift=drift,
        scale=float(np.sqrt(grams.sum())), seed=seed,
    )  # fmt: skip


@dataclass(frozen=True, eq=False, kw_only=True)
class Stream:
    """Observed cells with the step of their arrival; iterate for the batches, first one first.

    `sizes[t]` is the shape of the tensor at step t.  `revision` says which share of the
    cells that have arrived is changed at each later step, and by how much at most.
    """

    truth: LowRank
    coords: Positions
    arrival: Positions
    sizes: tuple[Shape, ...]
    revision: tuple[float, float, int] | None = None

    def __len__(self) -> int:
        """Return the number of batches, preparation included."""
        return len(self.sizes)

    def __iter__(self) -> Iterator[Batch]:
        """Yield the batch of each step, with the shape of the tensor at that step."""
        values = self.truth.values(self.coords)
        order = np.argsort(self.arrival, kind="stable")
        ends = np.searchsorted(self.arrival[order], np.arange(len(self) + 1))
        rng = np.random.default_rng(0 if self.revision is None else self.revision[2])
        for step, shape in enumerate(self.sizes):
            new = order[ends[step] : ends[step + 1]]
            if self.revision is not None and step > 0:
                revised = self._revise(order[: ends[step]], values, rng)
                new = np.concatenate([new, revised])
            yield Batch(self.coords[new], values[new], shape=shape)

    def tables(
        self,
        modes: Sequence[str],
        value: str = "value",
        names: Mapping[str, Sequence[Any]] | None = None,
    ) -> Iterator[dict[str, Any]]:
        """Yield the batches as dicts of columns; `names` gives labels for positions."""
        labels = {mode: np.asarray(given) for mode, given in (names or {}).items()}
        for batch in self:
            columns = batch.to_columns(list(modes), value)
            yield {n: labels[n][c] if n in labels else c for n, c in columns.items()}

    def _revise(self, known: Positions, values: Floats, rng: np.random.Generator) -> Positions:
        share, size, _ = self.revision or (0.0, 0.0, 0)
        chosen = rng.choice(known, size=round(share * len(known)), replace=False)
        values[chosen] *= 1.0 + rng.uniform(-size, size, len(chosen))
        return np.asarray(chosen)


def growth(
    truth: LowRank,
    *,
    modes: int | Sequence[int] = -1,
    start: float = 0.1,
    by: int = 1,
    observed: float = 1.0,
    seed: int = 0,
) -> Stream:
    """Return a stream in which one or several modes grow by `by` positions a step.

    The first batch holds the leading share `start` of each growing mode.  Of all cells a
    random share `observed` is ever seen.
    """
    growing = sorted({m % len(truth.shape) for m in np.atleast_1d(modes).tolist()})
    if by < 1 or not 0.0 < start <= 1.0:
        raise InputError("start must lie in (0, 1] and by must be at least 1.")
    coords = _observed_cells(truth.shape, observed, seed)
    arrival = np.zeros(len(coords), np.int64)
    first = {m: max(1, round(start * truth.shape[m])) for m in growing}
    for mode in growing:
        arrival = np.maximum(arrival, -(-(coords[:, mode] - first[mode] + 1) // by))
    n_steps = max(-(-(truth.shape[m] - first[m]) // by) for m in growing)
    sizes = tuple(
        tuple(min(s, first[m] + by * t) if m in first else s for m, s in enumerate(truth.shape))
        for t in range(n_steps + 1)
    )
    return Stream(truth=truth, coords=coords, arrival=np.maximum(arrival, 0), sizes=sizes)


def reporting(
    truth: LowRank,
    *,
    date: int = -2,
    delay: int = -1,
    start: float = 0.5,
    observed: float = 1.0,
    seed: int = 0,
) -> Stream:
    """Return a reporting triangle: a cell of date d and delay k arrives at date d + k.

    One step a date; dates grow, and earlier dates fill up delay by delay.  The stream goes
    on after the last date until all delays have arrived.
    """
    order = len(truth.shape)
    dates, delays = date % order, delay % order
    if dates == delays:
        raise InputError("date and delay must be different modes.")
    first = max(1, round(start * truth.shape[dates]))
    coords = _observed_cells(truth.shape, observed, seed)
    arrival = np.maximum(coords[:, dates] + coords[:, delays] - first + 1, 0)
    n_steps = truth.shape[dates] - first + truth.shape[delays] - 1
    sizes = tuple(
        tuple(min(s, first + t) if m == dates else s for m, s in enumerate(truth.shape))
        for t in range(n_steps + 1)
    )
    return Stream(truth=truth, coords=coords, arrival=arrival, sizes=sizes)


def revise(stream: Stream, *, share: float = 0.02, size: float = 0.05, seed: int = 0) -> Stream:
    """Return the stream with corrections: at each step a share of the known cells is changed.

    Each chosen value x becomes ``x (1 + s)`` with s uniform in [-size, size].  The defaults
    are the paper's.
    """
    if not 0.0 <= share <= 1.0 or size < 0.0:
        raise InputError("share must lie in [0, 1] and size must not be negative.")
    return replace(stream, revision=(share, size, seed))


def random_mask(shape: Sequence[int], observed: float, *, seed: int = 0) -> npt.NDArray[np.bool_]:
    """Return a dense mask in which each cell is observed with this probability."""
    return np.random.default_rng([seed, 3]).random(tuple(shape)) < observed


def _draw(kind: str, shape: tuple[int, ...], rng: np.random.Generator) -> Floats:
    if kind == "normal":
        return rng.standard_normal(shape)
    if kind == "nonnegative":
        return rng.gamma(0.5, 2.0, shape)
    return rng.random(shape)


def _observed_cells(shape: Shape, observed: float, seed: int) -> Positions:
    if not 0.0 < observed <= 1.0:
        raise InputError(f"observed must lie in (0, 1], not {observed!r}.")
    rng = np.random.default_rng([seed, 1])
    cells = 1
    for size in shape:
        cells *= size
    if cells <= _LARGEST_DENSE:
        flat = (
            np.flatnonzero(random_mask((cells,), observed, seed=seed))
            if observed < 1.0
            else (np.arange(cells))
        )
    else:  # binomial count, then distinct cells: the same law without a mask
        count = int(rng.binomial(cells, observed)) if cells < 2**62 else round(observed * cells)
        flat = np.unique(rng.integers(0, cells, size=count))
        while len(flat) < count:
            more = rng.integers(0, cells, size=count - len(flat))
            flat = np.unique(np.concatenate([flat, more]))
    return np.ascontiguousarray(np.stack(np.unravel_index(flat, shape), axis=1))


def _gaussian(cells: Positions, seed: int) -> Floats:
    """Return a standard normal number for each cell that depends on cell and seed only."""
    state = np.full(len(cells), np.uint64(seed) + np.uint64(0x9E3779B97F4A7C15), np.uint64)
    for mode in range(cells.shape[1]):
        state = _mix(state ^ cells[:, mode].astype(np.uint64))
    scale = 2.0**-53
    first = ((_mix(state) >> np.uint64(11)).astype(float) + 0.5) * scale
    second = (_mix(state ^ np.uint64(0xD1B54A32D192ED03)) >> np.uint64(11)).astype(float) * scale
    return np.asarray(np.sqrt(-2.0 * np.log(first)) * np.cos(2.0 * np.pi * second))


def _mix(state: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Scramble (splitmix64)."""
    state = state + np.uint64(0x9E3779B97F4A7C15)
    state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return state ^ (state >> np.uint64(31))
