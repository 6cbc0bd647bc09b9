"""One self-contained page about a nowcast: today's numbers, the triangle, delays, the past."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tensortide.nowcast import figures
from tensortide.nowcast.notes import remarks
from tensortide.report.pages import html
from tensortide.report.pages.shell import page_around, write_page

if TYPE_CHECKING:
    from tensortide.nowcast.nowcast import Nowcast
    from tensortide.nowcast.replay_result import Replay

_ROWS = 14


def write_nowcast_page(
    nowcast: Nowcast, out: Path, title: str, replay: Replay | None = None
) -> int:
    """Write the page and return its size in bytes."""
    return write_page(nowcast_html(nowcast, title, replay), out)


def nowcast_html(nowcast: Nowcast, title: str, replay: Replay | None = None) -> str:
    """Return the page as text."""
    triangle = nowcast.triangle
    first = triangle.strata[0] if triangle.strata else None
    drawn: dict[str, Any] = {
        "nowcast-figure": figures.nowcast_figure(nowcast),
        "triangle-figure": figures.triangle_figure(triangle),
        "delay-figure": figures.delay_figure(triangle, first),
        "course-figure": figures.delay_course_figure(triangle),
    }
    sections = [html.header(title, _facts(nowcast)), _today(nowcast), _strata(nowcast)]
    if triangle.every == "day":
        drawn["week-figure"] = figures.nowcast_figure(nowcast, days=7)
    sections += [_delays(first), _triangle()]
    if replay is not None:
        sections.append(_past(replay))
        drawn["wis-figure"] = figures.wis_figure(replay)
        drawn["coverage-figure"] = figures.coverage_figure(replay, intervals=(0.5,))
        drawn["coverage-95-figure"] = figures.coverage_figure(replay, intervals=(0.95,))
    return page_around(title, "\n".join(sections), drawn)


def _facts(nowcast: Nowcast) -> list[tuple[str, str]]:
    triangle = nowcast.triangle
    open_dates = nowcast.today.published.shape[1]
    sizes = zip(triangle.strata, map(len, triangle.labels), strict=True)
    return [
        ("as of", str(nowcast.as_of_date)),
        ("reported", f"{triangle.counts.sum():,.0f}"),
        (f"{triangle.every}{'' if open_dates == 1 else 's'} still open", f"{open_dates}"),
        *_newest(nowcast),
        *((name, f"{size:,}") for name, size in sizes),
    ]


def _newest(nowcast: Nowcast) -> list[tuple[str, str]]:
    """Return what the newest week, or period, comes to."""
    every = nowcast.triangle.every
    days, words = (7, "last seven days") if every == "day" else (1, f"last {every}")
    found = nowcast.quantiles((0.025, 0.5, 0.975), days=days)
    if np.isnan(found.reported[0, 0]):
        return []
    low, middle, high = (f"{v:,.0f}" for v in found.values[0, 0])
    return [
        (f"reported so far, {words}", f"{found.reported[0, 0]:,.0f}"),
        (f"expected in the end, {words} (95 %: {low} to {high})", middle),
    ]


def _notes(nowcast: Nowcast) -> html.Html:
    """Tell what is not in the numbers."""
    told = "".join(map(html.paragraph, remarks(nowcast)))
    return html.Html(f'<div class="remarks">{told}</div>' if told else "")


def _today(nowcast: Nowcast) -> html.Html:
    week: list[str] = []
    if nowcast.triangle.every == "day":
        words = "The same as sums of seven days, which have no weekday in them."
        week = [words, html.figure("week-figure")]
    return html.section(
        "today",
        "Where we stand",
        "Counts of the newest dates are not all in "
        "yet. The dotted line is what has been reported, the ribbon what the final count will "
        "be: it lies in the dark band with a chance of one half, in the light one with 95 %.",
        _notes(nowcast),
        html.figure("nowcast-figure"),
        *week,
        _table(nowcast),
    )


def _table(nowcast: Nowcast) -> html.Html:
    levels = (0.025, 0.25, 0.5, 0.75, 0.975)
    found = nowcast.quantiles(levels)
    rows = []
    for age, date in enumerate(found.dates[:_ROWS]):
        low, quarter, middle, three, high = (f"{v:,.0f}" for v in found.values[0, age])
        reported = f"{found.reported[0, age]:,.0f}"
        rows.append((date, reported, middle, f"{quarter} to {three}", f"{low} to {high}"))
    head = ("date", "reported so far", "median", "50 % interval", "95 % interval")
    return html.table(head, rows, ("", html.NUMBER))


def _strata(nowcast: Nowcast) -> html.Html:
    """Tell what the last seven dates come to, by each label of each stratum."""
    days = 7 if nowcast.triangle.every == "day" else 1
    found = nowcast.quantiles((0.025, 0.5, 0.975), days=days)
    parts = []
    for axis, name in enumerate(nowcast.units.strata):
        rows = []
        for u, key in enumerate(nowcast.units.keys):
            if [k for k, part in enumerate(key) if part is not None] != [axis]:
                continue
            reported = found.reported[u, 0]
            if np.isnan(reported):  # there have not been seven dates yet
                continue
            low, middle, high = (f"{v:,.0f}" for v in found.values[u, 0])
            rows.append((key[axis], f"{reported:,.0f}", middle, f"{low} to {high}"))
        if rows:
            head = ("", "reported so far", "median", "95 % interval")
            parts += [html.heading(name), html.table(head, rows, ("", html.NUMBER))]
    if not parts:
        return html.Html()
    span = "The last seven dates together." if days == 7 else "The last date."
    return html.section("strata", f"By {' and '.join(nowcast.units.strata)}", span, *parts)


def _delays(stratum: str | None) -> html.Html:
    by = "" if stratum is None else f" by {stratum} (the largest)"
    return html.section(
        "delays",
        "How late reports come",
        f"Share of the final count that is out after each delay{by}, of dates that are complete.",
        html.figure("delay-figure"),
        "The same over time: if these lines move, reporting has become faster or slower.",
        html.figure("course-figure"),
    )


def _triangle() -> html.Html:
    return html.section(
        "triangle",
        "The triangle",
        "New counts by reference date and delay; the empty corner is what is still to come.",
        html.figure("triangle-figure"),
    )


def _scored(replay: Replay) -> str:
    scored = replay.scored
    if scored.final == scored.asked:
        return ""
    of_whole = f"{scored.final:,} of {scored.asked:,} nowcasts of the whole"
    return f" ({of_whole}: the others are not final yet)"


def _past(replay: Replay) -> html.Html:
    rows = []
    for row in replay.summary().to_pylist():
        relative = row.get("relative_wis")
        rows.append(
            (
                row["level"],
                row["model"],
                f"{row['wis']:,.2f}",
                "" if relative is None else f"{relative:.2f}",
                f"{row['coverage_50']:.0%}",
                f"{row['coverage_95']:.0%}",
                f"{row['bias']:+,.2f}",
                f"{row['mae']:,.2f}",
            )
        )
    head = ("level", "model", "WIS", "relative", "50 % covers", "95 % covers", "bias", "MAE")
    every, dates = replay.every, replay.dates
    what = f"single {every}s" if replay.days == 1 else f"sums of {replay.days} {every}s"
    return html.section(
        "past",
        "How good it would have been",
        f"Every {every} from {dates[0]} to {dates[-1]} was nowcast with what was known then, and "
        f"scored by what came later{_scored(replay)}. Targets are {what}. WIS is the weighted "
        "interval score (lower is better), relative to the chain-ladder; the pictures are about "
        "all strata together.",
        html.table(head, rows, ("", "", html.NUMBER)),
        *map(html.figure, ("wis-figure", "coverage-figure", "coverage-95-figure")),
    )
