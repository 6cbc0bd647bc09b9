"""Run contenders on streams: the same preparation for all of a seed, time of the update only."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np

from tensortide.arrays import Floats
from tensortide.core.steps.method import Method
from tensortide.data.batch import Batch
from tensortide.errors import FileError, SolveError
from tensortide.experiments import ablation, complexity, streams
from tensortide.experiments.fitness import fitness_of_known
from tensortide.experiments.scenario import Contender, Scenario, Source
from tensortide.experiments.streams import Problem
from tensortide.methods.registry import METHODS
from tensortide.online.estimator import OnlineCP

POINTS = 60  # of a curve, at most
CLEARLY = 0.005  # what another parameter has to gain on the preparation data
HELD_OUT = 0.1  # share of the preparation cells that judge a parameter, where there are holes

Row = dict[str, Any]
Tell = Callable[[str], None]


def keys(scenario: Scenario, seeds: int, *, quick: bool) -> list[Row]:
    """Return the runs of a scenario, each by what names it."""
    if scenario.setting == "complexity":
        seeds = 1
    return [
        {"scenario": scenario.name, "data": source.name, "case": source.label, "quick": quick,
         "seed": seed, "contender": contender.label, "setup": _setup(scenario, source, contender)}
        for source in scenario.data
        for seed in range(seeds)
        for contender in scenario.contenders
        if source.options.get("observed", 1.0) == 1.0 or not contender.make().limits.complete
    ]  # fmt: skip


def _setup(scenario: Scenario, source: Source, contender: Contender) -> str:
    """Return a short name of all numbers of a run: another setup is another run."""
    facts = [scenario.rank, scenario.start, scenario.setting, dict(scenario.options),
             dict(scenario.quick), dict(source.options), contender.method,
             dict(contender.options), dict(contender.choose)]  # fmt: skip
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:12]


def run_scenario(scenario: Scenario, seeds: int, file: Path, *, quick: bool, tell: Tell) -> None:
    """Make the runs whose results are not in the file yet; each result is one line of JSON."""
    done = {_name(row) for row in read_rows(file)}
    prepared: tuple[Any, ...] = (None,)
    for key in keys(scenario, seeds, quick=quick):
        if _name(key) not in done:
            source = next(s for s in scenario.data if s.label == key["case"])
            contender = next(c for c in scenario.contenders if c.label == key["contender"])
            if scenario.setting == "ablation":
                result = ablation.run(scenario, source, contender, key["seed"], quick=quick)
            elif scenario.setting == "complexity":
                result = complexity.run(scenario, source, contender, quick=quick)
            else:
                if prepared[0] != (source.label, key["seed"]):
                    given = streams.problem(scenario, source, key["seed"], quick=quick)
                    start = prepare(given, scenario.rank, key["seed"])
                    prepared = ((source.label, key["seed"]), given, start)
                result = stream_result(scenario, contender, key["seed"], *prepared[1:])
            _append(file, key | result)
        tell(f"{key['contender']}, seed {key['seed']}, {key['case']}")


def stream_result(
    scenario: Scenario, contender: Contender, seed: int, given: Problem, start: list[Floats]
) -> Row:
    """Choose the contender's parameter on the preparation data, then run the stream."""
    chosen = {}
    for name, grid in contender.choose.items():
        chosen[name] = choose(contender, name, grid, given, scenario.rank, seed)
    method = contender.make(**chosen)
    try:
        result = run_stream(method, given, start, scenario.rank, seed)
    except SolveError as error:  # a method that diverges beyond all numbers is a result, too
        result = {"failed": str(error)}
    return result | {"chosen": chosen}


def prepare(given: Problem, rank: int, seed: int) -> list[Floats]:
    """Return the factors that all methods of a seed begin with."""
    model = OnlineCP(rank, "gocpt", prior="paper", seed=seed).fit(**given.first, progress=False)
    return model.factors_


def run_stream(method: Method, given: Problem, start: list[Floats], rank: int, seed: int) -> Row:
    """Run a stream; fitness after each step, seconds of the updates alone."""
    model = OnlineCP(rank, method, prior="paper", seed=seed)
    model.fit(**given.first, init=start, max_sweeps=0, progress=False)
    scores, seconds, to_come = [], [], []
    for step in given.steps():
        began = time.perf_counter()
        model.update(**step.batch)
        seconds.append(time.perf_counter() - began)
        rows = model._require_model().rows()
        scores.append(step.score(rows))
        if step.to_come is not None:
            to_come.append(step.to_come(rows))
    every = -(-len(scores) // (POINTS - 1))
    picked = sorted({*range(0, len(scores), every), len(scores) - 1})
    elapsed = np.cumsum(seconds)
    return {
        "fitness": float(np.mean(scores)),
        "last": scores[-1],
        "to_come": float(np.nanmedian(to_come)) if to_come else None,
        "seconds": float(elapsed[-1]),
        "steps": len(scores),
        "bytes": model.state_bytes_,
        "curve": [[k, round(float(elapsed[k]), 5), round(scores[k], 10)] for k in picked],
    }


def choose(
    contender: Contender, name: str, grid: list[float], given: Problem, rank: int, seed: int
) -> float:
    """Return the method's default, unless another value does clearly better on preparation data.

    The first three quarters of the preparation slices are fitted, the rest is streamed slice
    by slice.  Score: average fitness over these steps on all cells, or, where there are holes,
    on a tenth of the cells that was held out.  Clearly: by more than 0.005.
    """
    trial = _trial(given.first["records"], seed)
    start = prepare(trial, rank, seed)
    scores = {}
    for value in grid:
        try:
            result = run_stream(contender.make(**{name: value}), trial, start, rank, seed)
            scores[value] = result["fitness"]
        except SolveError:
            scores[value] = -np.inf
    default = float(signature(METHODS[contender.method]).parameters[name].default)
    best = max(grid, key=lambda value: scores[value])
    return best if scores[best] > scores[default] + CLEARLY else default


def _fitted_share(n_slices: int) -> int:
    return max(1, round(0.75 * n_slices))


def _trial(first: Any, seed: int) -> Problem:
    if not isinstance(first, Batch):
        return streams.slices(first, None, _fitted_share(first.shape[-1]))
    x = np.full(first.shape, np.nan)  # the preparation data alone, which are small
    x[tuple(first.coords.T)] = first.values
    known = ~np.isnan(x)
    held = known & (np.random.default_rng([seed, 9]).random(x.shape) < HELD_OUT)
    given = streams.slices(np.nan_to_num(x), known & ~held, _fitted_share(x.shape[-1]))
    hidden = np.where(held, x, np.nan)

    def steps() -> Iterator[streams.Step]:
        for step in given.steps():
            size = step.batch["records"].shape[-1]
            yield replace(step, score=partial(fitness_of_known, hidden[..., :size]))

    return replace(given, steps=steps)


def read_rows(file: Path) -> list[Row]:
    """Return the results in a file; a last line that was cut off is ignored."""
    if not file.is_file():
        return []
    rows = []
    for line in file.read_text().splitlines():
        try:
            rows.append(json.loads(line))
        except ValueError:
            continue
    return rows


def _append(file: Path, row: Row) -> None:
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        text = file.read_text() if file.is_file() else ""
        with file.open("a") as out:
            if text and not text.endswith("\n"):  # a line that was cut off before
                out.write("\n")
            out.write(json.dumps(row) + "\n")
    except OSError as error:
        raise FileError(f"{file}: cannot be written: {error.strerror}.") from None


def _name(row: Row) -> tuple[Any, ...]:
    return tuple(
        row.get(part) for part in ("scenario", "case", "contender", "seed", "quick", "setup")
    )
