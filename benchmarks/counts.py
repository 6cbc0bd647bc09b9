"""What an economy model of counts still knows in the end: baby names, year by year."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow.compute as pc

import tensortide as tt

NAMES, RANK, BEGIN, SEEDS = 400, 5, 1940, 3


def counts() -> np.ndarray:
    """Return the counts of the most frequent names: name, sex, year."""
    table = tt.datasets.us_baby_names().table
    table = table.filter(pc.greater_equal(table["year"].cast("int64"), BEGIN))
    totals = (
        table.group_by("name").aggregate([("count", "sum")]).sort_by([("count_sum", "descending")])
    )
    row = {name: i for i, name in enumerate(totals["name"].to_pylist()[:NAMES])}
    names = np.array([row.get(name, -1) for name in table["name"].to_pylist()])
    sexes = np.array(table["sex"].to_pylist()) == "F"
    years = np.array(table["year"].to_pylist(), int) - BEGIN
    found, kept = np.zeros((NAMES, 2, years.max() + 1)), names >= 0
    found[names[kept], sexes[kept].astype(int), years[kept]] = np.array(table["count"])[kept]
    return found


def final_divergence(found: np.ndarray, method: object, prior: str, seed: int) -> float:
    """Learn year by year after the first 30 %; return the divergence of all cells in the end."""
    model = tt.OnlineCP(RANK, method, loss="poisson", absent="zero", prior=prior, seed=seed)
    first = int(0.3 * found.shape[2])
    for begin, end in [(0, first), *((t, t + 1) for t in range(first, found.shape[2]))]:
        cells = np.add(np.argwhere(found[:, :, begin:end] > 0), (0, 0, begin))
        learn = model.fit if begin == 0 else model.update
        learn(tt.Batch(cells, found[tuple(cells.T)], shape=(*found.shape[:2], end)))
    values = np.einsum("ir,jr,kr->ijk", *model.factors_)
    return float(tt.losses.Poisson().value(found.ravel(), values.ravel()).sum())


def main() -> None:
    """Print the table."""
    try:
        found = counts()
    except tt.TensortideError as error:
        print(f"not measured: {error}")
        return
    ways = {
        "`gocpte`, paper, squared distance (0.4.0)": (
            replace(tt.gocpte(), anchor="squared"),
            "paper",
        ),
        "`gocpte`, paper, divergence of components": (tt.gocpte(), "paper"),
        "the same, 5 sweeps a step": (tt.gocpte(sweeps=5), "paper"),
        "`gocpte`, learned": (tt.gocpte(), "learned"),
        "`gocpt`, paper, all history": (tt.gocpt(), "paper"),
        "`gocpt`, learned": (tt.gocpt(), "learned"),
    }
    print(f"| way | divergence, {SEEDS} seeds |\n|---|---|")
    for name, (method, prior) in ways.items():
        ends = [final_divergence(found, method, prior, seed) for seed in range(SEEDS)]
        print(f"| {name} | {', '.join(f'{end:.2e}' for end in ends)} |")


if __name__ == "__main__":
    main()
