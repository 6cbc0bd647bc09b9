"""Sparse against dense strategy at several mask densities (figure `fig:masked_vs_imputed`)."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from tensortide import simulate
from tensortide.core.objective.data_terms import imputed, observed_rows
from tensortide.core.steps.alpha import constant
from tensortide.core.steps.blocks import sweep
from tensortide.core.steps.method import Recipe
from tensortide.core.tensor.dense_box import AnyEntries, DenseBox
from tensortide.core.tensor.entries import Entries
from tensortide.core.tensor.workspace import Workspace
from tensortide.experiments import streams
from tensortide.experiments.fitness import RunningFitness
from tensortide.experiments.scenario import Contender, Scenario, Source


def run(
    scenario: Scenario, source: Source, contender: Contender, seed: int, *, quick: bool
) -> dict[str, Any]:
    """Return time and fitness on the hidden cells after each iteration from the same start."""
    options = dict(scenario.options) | dict(source.options)
    if quick:
        options |= scenario.quick
    x = streams.load(source.name, options, seed)
    observed = simulate.random_mask(x.shape, options["observed"], seed=seed)
    score = RunningFitness(x, observed)
    cells = np.argwhere(observed)
    entries: AnyEntries = DenseBox(x)
    if len(cells) < x.size:
        entries = Entries.listed(
            np.ascontiguousarray(cells, np.int32), x[tuple(cells.T)], tuple(x.shape)
        )
    rng = np.random.default_rng([seed, 11])
    work = Workspace([0] * x.ndim, x.shape, scenario.rank)
    work.stack[:] = rng.random(work.stack.shape)
    own = np.prod([f.T @ f / len(f) for f in work.rows()], axis=0).sum()
    work.stack *= (np.sqrt(np.mean(x[observed] ** 2) / own)) ** (1 / x.ndim)
    strategy = contender.options["strategy"]
    terms = imputed if strategy == "imputed" else observed_rows
    recipe = Recipe(name="ablation", keeps_history=True, alpha=constant(0.0), strategy=strategy)
    elapsed, curve = 0.0, [[0, 0.0, score(work.rows())]]
    for k in range(options["iterations"]):
        began = time.perf_counter()
        sweep(work, entries, terms, [], recipe)
        elapsed += time.perf_counter() - began
        curve.append([k + 1, round(elapsed, 5), round(score(work.rows()), 6)])
    return {"fitness": curve[-1][2], "seconds": elapsed, "curve": curve}
