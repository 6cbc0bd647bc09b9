"""Results as Markdown: the paper's numbers beside ours."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tensortide.experiments.scenario import Scenario, Source

Row = dict[str, Any]


def table(scenario: Scenario, rows: Sequence[Row]) -> str:
    """Return the tables of a scenario as Markdown, one for each data set."""
    if scenario.setting == "complexity":
        parts = [_complexity(scenario, source, rows) for source in scenario.data]
    else:
        parts = [_fitness(scenario, source, rows) for source in scenario.data]
    return "\n\n".join(part for part in parts if part)


def _fitness(scenario: Scenario, source: Source, rows: Sequence[Row]) -> str:
    lines = []
    for contender in scenario.contenders:
        mine = _of(rows, source, contender.label)
        if not mine:
            continue
        fitness, seconds = ([r[key] for r in mine] for key in ("fitness", "seconds"))
        paper = source.paper.get(contender.label, ["", ""])
        chosen = [value for r in mine for value in r.get("chosen", {}).values()]
        name = next((key for r in mine for key in r.get("chosen", {})), "")
        shown = f"{name} {' / '.join(f'{v:g}' for v in sorted(set(chosen)))}" if chosen else ""
        lines.append(
            [contender.label, f"{np.mean(fitness):.4f} ± {np.std(fitness):.4f}",
             f"{paper[0]:.4f}" if paper[0] else "", f"{np.mean(seconds):.2f}",
             f"{paper[1]:.2f}" if paper[1] else "", shown]
        )  # fmt: skip
    if not lines:
        return ""
    n_seeds = len({r["seed"] for r in rows})
    word = "seed" if n_seeds == 1 else "seeds"
    kind = {"completion": "hidden cells", "ablation": "hidden cells"}.get(
        scenario.setting, "all cells"
    )
    head = ["method", f"fitness ({kind})", "paper", "seconds", "paper's seconds", "chosen"]
    keep = [k for k in range(len(head)) if k < 2 or k == 3 or any(line[k] for line in lines)]
    return f"**{source.label}** ({n_seeds} {word})\n\n" + _markdown(
        [head[k] for k in keep], [[line[k] for k in keep] for line in lines]
    )


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
    return f"**{source.label}**\n\n" + _markdown(head, lines)


def _of(rows: Sequence[Row], source: Source, label: str) -> list[Row]:
    return [r for r in rows if r["case"] == source.label and r["contender"] == label]


def _markdown(head: list[str], lines: list[list[str]]) -> str:
    table = [head, ["---"] * len(head), *lines]
    return "\n".join("| " + " | ".join(line) + " |" for line in table)
