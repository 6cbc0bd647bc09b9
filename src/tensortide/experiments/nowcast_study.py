"""`tensortide reproduce nowcast`: the evaluation of docs/nowcasting.md, and the choices before it.

Everything about the model was fixed on forecast dates before 2021-11-22; those until 2022-04-29
are left to others; the evaluation runs on the dates after them.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from tensortide import datasets
from tensortide.experiments.tables import markdown
from tensortide.nowcast import figures as shapes
from tensortide.nowcast.count_model.state import Settings
from tensortide.nowcast.ladders import BASELINES
from tensortide.nowcast.nowcaster import Nowcaster
from tensortide.nowcast.replay_result import Replay, ScoreDifference
from tensortide.nowcast.replayer import OURS, replay
from tensortide.nowcast.triangle import Triangle
from tensortide.palette import plotting, save_picture

LEVELS = {"all": "nation", "location": "states", "age_group": "ages",
          "location x age_group": "states by age"}  # fmt: skip
BASE = "chain-ladder"
WEEKDAY = "chain-ladder weekday"
LAST_CHOICE = np.datetime64("2021-11-21")


@dataclass(frozen=True, kw_only=True)
class Study:
    """A replay of the German triangle: dates, models, truths."""

    name: str
    title: str
    first: str
    last: str
    models: dict[str, Callable[[], Nowcaster]]
    settled: bool


def _ladder(name: str) -> Callable[[], Nowcaster]:
    return lambda: Nowcaster((), [BASELINES[name]])


def _variant(**options: Any) -> Callable[[], Nowcaster]:
    return lambda: Nowcaster(3, (), settings=replace(Settings(), **options))


STUDIES = {
    study.name: study
    for study in (
        Study(
            name="nowcast",
            title="German hospitalisations as of 2022-05-01 to 2023-02-23: 7-day sums, 0 to 28 "
            "days back",
            first="2022-05-01",
            last="2023-02-23",
            models={OURS: Nowcaster, "economy": lambda: Nowcaster(economy=True)}
            | {name: _ladder(name) for name in BASELINES},
            settled=True,
        ),
        Study(
            name="nowcast-choices",
            title="The same before the choices were frozen: as of 2021-08-16 to 2021-11-21",
            first="2021-08-16",
            last="2021-11-21",
            models={
                OURS: Nowcaster,
                "rank 3 alone": lambda: Nowcaster(3, ()),
                "rank 1": lambda: Nowcaster(1, ()),
                "rank 2": lambda: Nowcaster(2, ()),
                "rank 4": lambda: Nowcaster(4, ()),
                "rank 6": lambda: Nowcaster(6, ()),
                "rank 3, no smooth dates": _variant(smooth_dates=False, new=0.0, old=0.0),
                "rank 3, no weekday factors": _variant(weekdays=False),
                "rank 3, no pull to yesterday": _variant(pull=0.0, pull_delays=0.0),
                "rank 3, no stratum multipliers": _variant(stratum_counts=0.0),
                "economy": lambda: Nowcaster(economy=True),
                BASE: _ladder(BASE),
                WEEKDAY: _ladder(WEEKDAY),
            },
            settled=False,
        ),
    )
}


def run_study(study: Study, out: Path, *, quick: bool) -> tuple[str, list[Path]]:
    """Run a study; return its tables and the files of its pictures."""
    triangle = german_triangle()
    first, last = np.datetime64(study.first), np.datetime64(study.last)
    if not study.settled:  # dates that were not to be seen cannot be seen
        last_report = LAST_CHOICE + triangle.max_delay
        triangle = triangle.as_of(last_report)
    models, warm = study.models, 120
    if quick:
        first, warm = last - 2, 7
        models = {name: models[name] for name in (OURS, BASE, WEEKDAY)}
    began = time.perf_counter()
    plain = replay(triangle, models, [first, last], warm_up=warm)
    taken = f"{len(models)} models, {len(plain.dates)} as-of dates and {warm} before them"
    print(f"replay of {taken}: {time.perf_counter() - began:.0f} s", file=sys.stderr)
    if not study.settled:
        drawn = {name: plain.quantiles[name] for name in (OURS, BASE, WEEKDAY)}
        files = _pictures(replace(plain, quantiles=drawn), out / study.name)
        return _choices_table(plain), files
    chosen = {n: m for n, m in models.items() if n != "economy"}
    settled = replay(triangle, chosen, [first, last], warm_up=warm, settled=settled_counts())
    parts = [
        _table(plain, "count at 40 days"),
        _table(settled, "settled count (version of 2024-02-06)"),
        _log_table(plain),
    ]
    return "\n\n".join(parts), _pictures(plain, out / study.name)


def german_triangle() -> Triangle:
    """Return the triangle of the German Nowcast Hub's hospitalisations."""
    records = datasets.de_covid_hosp()
    return Triangle.from_table(
        records.table, reference="date", delay="delay", count="count",
        strata=["location", "age_group"], max_delay=40,
    )  # fmt: skip


def settled_counts() -> Triangle:
    """Return the settled counts as a triangle without delays."""
    import pyarrow as pa

    table = datasets.de_covid_hosp_final().table
    none = pa.array(np.zeros(table.num_rows, np.int64))
    made = Triangle.from_table(
        table.append_column("delay", none), reference="date", delay="delay", count="count_final",
        strata=["location", "age_group"], max_delay=1,
    )  # fmt: skip
    return replace(made, last=made.last + 1)


def _table(result: Replay, truth: str) -> str:
    head = ["level", "model", "WIS", "relative", "WIS less than weekday chain-ladder",
            "MAE less than chain-ladder", "50 %", "95 %", "bias", "MAE"]  # fmt: skip
    lines = []
    for row in result.summary(base=BASE).to_pylist():
        level, model = row["level"], row["model"]
        less = ["", ""]
        if model not in (BASE, WEEKDAY) and WEEKDAY in result.quantiles:
            less = [_share(result.difference(model, WEEKDAY, level=level)),
                    _share(result.difference(model, BASE, level=level, measure="mae"))]  # fmt: skip
        lines.append(
            [LEVELS[level], model, f"{row['wis']:.2f}", f"{row['relative_wis']:.3f}", *less,
             f"{row['coverage_50']:.0%}", f"{row['coverage_95']:.0%}", f"{row['bias']:+.2f}",
             f"{row['mae']:.2f}"]
        )  # fmt: skip
    return f"**Truth: {truth}**\n\n" + markdown(head, lines)


def _choices_table(result: Replay) -> str:
    """One line a model, one column a level: relative WIS and the 95 % intervals' coverage."""
    found = {(r["model"], r["level"]): r for r in result.summary(base=BASE).to_pylist()}
    lines = [
        [model]
        + [
            f"{row['relative_wis']:.3f} ({row['coverage_95']:.0%})"
            for row in (found[model, level] for level in result.level_names)
        ]
        for model in result.quantiles
    ]
    head = ["model", *(LEVELS[level] for level in result.level_names)]
    return (
        f"**WIS relative to {BASE} (cover of the 95 % intervals), count at 40 days**\n\n"
        + markdown(head, lines)
    )


def _log_table(result: Replay) -> str:
    head = ["level", "model", "WIS of log(1 + x)", "relative"]
    lines = [
        [LEVELS[r["level"]], r["model"], f"{r['wis']:.4f}", f"{r['relative_wis']:.3f}"]
        for r in result.summary(base=BASE, log=True).to_pylist()
    ]
    return "**Logarithmic scale, count at 40 days**\n\n" + markdown(head, lines)


def _share(found: ScoreDifference) -> str:
    middle, low, high = (-100.0 * f for f in (found.relative, found.low, found.high))
    return f"{middle:.1f} % ({high:.1f} to {low:.1f})"


def _pictures(result: Replay, stem: Path) -> list[Path]:
    """Draw WIS and coverage by horizon, four levels each."""
    pyplot = plotting()
    files = []
    for name, draw in (("wis", shapes.wis_figure), ("coverage", shapes.coverage_figure)):
        figure, axes = pyplot.subplots(2, 2, figsize=(10, 7), sharex=True)
        for axis, level in zip(axes.flat, result.level_names, strict=False):
            spec = draw(result, level)
            for line in spec["data"]:
                style = {"solid": "-", "dash": "--", "dot": ":", "dashdot": "-."}
                axis.plot(
                    line["x"], line["y"], color=line["line"]["color"],
                    linestyle=style[line["line"]["dash"]], linewidth=line["line"]["width"] * 0.8,
                    label=line["name"] if line.get("showlegend", True) else None,
                )  # fmt: skip
            axis.set_title(LEVELS.get(level, level), loc="left", fontsize=11)
            axis.set_ylim(bottom=0.0, top=1.05 if name == "coverage" else None)
            axis.grid(color="#dfe4ea", linewidth=0.6)
            for side in ("top", "right"):
                axis.spines[side].set_visible(False)
        for axis in axes[1]:
            axis.set_xlabel("days back from the as-of date")
        for axis in axes[:, 0]:
            axis.set_ylabel("mean WIS" if name == "wis" else "share of intervals with the truth")
        handles, labels = axes.flat[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="lower center", ncol=4, frameon=False)
        figure.tight_layout(rect=(0, 0.07, 1, 1))
        file = stem.with_name(f"{stem.name}-{name}.svg")
        save_picture(figure, file)
        files.append(file)
    return files
