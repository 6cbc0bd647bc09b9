"""What the right loss is worth: Poisson counts completed by Poisson loss and by least squares."""

from __future__ import annotations

import numpy as np

import tensortide as tt

SHAPE, RANK, SEEDS = (12, 10, 40), 3, 5
POSITIVE = {mode: tt.nonnegative() for mode in range(3)}
WAYS = ({"loss": "poisson"}, {"penalties": POSITIVE}, {"loss": "poisson", "prior": "paper"})


def errors(rate: float, seed: int) -> list[float]:
    """Return the relative errors of the unseen means, for each of `WAYS`."""
    rng = np.random.default_rng(seed)
    factors = [rng.gamma(1.0, 1.0, (n, RANK)) for n in SHAPE]
    mean = rate * np.einsum("ir,jr,kr->ijk", *factors)
    counts = rng.poisson(mean).astype(float)
    seen = rng.random(SHAPE) < 0.3
    batch = tt.Batch(np.argwhere(seen), counts[seen], shape=SHAPE)
    found = []
    for options in WAYS:
        model = tt.OnlineCP(RANK, seed=seed, **options).fit(batch)
        values = np.einsum("ir,jr,kr->ijk", *model.factors_)
        found.append(float(np.abs(values - mean)[~seen].sum() / mean[~seen].sum()))
    return found


def main() -> None:
    """Print the table."""
    size = " x ".join(map(str, SHAPE))
    print(f"{size}, rank {RANK}, 30 % seen; error of the unseen means, mean of {SEEDS} seeds\n")
    print("| mean count | Poisson loss | least squares, non-negative | ratio | Poisson, paper |")
    print("|---|---|---|---|---|")
    for rate in (0.1, 0.5, 2.0, 10.0):
        pairs = np.array([errors(rate, seed) for seed in range(SEEDS)])
        poisson, squares, paper = pairs.mean(axis=0)
        share = poisson / squares
        print(f"| {3 * rate:g} | {poisson:.3f} | {squares:.3f} | {share:.2f} | {paper:.3f} |")


if __name__ == "__main__":
    main()
