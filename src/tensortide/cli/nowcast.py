"""`tensortide nowcast`: late counts completed, with intervals."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from tensortide.arrays import Positions
from tensortide.cli.nowcast_options import NowcastOptions
from tensortide.cli.table_file import write_table
from tensortide.errors import InputError
from tensortide.nowcast.hub import hub_columns, hub_rows, total_label
from tensortide.nowcast.notes import remarks
from tensortide.nowcast.nowcast import Nowcast
from tensortide.nowcast.nowcaster import Nowcaster
from tensortide.nowcast.periods import as_day
from tensortide.nowcast.replay_result import Replay
from tensortide.nowcast.replayer import OURS, as_of_days, baselines, replay
from tensortide.nowcast.triangle import Triangle
from tensortide.progress import watched_days

if TYPE_CHECKING:
    import pyarrow as pa

SHOWN = 14  # dates in the table on the screen


def run_nowcast(triangle: Triangle, wanted: NowcastOptions, title: str) -> None:
    """Nowcast, print, write."""
    wanted.check()
    if wanted.form == "hub" and triangle.every != "day":
        raise InputError("the hub's format is about sums of seven days; use --every day.")
    last = wanted.as_of or wanted.last or str(triangle.as_of_date)
    first = (None if wanted.as_of else wanted.first) or last
    later = as_day(last, "--as-of") > triangle.as_of_date
    longer = triangle.until(last) if later else triangle
    # what came after a range is its truth, but nothing has come after --as-of
    judged = longer.as_of(last) if wanted.replay and wanted.as_of else longer
    if wanted.replay:  # refused before anything is computed
        as_of_days(judged, _ends(judged, wanted), 0)
    nowcast, tables = _stepped(longer, first, last, wanted)
    for sentence in remarks(nowcast):
        _tell(sentence, wanted)
    past = None
    if wanted.replay:
        past = _replayed(judged, wanted)
        _print_replay(past, wanted)
        tables = [past.to_table()] if wanted.form == "table" else tables
    elif wanted.as_json:
        _print_json(nowcast, wanted)
    else:
        _print(nowcast, wanted)
    if wanted.out is not None:
        if wanted.form == "hub":
            _tell(hub_columns(triangle.strata), wanted)
        _write(tables, wanted)
    if wanted.page is not None:
        from tensortide.report.pages.nowcast import write_nowcast_page

        size = write_nowcast_page(nowcast, wanted.page, title, past)
        _tell(f"{wanted.page}: {size / 1e6:.1f} MB; open it in a browser.", wanted)


def _tell(sentence: str, wanted: NowcastOptions) -> None:
    """Say something to a person; machines get the numbers alone."""
    if not wanted.as_json:
        Console(stderr=True, highlight=False, markup=False).print(sentence, soft_wrap=True)


def _stepped(
    triangle: Triangle, first: str, last: str, wanted: NowcastOptions
) -> tuple[Nowcast, list[pa.Table]]:
    """Nowcast every day up to the last; return the last nowcast and the tables asked for."""
    begin, days = as_of_days(triangle, [first, last], wanted.warm_up)
    nowcaster = Nowcaster(wanted.ranks)
    totals = [total_label(known) for known in triangle.labels]  # the same name on every day
    tables = []
    with watched_days(len(days), show=None) as tell:
        for day in days:
            nowcast = nowcaster.update(triangle.as_of(day))
            if wanted.out is not None and day >= begin and len(_summed(nowcast, wanted)):
                tables.append(_rows(nowcast, wanted, totals))
            tell(str(day))
    if wanted.out is not None and not tables:
        raise InputError(f"there are no {wanted.length} dates to sum yet as of {days[-1]}.")
    return nowcast, tables


def _rows(nowcast: Nowcast, wanted: NowcastOptions, totals: Sequence[str]) -> pa.Table:
    if wanted.form == "hub":
        return hub_rows(nowcast, totals=totals)
    import pyarrow as pa

    table = nowcast.to_table(days=wanted.days or 1)
    as_of = pa.array(np.full(table.num_rows, nowcast.as_of_date))
    return table.add_column(0, "as_of", as_of)


def _ends(triangle: Triangle, wanted: NowcastOptions) -> list[str] | None:
    """Return the first and the last as-of day to be scored; None for all that can be."""
    if not (wanted.first or wanted.last):
        return None
    last = wanted.last or str(triangle.as_of_date)
    return [wanted.first or last, last]


def _replayed(triangle: Triangle, wanted: NowcastOptions) -> Replay:
    models = {OURS: lambda: Nowcaster(wanted.ranks), **baselines(triangle.every)}
    return replay(
        triangle, models, _ends(triangle, wanted), days=wanted.days, warm_up=wanted.warm_up
    )


def _summed(nowcast: Nowcast, wanted: NowcastOptions) -> Positions:
    """Return the ages of dates with a sum of as many dates as were asked for."""
    reported = nowcast.quantiles((0.5,), days=wanted.length).reported
    return np.flatnonzero(np.isfinite(reported[0]))


def _sums_exist(nowcast: Nowcast, wanted: NowcastOptions) -> Positions:
    live = _summed(nowcast, wanted)
    if not len(live):
        raise InputError(f"there are no {wanted.days} dates to sum yet; choose a smaller --sum.")
    return live


def _print(nowcast: Nowcast, wanted: NowcastOptions) -> None:
    levels = (0.025, 0.25, 0.5, 0.75, 0.975)
    live = _sums_exist(nowcast, wanted)
    found = nowcast.quantiles(levels, days=wanted.days or 1)
    what = "" if (wanted.days or 1) == 1 else f", sums of {wanted.days} dates"
    over = ", all strata together" if nowcast.units.strata else ""
    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0), title_justify="left",
                  title=f"As of {nowcast.as_of_date}{what}{over}")  # fmt: skip
    for header in ("date", "reported so far", "median", "50 % interval", "95 % interval"):
        table.add_column(header, justify="right")
    for age in live[:SHOWN][::-1]:
        low, quarter, middle, three, high = (f"{v:,.0f}" for v in found.values[0, age])
        reported = f"{found.reported[0, age]:,.0f}"
        cells = (reported, middle, f"{quarter} to {three}", f"{low} to {high}")
        table.add_row(str(found.dates[age]), *cells)
    Console(highlight=False).print(table)


def _print_json(nowcast: Nowcast, wanted: NowcastOptions) -> None:
    _sums_exist(nowcast, wanted)
    for row in nowcast.to_table(days=wanted.days or 1).to_pylist():
        print(json.dumps({"as_of": str(nowcast.as_of_date)} | row, default=str))


def _print_replay(past: Replay, wanted: NowcastOptions) -> None:
    rows = past.summary().to_pylist()
    if wanted.as_json:
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
        table.add_row(
            row["level"], row["model"], f"{row['wis']:,.2f}", f"{row['relative_wis']:.2f}",
            f"{row['coverage_50']:.0%}", f"{row['coverage_95']:.0%}", f"{row['bias']:+,.2f}",
            f"{row['mae']:,.2f}",
        )  # fmt: skip
    Console(highlight=False).print(table)
    scored = past.scored
    if scored.final < scored.asked:
        _tell(
            f"{scored.final:,} of {scored.asked:,} nowcasts of the whole could be scored: the "
            "counts of the others are not final yet.",
            wanted,
        )


def _write(tables: list[pa.Table], wanted: NowcastOptions) -> None:
    import pyarrow as pa

    assert wanted.out is not None
    write_table(pa.concat_tables(tables, promote_options="permissive"), wanted.out)
    _tell(f"{wanted.out}: {sum(t.num_rows for t in tables):,} rows.", wanted)
