"""Results as Markdown: the paper's numbers beside ours."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from tensortide.experiments.scenario import Scenario, Source
from tensortide.wording import counted

Row = dict[str, Any]
CELLS = {"completion": "hidden cells", "ablation": "hidden cells", "general": "loaded cells"}
WILD = 0.05  # spread over the seeds from which the mean says little and the median is shown too


def table(scenario: Scenario, rows: Sequence[Row]) -> str:
    """Return the tables of a scenario as Markdown, one for each data set."""
    if scenario.setting == "complexity":
        parts = [_complexity(scenario, source, rows) for source in scenario.data]
    else:
        parts = [_fitness(scenario, source, rows) for source in scenario.data]
    return "\n\n".join(part for part in parts if part)


def _fitness(scenario: Scenario, source: Source, rows: Sequence[Row]) -> str:
    found = []
    for contender in scenario.contenders:
        mine = _of(rows, source, contender.label)
        done = [r for r in mine if "failed" not in r]
        failed = f" (failed in {len(mine) - len(done)} of {len(mine)})" if done != mine else ""
        if done:
            found.append((contender.label + failed, done))
    if not found:
        return ""
    quick = any(r["quick"] for r in rows)
    label = scenario.label_of(source, quick=quick)
    if quick:  # less data: the paper's numbers have no place beside it
        source = replace(source, paper={})
    cells = CELLS.get(scenario.setting, "all cells")
    exact = nearly_exact(r["fitness"] for _, mine in found for r in mine)
    columns: dict[str, list[str]] = {"method": [label for label, _ in found]}
    scores = [[r["fitness"] for r in mine] for _, mine in found]
    if exact:
        columns[f"1 - fitness ({cells})"] = [_spread([1.0 - f for f in s], ".1e") for s in scores]
    else:
        columns[f"fitness ({cells})"] = [_spread(s, ".4f") for s in scores]
    if max(map(np.std, scores)) > WILD:
        columns["median seed"] = [f"{np.median(s):.4f}" for s in scores]
    if scenario.setting == "general":
        columns["fitness (cells to come)"] = [
            _spread([r["to_come"] for r in mine], ".4f") for _, mine in found
        ]
    columns["paper"] = [_paper(source, label, 0, ".4f") for label, _ in found]
    columns["seconds"] = [f"{np.mean([r['seconds'] for r in mine]):.2f}" for _, mine in found]
    columns["paper's seconds"] = [_paper(source, label, 1, ".2f") for label, _ in found]
    columns["chosen"] = [_chosen(mine) for _, mine in found]
    columns = {head: column for head, column in columns.items() if any(column)}
    lines = [list(line) for line in zip(*columns.values(), strict=True)]
    n_seeds = len({r["seed"] for r in rows})
    return f"**{label}** ({counted(n_seeds, 'seed')})\n\n" + markdown(list(columns), lines)


def nearly_exact(fitness: Iterable[float]) -> bool:
    """Whether all are so close to one that only the distance to one says anything."""
    return all(f > 0.999 for f in fitness)


def _spread(values: Sequence[float], form: str) -> str:
    """Return mean and (population) standard deviation over the seeds."""
    mean = f"{np.mean(values):{form}}"
    return mean if len(values) == 1 else f"{mean} ± {np.std(values):{form}}"


def _paper(source: Source, label: str, which: int, form: str) -> str:
    numbers = source.paper.get(label.partition(" (failed")[0])
    return f"{numbers[which]:{form}}" if numbers else ""


def _chosen(rows: Sequence[Row]) -> str:
    values = sorted({(name, v) for r in rows for name, v in r.get("chosen", {}).items()})
    return f"{values[0][0]} {' / '.join(f'{v:g}' for _, v in values)}" if values else ""


def _complexity(scenario: Scenario, source: Source, rows: Sequence[Row]) -> str:
    lines = []
    for contender in scenario.contenders:
        lines += [
            [contender.label, f"{1e3 * r['side_seconds'][-1]:.2f}"]
            + [f"{r[f'{what}_{kind}_exponent']:.2f}"
               for what in ("side", "slices") for kind in ("time", "memory")]
            for r in _of(rows, source, contender.label)
        ]  # fmt: skip
    if not lines:
        return ""
    head = ["method", "ms a step, largest slice", "time ~ P^", "memory ~ P^", "time ~ I^",
            "memory ~ I^"]  # fmt: skip
    label = scenario.label_of(source, quick=any(r["quick"] for r in rows))
    return f"**{label}**\n\n" + markdown(head, lines)


def _of(rows: Sequence[Row], source: Source, label: str) -> list[Row]:
    return [r for r in rows if r["case"] == source.label and r["contender"] == label]


def markdown(head: list[str], lines: list[list[str]]) -> str:
    """Return a table in Markdown."""
    table = [head, ["---"] * len(head), *lines]
    return "\n".join("| " + " | ".join(line) + " |" for line in table)
