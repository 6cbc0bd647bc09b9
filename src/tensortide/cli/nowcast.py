"""`tensortide nowcast`: late counts completed, with intervals."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from tensortide.errors import FileError, InputError
from tensortide.feeds.whole import read_source
from tensortide.nowcast.calendar import as_day
from tensortide.nowcast.hub import hub_rows, total_label
from tensortide.nowcast.nowcaster import Nowcast, Nowcaster
from tensortide.nowcast.replayed import Replay
from tensortide.nowcast.replaying import OURS, as_of_days, replay
from tensortide.nowcast.triangle import Triangle
from tensortide.readers.progress import watched_days
from tensortide.readers.words import counted

if TYPE_CHECKING:
    import pyarrow as pa

#: names that columns often have, for a first look at somebody's file
GUESSES = {
    "reference": ("reference_date", "reference", "date", "event_date", "onset_date", "onset"),
    "report": (
        "report_date", "reported", "report", "reporting_date", "notified", "notification_date",
        "publication_date", "published",
    ),
    "delay": ("delay",),
    "count": ("count", "n", "cases", "value", "confirm", "total"),
}  # fmt: skip
SHOWN = 14  # dates in the table on the screen
FEW = 7  # earlier nowcasts below which intervals are not learned yet


@dataclass(frozen=True)
class Columns:
    """Which column is what; None where nothing was said."""

    reference: str | None
    report: str | None
    delay: str | None
    count: str | None
    strata: tuple[str, ...]
    line_list: bool


@dataclass(frozen=True)
class Wanted:
    """What is to be made of the triangle."""

    as_of: str | None
    first: str | None
    last: str | None
    days: int | None
    ranks: str | tuple[int, ...]
    warm_up: int
    replay: bool
    form: str
    out: Path | None
    page: Path | None
    as_json: bool
    source: str


def read_triangle(source: str, columns: Columns, options: dict[str, Any]) -> Triangle:
    """Read the source; columns that were not named are guessed and said."""
    table = read_source(source)
    if not table.column_names or not table.num_rows:
        raise InputError(f"{source} has no rows.")
    screen = Console(stderr=True, highlight=False)
    found = _named(table.column_names, columns, screen)
    if columns.line_list:
        if columns.count is not None:
            raise InputError("--count does not go with --line-list: every row is one case.")
        if found.report is None:
            raise InputError("a line list has a report date in each row: name it with --report.")
        if options["cumulative"]:
            raise InputError("--cumulative does not go with --line-list: cases are counted.")
        return Triangle.from_line_list(
            table,
            reference=found.reference or "",
            report=found.report,
            strata=found.strata,
            max_delay=options["max_delay"],
            every=options["every"],
            early=options["early"],
        )
    return Triangle.from_table(
        table,
        reference=found.reference or "",
        report=found.report,
        delay=found.delay,
        count=found.count or "count",
        strata=found.strata,
        **options,
    )


def run_nowcast(triangle: Triangle, wanted: Wanted, title: str) -> None:
    """Nowcast, print, write."""
    _check(wanted)
    last = wanted.as_of or wanted.last or str(triangle.as_of_date)
    first = (None if wanted.as_of else wanted.first) or last
    later = as_day(last, "--as-of") > triangle.as_of_date
    longer = triangle.until(last) if later else triangle
    _tell_overflow(triangle, wanted)
    nowcast, tables = _stepped(longer, first, last, wanted)
    _tell_silence(nowcast, wanted)
    past = None
    if wanted.replay:
        past = _replayed(longer.as_of(last), wanted)
        _print_replay(past, as_json=wanted.as_json)
        if wanted.form == "table":
            tables = [past.to_table()]
    elif wanted.as_json:
        _print_json(nowcast, wanted)
    else:
        _print(nowcast, wanted)
    if wanted.out is not None:
        _write(tables, wanted.out)
        if not wanted.as_json:
            rows = sum(t.num_rows for t in tables)
            Console(stderr=True, highlight=False).print(f"{wanted.out}: {rows:,} rows.")
    if wanted.page is not None:
        from tensortide.report.nowcast import write_nowcast_page

        size = write_nowcast_page(nowcast, wanted.page, title, past)
        if not wanted.as_json:
            screen = Console(stderr=True, highlight=False)
            screen.print(f"{wanted.page}: {size / 1e6:.1f} MB; open it in a browser.")


def _tell_overflow(triangle: Triangle, wanted: Wanted) -> None:
    """Say what of the data is not in the numbers."""
    late = float(triangle.counts[~triangle.within()].sum())
    screen = Console(stderr=True, highlight=False)
    if triangle.n_dates <= triangle.max_delay and not wanted.as_json:
        screen.print(
            f"The data cover {counted(triangle.n_dates, triangle.every)}, less than the maximum "
            f"delay of {triangle.max_delay}: what comes later than was ever seen is not foreseen.",
            soft_wrap=True,
        )
    if late and not wanted.as_json:
        screen.print(
            f"{late:,.0f} of {triangle.counts.sum():,.0f} counts came later than "
            f"{counted(triangle.max_delay, triangle.every)} (--max-delay): they belong to no final "
            "count.",
            soft_wrap=True,
        )


def _tell_silence(nowcast: Nowcast, wanted: Wanted) -> None:
    """Say what is not known yet, and what the intervals rest on."""
    screen, every = Console(stderr=True, highlight=False), nowcast.triangle.every
    if wanted.as_json:
        return
    if nowcast.silent:
        screen.print(
            f"For {counted(nowcast.silent, every)} hardly anything has been reported: taken as not "
            "published yet.",
            soft_wrap=True,
        )
    past = int(np.isfinite(nowcast.spread.nowcasts).any(axis=(1, 2)).sum())
    if past < FEW:
        screen.print(
            f"The intervals are a guess: there {'is' if past == 1 else 'are'} "
            f"{counted(past, 'earlier nowcast')} to learn from.",
            soft_wrap=True,
        )


def _stepped(
    triangle: Triangle, first: str, last: str, wanted: Wanted
) -> tuple[Nowcast, list[pa.Table]]:
    """Nowcast every day up to the last; return the last nowcast and the tables asked for."""
    begin, days = as_of_days(triangle, [first, last], wanted.warm_up)
    nowcaster = Nowcaster(wanted.ranks)
    totals = [total_label(known) for known in triangle.labels]  # the same name on every day
    tables = []
    with watched_days(len(days), show=None) as tell:
        for day in days:
            nowcast = nowcaster.update(triangle.as_of(day))
            if wanted.out is not None and day >= begin:
                tables.append(_rows(nowcast, wanted, totals))
            tell(str(day))
    return nowcast, tables


def _rows(nowcast: Nowcast, wanted: Wanted, totals: Sequence[str]) -> pa.Table:
    if wanted.form == "hub":
        return hub_rows(nowcast, totals=totals)
    import pyarrow as pa

    table = nowcast.to_table(days=wanted.days or 1)
    as_of = pa.array(np.full(table.num_rows, nowcast.as_of_date))
    return table.add_column(0, "as_of", as_of)


def _replayed(triangle: Triangle, wanted: Wanted) -> Replay:
    models: dict[str, Any] = {OURS: lambda: Nowcaster(wanted.ranks)}
    from tensortide.nowcast.ladder import BASELINES

    for name, ladder in BASELINES.items():
        models[name] = lambda ladder=ladder: Nowcaster((), [ladder])
    ends = None
    if wanted.first or wanted.last:
        last = wanted.last or str(triangle.as_of_date)
        ends = [wanted.first or last, last]
    return replay(triangle, models, ends, days=wanted.days, warm_up=wanted.warm_up)


def _named(names: Sequence[str], columns: Columns, screen: Console) -> Columns:
    """Fill in the columns that were not named by the names that such columns often have."""

    def guess(role: str, given: str | None) -> str | None:
        if given is not None:
            return given
        taken = {columns.reference, columns.report, columns.delay, columns.count, *columns.strata}
        for name in GUESSES[role]:
            if name in names and name not in taken:
                screen.print(f"guessed --{role} {name}")
                return name
        return None

    reference = guess("reference", columns.reference)
    report, delay = columns.report, columns.delay
    if report is None and delay is None:
        report = guess("report", None)
        delay = guess("delay", None) if report is None and not columns.line_list else None
    count = None if columns.line_list else guess("count", columns.count)
    lacking = []
    if reference is None:
        lacking.append("the reference date (--reference)")
    if report is None and delay is None:
        lacking.append("the report date (--report)" if columns.line_list else
                       "the report date (--report) or delay (--delay)")  # fmt: skip
    if lacking:
        raise InputError(
            f"say which column holds {' and which '.join(lacking)}; the columns are "
            f"{', '.join(map(repr, names))}."
        )
    if count is None and not columns.line_list:
        raise InputError(
            "say which column holds the counts (--count), or use --line-list if every row is a "
            f"case; the columns are {', '.join(map(repr, names))}."
        )
    return Columns(reference, report, delay, count, columns.strata, columns.line_list)


def _print(nowcast: Nowcast, wanted: Wanted) -> None:
    levels = (0.025, 0.25, 0.5, 0.75, 0.975)
    published, _, found = nowcast.quantiles(levels, days=wanted.days or 1)
    dates = nowcast.triangle.days()[::-1]
    what = "" if (wanted.days or 1) == 1 else f", sums of {wanted.days} dates"
    over = ", all strata together" if nowcast.units.strata else ""
    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0), title_justify="left",
                  title=f"As of {nowcast.as_of_date}{what}{over}")  # fmt: skip
    for header in ("date", "reported so far", "median", "50 % interval", "95 % interval"):
        table.add_column(header, justify="right")
    live = np.flatnonzero(np.isfinite(published[0]))
    if not len(live):
        raise InputError(f"there are no {wanted.days} dates to sum yet; choose a smaller --sum.")
    for age in live[:SHOWN][::-1]:
        low, quarter, middle, three, high = (f"{v:,.0f}" for v in found[0, age])
        reported = f"{published[0, age]:,.0f}"
        cells = (reported, middle, f"{quarter} to {three}", f"{low} to {high}")
        table.add_row(str(dates[age]), *cells)
    Console(highlight=False).print(table)


def _print_json(nowcast: Nowcast, wanted: Wanted) -> None:
    for row in nowcast.to_table(days=wanted.days or 1).to_pylist():
        print(json.dumps({"as_of": str(nowcast.as_of_date)} | row, default=str))


def _print_replay(past: Replay, *, as_json: bool) -> None:
    rows = past.summary().to_pylist()
    if as_json:
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


def _check(wanted: Wanted) -> None:
    if wanted.form not in ("table", "hub"):
        raise InputError(f"--format must be table or hub, not {wanted.form!r}.")
    if wanted.as_of and (wanted.first or wanted.last) and not wanted.replay:
        raise InputError("give either --as-of, or --from and --to (both with --replay only).")
    ends = [as_day(d, n) for d, n in ((wanted.first, "--from"), (wanted.last, "--to")) if d]
    if ends != sorted(ends):
        raise InputError(f"--from {wanted.first} is after --to {wanted.last}.")
    if wanted.form == "hub" and wanted.out is None:
        raise InputError("--format is about the file: name one with -o.")
    if wanted.out is not None and wanted.out.suffix.lower() not in (".csv", ".parquet"):
        raise InputError(f"{wanted.out}: the file must end with .csv or .parquet.")
    for path in (wanted.out, wanted.page):
        if path is not None and not path.parent.is_dir():
            raise FileError(f"{path}: there is no folder {path.parent}.")
        if path is not None and path.exists() and path.resolve() == Path(wanted.source).resolve():
            raise InputError(f"{path} is the source: choose another file for the result.")


def _write(tables: list[pa.Table], out: Path) -> None:
    import pyarrow as pa
    from pyarrow import csv, parquet

    table = pa.concat_tables(tables, promote_options="permissive")
    begun = out.with_name(f".{out.name}.begun")
    try:
        if out.suffix.lower() == ".csv":
            csv.write_csv(table, begun)
        else:
            parquet.write_table(table, begun)
        begun.replace(out)
    except OSError as error:
        raise FileError(f"{out}: cannot be written: {error.strerror or error}.") from None
