"""What `tensortide nowcast` says: tables for people, lines of JSON for machines."""

from __future__ import annotations

import json

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from tensortide.arrays import Positions
from tensortide.cli.nowcast_options import NowcastOptions
from tensortide.errors import InputError
from tensortide.nowcast.nowcast import Nowcast
from tensortide.nowcast.replay_result import Replay, score_texts

SHOWN = 14  # dates in the table on the screen


def tell(sentence: str, options: NowcastOptions) -> None:
    """Say something to a person; machines get the numbers alone."""
    if not options.as_json:
        Console(stderr=True, highlight=False, markup=False).print(sentence, soft_wrap=True)


def print_table(nowcast: Nowcast, options: NowcastOptions) -> None:
    """Print the newest dates of the whole, with intervals."""
    levels = (0.025, 0.25, 0.5, 0.75, 0.975)
    live = _check_sums(nowcast, options)
    found = nowcast.quantiles(levels, days=options.days or 1)
    what = "" if (options.days or 1) == 1 else f", sums of {options.days} dates"
    over = ", all strata together" if nowcast.units.strata else ""
    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0), title_justify="left",
                  title=f"As of {nowcast.as_of_date}{what}{over}")  # fmt: skip
    for header in ("date", "reported so far", "median", "50 % interval", "95 % interval"):
        table.add_column(header, justify="right")
    for age in live[:SHOWN][::-1]:
        reported, low, quarter, middle, three, high = found.texts(0, age)
        cells = (reported, middle, f"{quarter} to {three}", f"{low} to {high}")
        table.add_row(str(found.dates[age]), *cells)
    Console(highlight=False).print(table)


def print_json(nowcast: Nowcast, options: NowcastOptions) -> None:
    """Print a line of JSON for every unit and date."""
    _check_sums(nowcast, options)
    for row in nowcast.to_table(days=options.days or 1).to_pylist():
        print(json.dumps({"as_of": str(nowcast.as_of_date)} | row, default=str))


def print_replay(past: Replay, options: NowcastOptions) -> None:
    """Print the scores of each model by level."""
    rows = past.summary().to_pylist()
    if options.as_json:
        for row in rows:
            print(json.dumps(row))
        return
    sums = "" if past.days == 1 else f", sums of {past.days} dates"
    title = f"As of {past.dates[0]} to {past.dates[-1]}{sums}"
    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0), title_justify="left", title=title)
    for header in ("level", "model"):
        table.add_column(header)
    for header in ("WIS", "relative", "50 %", "95 %", "bias", "MAE"):
        table.add_column(header, justify="right")
    before = None
    for row in rows:
        if before is not None and row["level"] != before:
            table.add_section()
        before = row["level"]
        table.add_row(*score_texts(row))
    Console(highlight=False).print(table)
    scored = past.scored
    if scored.final < scored.asked:
        tell(
            f"{scored.final:,} of {scored.asked:,} nowcasts of the whole could be scored: the "
            "counts of the others are not final yet.",
            options,
        )


def ages_with_sums(nowcast: Nowcast, options: NowcastOptions) -> Positions:
    """Return the ages of dates with a sum of as many dates as were asked for."""
    reported = nowcast.quantiles((0.5,), days=options.length).reported
    return np.flatnonzero(np.isfinite(reported[0]))


def _check_sums(nowcast: Nowcast, options: NowcastOptions) -> Positions:
    live = ages_with_sums(nowcast, options)
    if not len(live):
        raise InputError(f"there are no {options.days} dates to sum yet; choose a smaller --sum.")
    return live
