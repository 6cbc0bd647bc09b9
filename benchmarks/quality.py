"""Fitness on real data: the figures of docs/measurements.md, printed by `make figures`.

Indian Pines: 98 % masked, rank 5, the first 10 % of the bands as preparation, then one band
a step; average over steps of the fitness on the masked cells of the bands seen so far.
ORL faces: complete, rank 5, the first 10 % of the shots as preparation, then one shot a
step; average over steps of the fitness on all cells seen so far.  Defaults everywhere.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

import tensortide as tt
from tensortide.core.types import Flags, Floats

PAPER = {
    ("indian_pines", "gocpte"): 0.8923,
    ("indian_pines", "gocpt"): 0.8970,
    ("orl_faces", "gocpte"): 0.7452,
    ("orl_faces", "gocpt"): 0.7473,
}


def data_folder() -> Path:
    """Return where the real data are."""
    beside = Path(__file__).resolve().parents[2] / "shared" / "data"
    return Path(os.environ.get("TENSORTIDE_DATA", beside))


def load(name: str) -> Floats:
    """Return a data set as a dense array, growing mode last."""
    key = {"indian_pines": "cube", "orl_faces": "images"}[name]
    path = data_folder() / f"{name}.npz"
    if not path.is_file():
        sys.exit(f"{path}: there is no such file; set TENSORTIDE_DATA to the folder of real data.")
    with np.load(path) as file:
        return file[key].astype(np.float64)


class RunningFitness:
    """Fitness on all chosen cells of the slices seen so far, without building the tensor.

    With G the Gram matrices of the first two factors, |x - y|^2 over complete slices is
    |x|^2 - 2 <x, y> + w G w'; hidden cells are the complete slice less the observed ones.
    """

    def __init__(self, x: Floats, observed: Flags | None) -> None:
        self._slices = np.ascontiguousarray(x.reshape(-1, x.shape[2]).T)
        self._observed = observed
        self._squares = np.cumsum((self._slices**2).sum(axis=1))
        if observed is not None:
            self._cells = np.argwhere(observed)
            self._cells = self._cells[np.argsort(self._cells[:, 2], kind="stable")]
            self._values = x[tuple(self._cells.T)]
            self._ends = np.searchsorted(self._cells[:, 2], np.arange(x.shape[2] + 1))

    def __call__(self, factors: list[Floats]) -> float:
        """Return the fitness of a model of the first slices."""
        a, b, w = factors
        t = len(w)
        mixed = self._slices[:t] @ (a[:, None, :] * b[None, :, :]).reshape(-1, a.shape[1])
        own = ((w @ ((a.T @ a) * (b.T @ b))) * w).sum()
        error, size = self._squares[t - 1] - 2.0 * (mixed * w).sum() + own, self._squares[t - 1]
        if self._observed is not None:
            end = self._ends[t]
            i, j, k = self._cells[:end].T
            seen = self._values[:end]
            error -= ((seen - (a[i] * b[j] * w[k]).sum(axis=1)) ** 2).sum()
            size -= (seen**2).sum()
        return float(1.0 - np.sqrt(max(error, 0.0) / size))


def run(name: str, method: Any, seed: int, *, every: int = 1) -> tuple[float, float]:
    """Return the average fitness over steps and the total update time in seconds."""
    x = load(name)
    observed = None
    if name == "indian_pines":
        observed = np.random.default_rng(seed).random(x.shape) < 0.02
    fitness = RunningFitness(x, observed)
    prepared = round(0.1 * x.shape[2])
    model = tt.OnlineCP(5, method, seed=seed)

    def part(first: int, last: int) -> dict[str, Any]:
        mask = None if observed is None else observed[:, :, first:last]
        return {"records": x[:, :, first:last], "mask": mask}

    model.fit(**part(0, prepared))
    scores, seconds = [], 0.0
    for t in range(prepared, x.shape[2]):
        began = time.perf_counter()
        model.update(**part(t, t + 1))
        seconds += time.perf_counter() - began
        if (t - prepared) % every == 0:
            scores.append(fitness(model.factors_))
    return float(np.mean(scores)), seconds


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--data", nargs="*", default=["indian_pines", "orl_faces"])
    options = parser.parse_args()
    print("| data | method | paper | fitness, mean | standard deviation | update time, s |")
    print("|---|---|---|---|---|---|")
    for name in options.data:
        for method in ("gocpte", "gocpt"):
            results = [run(name, method, seed) for seed in range(options.seeds)]
            scores, seconds = zip(*results, strict=True)
            print(
                f"| {name} | {method} | {PAPER[name, method]:.4f} | {np.mean(scores):.4f} | "
                f"{np.std(scores):.1e} | {np.mean(seconds):.2f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
