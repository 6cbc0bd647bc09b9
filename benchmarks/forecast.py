"""Forecasts from rolling origins on simulated streams, beside what anybody would try first.

Each model learns a stream slice by slice; at every fourth slice it forecasts 14 steps.  Rivals, for
each series: its last value, its value one or two weeks ago, its mean.  A figure is the error of a
model (root mean square over all origins and cells that were observed) as a share of that of the
best rival in hindsight, at that horizon.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

import tensortide as tt
from tensortide.arrays import Flags, Floats

FARTHEST, SHOWN, WEEK = 14, (1, 2, 3, 5, 7, 10, 14), 7
SHAPE, FIRST, EVERY = (20, 12, 84), 28, 4
MODELS = {
    "gocpt": {"method": "gocpt"},
    "gocpte": {"method": "gocpte"},
    "gocpte, fibres": {"method": "gocpte", "fibres": True},
}


def walk(rng: np.random.Generator, rank: int = 3, drift: float = 0.0) -> Floats:
    """Return a low-rank tensor whose components walk at random, and whose places drift."""
    a, b = (rng.normal(size=(n, rank)) for n in SHAPE[:2])
    c = 0.3 * np.cumsum(rng.normal(size=(SHAPE[2], rank)), axis=0) + rng.normal(size=(1, rank))
    moving = a[:, :, None] + drift * np.cumsum(rng.normal(size=(SHAPE[0], rank, SHAPE[2])), axis=2)
    x = np.einsum("irt,jr,tr->ijt", moving, b, c)
    return np.asarray(x / x.std() + 0.3 * rng.normal(size=SHAPE))


def effects(rng: np.random.Generator) -> Floats:
    """Return effects of places and kinds and a common walk, beside a low-rank part."""
    sides = rng.normal(size=(SHAPE[0], 1, 1)) + rng.normal(size=(1, SHAPE[1], 1))
    common = 0.15 * np.cumsum(rng.normal(size=(1, 1, SHAPE[2])), axis=2)
    return np.asarray(3.0 + sides + common + walk(rng))


def weeks(rng: np.random.Generator) -> Floats:
    """Return counts with a weekly course and a level that walks."""
    week = np.array([1.0, 1.1, 1.05, 1.0, 0.9, 0.6, 0.5])[np.arange(SHAPE[2]) % WEEK]
    level = np.exp(np.cumsum(0.05 * rng.normal(size=SHAPE[2])))
    mean = np.einsum(
        "i,j,t->ijt", rng.gamma(3.0, 8.0, SHAPE[0]), rng.gamma(2.0, 1.0, SHAPE[1]), week * level
    )
    return rng.poisson(mean).astype(float)


def own_levels(rng: np.random.Generator) -> Floats:
    """Return series with levels of their own that walk, which no low rank holds."""
    steps = 0.1 * rng.normal(size=SHAPE)
    return np.asarray(
        rng.normal(size=(*SHAPE[:2], 1)) + np.cumsum(steps, axis=2) + 0.3 * rng.normal(size=SHAPE)
    )


STREAMS: dict[str, Callable[[np.random.Generator], Floats]] = {
    "low rank": walk,
    "drift": lambda rng: walk(rng, drift=0.08),
    "effects": effects,
    "weekly counts": weeks,
    "own levels": own_levels,
}  # fmt: skip


def rivals(x: Floats, seen: Flags, origin: int) -> list[Floats]:
    """Return forecasts of every series for each horizon: last value, seasonal naive, mean."""
    known, ahead = np.where(seen, x, np.nan)[..., :origin], np.arange(FARTHEST)
    count = np.maximum(seen[..., :origin].sum(axis=2), 1)
    mean = np.nansum(known, axis=2) / count
    last = np.where(seen[..., :origin].any(axis=2), 0.0, mean)
    newest = np.where(seen[..., :origin], np.arange(origin), -1).max(axis=2)
    last = (
        last + np.take_along_axis(np.nan_to_num(known), np.maximum(newest, 0)[..., None], 2)[..., 0]
    )
    weeks_ago = known[..., origin - WEEK * (ahead // WEEK + 1) + ahead]
    weeks_ago = np.where(np.isnan(weeks_ago), last[..., None], weeks_ago)
    same = np.ones(FARTHEST)
    return [last[..., None] * same, weeks_ago, mean[..., None] * same]


def ratios(x: Floats, seen: Flags) -> dict[str, Floats]:
    """Return for each model its error as a share of the best rival's, for each horizon."""
    origins = range(FIRST + EVERY, SHAPE[2] - FARTHEST + 1, EVERY)
    bases, missed = np.zeros((3, FARTHEST)), {name: np.zeros(FARTHEST) for name in MODELS}
    for name, options in MODELS.items():
        model = tt.OnlineCP(5, **options).fit(np.where(seen, x, np.nan)[..., :FIRST])
        for at in range(FIRST, SHAPE[2] - FARTHEST + 1):
            if at in origins:
                judged = np.where(seen, x, np.nan)[..., at : at + FARTHEST]
                box = model.forecast(FARTHEST)
                cells = [box.column(mode).to_numpy() for mode in range(3)]
                found = np.full(judged.shape, np.nan)
                found[cells[0], cells[1], cells[2] - at] = box["value"].to_numpy()
                missed[name] += np.nansum((judged - found) ** 2, axis=(0, 1))
                if name == "gocpt":
                    for k, simple in enumerate(rivals(x, seen, at)):
                        bases[k] += np.nansum((judged - simple) ** 2, axis=(0, 1))
            model.update(np.where(seen, x, np.nan)[..., at])
    return {name: np.sqrt(errors / bases.min(axis=0)) for name, errors in missed.items()}


def main() -> None:
    """Print the table."""
    print("error as a share of the best of last value, seasonal naive and mean; steps ahead:\n")
    print(f"| stream | model | {' | '.join(map(str, SHOWN))} |")
    print("|---" * (2 + len(SHOWN)) + "|")
    every = []
    for name, make in STREAMS.items():
        rng = np.random.default_rng(1)
        x = make(rng)
        for model, found in ratios(x, rng.random(x.shape) < 0.6).items():
            every.append(found)
            shown = " | ".join(f"{found[h - 1]:.2f}" for h in SHOWN)
            print(f"| {name} | {model} | {shown} |", flush=True)
    both = np.array(every)
    print(f"\nmedian {np.median(both):.2f}; at or below the best rival: {np.mean(both <= 1.0):.0%}")


if __name__ == "__main__":
    main()
