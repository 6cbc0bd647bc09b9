"""Which column of a file is what: named by the user, or guessed and said."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from rich.console import Console

from tensortide.errors import InputError
from tensortide.nowcast.triangle import Triangle
from tensortide.sources.roles import columns_called
from tensortide.sources.whole import read_source


@dataclass(frozen=True, kw_only=True)
class Columns:
    """Which column is what; None where nothing was said."""

    reference: str | None
    report: str | None
    delay: str | None
    count: str | None
    strata: tuple[str, ...]
    line_list: bool


def read_triangle(source: str, columns: Columns, options: dict[str, Any]) -> Triangle:
    """Read the source; columns that were not named are guessed and said."""
    table = read_source(source)
    if not table.column_names or not table.num_rows:
        raise InputError(f"{source} has no rows.")
    screen = Console(stderr=True, highlight=False)
    found = _fill_in(table.column_names, columns, screen)
    if columns.line_list:
        if columns.count is not None:
            raise InputError("--count does not go with --line-list: every row is one case.")
        if found.report is None:
            raise InputError("a line list has a report date in each row: name it with --report.")
        if options["cumulative"]:
            raise InputError("--cumulative does not go with --line-list: cases are counted.")
        free = [name for name in table.column_names if name not in found.strata]
        counts = columns_called("count", free)
        if counts:
            screen.print(
                f"every row is counted as one case; the column {counts[0]!r} is not used "
                "(leave out --line-list if it holds counts)",
                soft_wrap=True,
            )
        rules = {name: options[name] for name in ("max_delay", "every", "early")}
        return Triangle.from_line_list(
            table, reference=found.reference or "", report=found.report, strata=found.strata,
            **rules,
        )  # fmt: skip
    return Triangle.from_table(
        table, reference=found.reference or "", report=found.report, delay=found.delay,
        count=found.count or "count", strata=found.strata, **options,
    )  # fmt: skip


def _fill_in(names: Sequence[str], columns: Columns, screen: Console) -> Columns:
    """Fill in the columns that were not named by the names that such columns often have."""

    def guess(role: str, given: str | None) -> str | None:
        if given is not None:
            return given
        taken = {columns.reference, columns.report, columns.delay, columns.count, *columns.strata}
        found = columns_called(role, [name for name in names if name not in taken])
        if not found:
            return None
        screen.print(f"guessed --{role} {found[0]}")
        return found[0]

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
    return replace(columns, reference=reference, report=report, delay=delay, count=count)
