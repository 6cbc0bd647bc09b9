"""The words of `tensortide nowcast`; what they do is in `tensortide.cli.nowcast`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tensortide.errors import InputError


def nowcast(
    source: Annotated[
        str, typer.Argument(help="A CSV, JSON lines, Parquet or Arrow file, a folder, or -.")
    ],
    reference: Annotated[str | None, typer.Option(help="Column of the reference date.")] = None,
    report: Annotated[
        list[str] | None, typer.Option(help="Column of the report date.")
    ] = None,
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
    page: Annotated[
        Path | None, typer.Option(help="File for a page with pictures: html.")
    ] = None,
    title: Annotated[str | None, typer.Option(help="Title of the page.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, for machines.")] = False,
) -> None:
    """Complete late counts: what will have been reported in the end, with intervals.

    Example: tensortide nowcast reports.csv --reference date --report reported --count n
    """
    from tensortide.cli.nowcast import run_nowcast
    from tensortide.cli.nowcast_columns import Columns, read_triangle
    from tensortide.cli.nowcast_options import NowcastOptions

    reported = _report_column(report or [])
    if reported is not None and delay is not None:
        raise InputError("give the report date (--report) or the delay (--delay), not both.")
    names = [name.strip() for part in strata or [] for name in part.split(",")]
    listed = tuple(name for name in names if name)
    columns = Columns(
        reference=reference, report=reported, delay=delay, count=count,
        strata=listed, line_list=line_list,
    )  # fmt: skip
    try:
        numbers = ranks if ranks == "validate" else tuple(int(r) for r in ranks.split(","))
    except ValueError:
        raise InputError(
            f"--ranks takes numbers with commas, such as 3,4,6, or validate, not {ranks!r}."
        ) from None
    wanted = NowcastOptions(
        as_of=as_of, first=first, last=last, days=days, ranks=numbers, warm_up=warm_up,
        replay=replay, form=form, out=out, page=page, as_json=as_json,
        source=source,
    )  # fmt: skip
    options = {"max_delay": max_delay, "cumulative": cumulative, "every": every,
               "duplicates": duplicates, "early": early}  # fmt: skip
    if line_list and duplicates != "error":
        raise InputError("--duplicates does not go with --line-list: every row is one case.")
    if title is not None and page is None:
        raise InputError("--title is about the page: name one with --page page.html.")
    named = "standard input" if source == "-" else Path(source).name
    run_nowcast(read_triangle(source, columns, options), wanted, title or f"Nowcast of {named}")


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
