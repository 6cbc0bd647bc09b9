"""One self-contained page about a nowcast: today's numbers, the triangle, delays, the past."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tensortide import markup
from tensortide.nowcast import figures
from tensortide.nowcast.notes import remarks
from tensortide.nowcast.replay_result import score_texts
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
    sections = [markup.header(title, _facts(nowcast)), _today(nowcast), _strata(nowcast)]
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
    reported, low, middle, high = found.texts(0, 0)
    return [
        (f"reported so far, {words}", reported),
        (f"expected in the end, {words} (95 %: {low} to {high})", middle),
    ]


def _notes(nowcast: Nowcast) -> markup.Html:
    """Tell what is not in the numbers."""
    told = "".join(map(markup.paragraph, remarks(nowcast)))
    return markup.Html(f'<div class="remarks">{told}</div>' if told else "")


def _today(nowcast: Nowcast) -> markup.Html:
    week: list[str] = []
    if nowcast.triangle.every == "day":
        words = "The same as sums of seven days, which have no weekday in them."
        week = [words, markup.figure("week-figure")]
    return markup.section(
        "today",
        "Where we stand",
        "Counts of the newest dates are not all in "
        "yet. The dotted line is what has been reported, the ribbon what the final count will "
        "be: it lies in the dark band with a chance of one half, in the light one with 95 %.",
        _notes(nowcast),
        markup.figure("nowcast-figure"),
        *week,
        _table(nowcast),
    )


def _table(nowcast: Nowcast) -> markup.Html:
    levels = (0.025, 0.25, 0.5, 0.75, 0.975)
    found = nowcast.quantiles(levels)
    rows = []
    for age, date in enumerate(found.dates[:_ROWS]):
        reported, low, quarter, middle, three, high = found.texts(0, age)
        rows.append((date, reported, middle, f"{quarter} to {three}", f"{low} to {high}"))
    head = ("date", "reported so far", "median", "50 % interval", "95 % interval")
    return markup.table(head, rows, ("", markup.NUMBER))


def _strata(nowcast: Nowcast) -> markup.Html:
    """Tell what the last seven dates come to, by each label of each stratum."""
    days = 7 if nowcast.triangle.every == "day" else 1
    found = nowcast.quantiles((0.025, 0.5, 0.975), days=days)
    parts = []
    for axis, name in enumerate(nowcast.units.strata):
        rows = []
        for u, key in enumerate(nowcast.units.keys):
            if [k for k, part in enumerate(key) if part is not None] != [axis]:
                continue
            if np.isnan(found.reported[u, 0]):  # there have not been seven dates yet
                continue
            reported, low, middle, high = found.texts(u, 0)
            rows.append((key[axis], reported, middle, f"{low} to {high}"))
        if rows:
            head = ("", "reported so far", "median", "95 % interval")
            parts += [markup.heading(name), markup.table(head, rows, ("", markup.NUMBER))]
    if not parts:
        return markup.Html()
    span = "The last seven dates together." if days == 7 else "The last date."
    return markup.section("strata", f"By {' and '.join(nowcast.units.strata)}", span, *parts)


def _delays(stratum: str | None) -> markup.Html:
    by = "" if stratum is None else f" by {stratum} (the largest)"
    return markup.section(
        "delays",
        "How late reports come",
        f"Share of the final count that is out after each delay{by}, of dates that are complete.",
        markup.figure("delay-figure"),
        "The same over time: if these lines move, reporting has become faster or slower.",
        markup.figure("course-figure"),
    )


def _triangle() -> markup.Html:
    return markup.section(
        "triangle",
        "The triangle",
        "New counts by reference date and delay; the empty corner is what is still to come.",
        markup.figure("triangle-figure"),
    )


def _how_many(replay: Replay) -> str:
    scored = replay.scored
    if scored.final == scored.asked:
        return ""
    of_whole = f"{scored.final:,} of {scored.asked:,} nowcasts of the whole"
    return f" ({of_whole}: the others are not final yet)"


def _past(replay: Replay) -> markup.Html:
    rows = map(score_texts, replay.summary().to_pylist())
    head = ("level", "model", "WIS", "relative", "50 % covers", "95 % covers", "bias", "MAE")
    every, dates = replay.every, replay.dates
    what = f"single {every}s" if replay.days == 1 else f"sums of {replay.days} {every}s"
    return markup.section(
        "past",
        "How good it would have been",
        f"Every {every} from {dates[0]} to {dates[-1]} was nowcast with what was known then, and "
        f"scored by what came later{_how_many(replay)}. Targets are {what}. WIS is the weighted "
        "interval score (lower is better), relative to the chain-ladder; the pictures are about "
        "all strata together.",
        markup.table(head, rows, ("", "", markup.NUMBER)),
        *map(markup.figure, ("wis-figure", "coverage-figure", "coverage-95-figure")),
    )
