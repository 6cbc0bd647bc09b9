"""`tensortide nowcast`: late counts completed, with intervals.

What computes is imported when it is needed: every command loads this module for its options.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tensortide.errors import InputError

if TYPE_CHECKING:
    import pyarrow as pa

    from tensortide.cli.nowcast_options import NowcastOptions
    from tensortide.nowcast.nowcast import Nowcast
    from tensortide.nowcast.replay_result import Replay
    from tensortide.nowcast.triangle import Triangle


def nowcast(
    source: Annotated[
        str, typer.Argument(help="A CSV, JSON lines, Parquet or Arrow file, a folder, or -.")
    ],
    reference: Annotated[str | None, typer.Option(help="Column of the reference date.")] = None,
    report: Annotated[list[str] | None, typer.Option(help="Column of the report date.")] = None,
    delay: Annotated[
        str | None, typer.Option(help="Column of the delay, in place of the report date.")
    ] = None,
    count: Annotated[str | None, typer.Option(help="Column of the counts.")] = None,
    strata: Annotated[
        list[str] | None, typer.Option(help="Columns of strata, with commas: location,age.")
    ] = None,
    max_delay: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Delay after which a count is final; later is overflow. Without it 40 days, 8 "
            "weeks, 12 months, 8 quarters or 10 years.",
        ),
    ] = None,
    every: Annotated[
        str, typer.Option(help="Length of a period: day, week, month, quarter, year.")
    ] = "day",
    cumulative: Annotated[
        bool, typer.Option("--cumulative", help="Counts are totals, not what came new.")
    ] = False,
    line_list: Annotated[
        bool, typer.Option("--line-list", help="Every row is a case; there is no count.")
    ] = False,
    as_of: Annotated[
        str | None, typer.Option(help="Nowcast as of this day; else the last report.")
    ] = None,
    first: Annotated[
        str | None, typer.Option("--from", help="First as-of day of a range, for -o or --replay.")
    ] = None,
    last: Annotated[str | None, typer.Option("--to", help="Last as-of day of the range.")] = None,
    days: Annotated[
        int | None,
        typer.Option(
            "--sum", min=1, help="Sums of so many dates; without it 1, and 7 days for --replay."
        ),
    ] = None,
    ranks: Annotated[
        str,
        typer.Option(
            help="Ranks of the count models that are averaged, with commas; or validate, to "
            "choose one by the last weeks."
        ),
    ] = "3,4,6",
    warm_up: Annotated[
        int,
        typer.Option(min=0, help="As-of days before the first, from which intervals are learned."),
    ] = 120,
    duplicates: Annotated[
        str, typer.Option(help="Several rows of one cell: error, sum or last.")
    ] = "error",
    early: Annotated[
        str, typer.Option(help="Reports before their reference date: error or drop.")
    ] = "error",
    replay: Annotated[
        bool, typer.Option("--replay", help="Score the past as-of days, beside chain-ladders.")
    ] = False,
    out: Annotated[
        Path | None, typer.Option("-o", "--out", help="File for the quantiles: csv or parquet.")
    ] = None,
    form: Annotated[
        str, typer.Option("--format", help="Of the file: table, or hub (7-day sums).")
    ] = "table",
    page: Annotated[Path | None, typer.Option(help="File for a page with pictures: html.")] = None,
    title: Annotated[str | None, typer.Option(help="Title of the page.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, for machines.")] = False,
) -> None:
    """Complete late counts: what will have been reported in the end, with intervals.

    Example: tensortide nowcast reports.csv --reference date --report reported --count n
    """
    from tensortide.cli.nowcast_columns import Columns, read_triangle
    from tensortide.cli.nowcast_options import NowcastOptions

    reported = _report_column(report or [])
    if reported is not None and delay is not None:
        raise InputError("give the report date (--report) or the delay (--delay), not both.")
    names = [name.strip() for part in strata or [] for name in part.split(",")]
    listed = tuple(name for name in names if name)
    columns = Columns(
        reference=reference, report=reported, delay=delay, count=count, strata=listed,
        line_list=line_list,
    )  # fmt: skip
    try:
        numbers = ranks if ranks == "validate" else tuple(int(r) for r in ranks.split(","))
    except ValueError:
        raise InputError(
            f"--ranks takes numbers with commas, such as 3,4,6, or validate, not {ranks!r}."
        ) from None
    options = NowcastOptions(
        as_of=as_of, first=first, last=last, days=days, ranks=numbers, warm_up=warm_up,
        replay=replay, form=form, out=out, page=page, as_json=as_json, source=source,
    )  # fmt: skip
    rules = {"max_delay": max_delay, "cumulative": cumulative, "every": every,
             "duplicates": duplicates, "early": early}  # fmt: skip
    if line_list and duplicates != "error":
        raise InputError("--duplicates does not go with --line-list: every row is one case.")
    if title is not None and page is None:
        raise InputError("--title is about the page: name one with --page page.html.")
    named = "standard input" if source == "-" else Path(source).name
    triangle = read_triangle(source, columns, rules)
    _run(triangle, options, title or f"Nowcast of {named}")


def _report_column(given: list[str]) -> str | None:
    """Return the column of report dates; a page has an option of its own."""
    for name in given:
        if name.lower().endswith((".html", ".htm")):
            raise InputError(
                f"--report is the column of report dates; write the page with --page {name}."
            )
    if len(given) > 1:
        raise InputError(f"--report takes one column, not {len(given)}: {', '.join(given)}.")
    return given[0] if given else None


def _run(triangle: Triangle, options: NowcastOptions, title: str) -> None:
    """Nowcast, print, write."""
    import pyarrow as pa

    from tensortide.cli.nowcast_screen import print_json, print_replay, print_table, tell
    from tensortide.cli.table_file import write_table
    from tensortide.nowcast.hub import hub_columns
    from tensortide.nowcast.notes import remarks
    from tensortide.nowcast.periods import as_day
    from tensortide.nowcast.replayer import as_of_days

    options.check()
    if options.form == "hub" and triangle.every != "day":
        raise InputError("the hub's format is about sums of seven days; use --every day.")
    last = options.as_of or options.last or str(triangle.as_of_date)
    first = (None if options.as_of else options.first) or last
    later = as_day(last, "--as-of") > triangle.as_of_date
    longer = triangle.until(last) if later else triangle
    # what came after a range is its truth, but nothing has come after --as-of
    judged = longer.as_of(last) if options.replay and options.as_of else longer
    if options.replay:  # refused before anything is computed
        as_of_days(judged, _ends(judged, options), 0)
    nowcast, tables = _step(longer, first, last, options)
    for sentence in remarks(nowcast):
        tell(sentence, options)
    past = None
    if options.replay:
        past = _replay(judged, options)
        print_replay(past, options)
        tables = [past.to_table()] if options.form == "table" else tables
    elif options.as_json:
        print_json(nowcast, options)
    else:
        print_table(nowcast, options)
    if options.out is not None:
        if options.form == "hub":
            tell(hub_columns(triangle.strata), options)
        write_table(pa.concat_tables(tables, promote_options="permissive"), options.out)
        tell(f"{options.out}: {sum(t.num_rows for t in tables):,} rows.", options)
    if options.page is not None:
        from tensortide.report.pages.nowcast import write_nowcast_page

        size = write_nowcast_page(nowcast, options.page, title, past)
        tell(f"{options.page}: {size / 1e6:.1f} MB; open it in a browser.", options)


def _step(
    triangle: Triangle, first: str, last: str, options: NowcastOptions
) -> tuple[Nowcast, list[pa.Table]]:
    """Nowcast every day up to the last; return the last nowcast and the tables asked for."""
    from tensortide.cli.nowcast_screen import ages_with_sums
    from tensortide.nowcast.hub import total_label
    from tensortide.nowcast.nowcaster import Nowcaster
    from tensortide.nowcast.replayer import nowcast_days

    totals = [total_label(known) for known in triangle.labels]  # the same name on every day
    nowcaster, tables = Nowcaster(options.ranks), []
    for nowcast, asked in nowcast_days(triangle, nowcaster, [first, last], options.warm_up):
        if options.out is not None and asked and len(ages_with_sums(nowcast, options)):
            tables.append(_rows(nowcast, options, totals))
    newest = nowcaster.nowcast()
    if options.out is not None and not tables:
        raise InputError(
            f"there are no {options.length} dates to sum yet as of {newest.as_of_date}."
        )
    return newest, tables


def _rows(nowcast: Nowcast, options: NowcastOptions, totals: Sequence[str]) -> pa.Table:
    """Return the rows of a day as the file has them."""
    import numpy as np
    import pyarrow as pa

    from tensortide.nowcast.hub import hub_rows

    if options.form == "hub":
        return hub_rows(nowcast, totals=totals)
    table = nowcast.to_table(days=options.days or 1)
    as_of = pa.array(np.full(table.num_rows, nowcast.as_of_date))
    return table.add_column(0, "as_of", as_of)


def _ends(triangle: Triangle, options: NowcastOptions) -> list[str] | None:
    """Return the first and the last as-of day to be scored; None for all that can be."""
    if not (options.first or options.last):
        return None
    last = options.last or str(triangle.as_of_date)
    return [options.first or last, last]


def _replay(triangle: Triangle, options: NowcastOptions) -> Replay:
    """Score the past, beside the baselines."""
    from tensortide.nowcast.nowcaster import Nowcaster
    from tensortide.nowcast.replayer import OURS, baselines, replay

    models = {OURS: lambda: Nowcaster(options.ranks), **baselines(triangle.every)}
    return replay(
        triangle, models, _ends(triangle, options), days=options.days, warm_up=options.warm_up
    )
