"""One self-contained page about a nowcast: today's numbers, the triangle, delays, the past."""

from __future__ import annotations

from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tensortide.nowcast import figures
from tensortide.nowcast.notes import remarks
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
    sections = [
        f"<header><h1>{escape(title)}</h1>{_facts(nowcast)}</header>",
        _today(nowcast),
        _strata(nowcast),
    ]
    if triangle.every == "day":
        drawn["week-figure"] = figures.nowcast_figure(nowcast, days=7)
    sections += [_delays(first), _triangle()]
    if replay is not None:
        sections.append(_past(replay))
        drawn["wis-figure"] = figures.wis_figure(replay)
        drawn["coverage-figure"] = figures.coverage_figure(replay, intervals=(0.5,))
        drawn["coverage-95-figure"] = figures.coverage_figure(replay, intervals=(0.95,))
    return page_around(escape(title), "\n".join(sections), drawn)


def _facts(nowcast: Nowcast) -> str:
    triangle = nowcast.triangle
    open_dates = nowcast.today.published.shape[1]
    shown = [
        ("as of", str(nowcast.as_of_date)),
        ("reported", f"{triangle.counts.sum():,.0f}"),
        (f"{triangle.every}{'' if open_dates == 1 else 's'} still open", f"{open_dates}"),
        *_newest(nowcast),
    ]
    shown += [(name, f"{len(known):,}") for name, known in
              zip(triangle.strata, triangle.labels, strict=True)]  # fmt: skip
    cards = "".join(f'<div class="fact"><b>{v}</b>{escape(k)}</div>' for k, v in shown)
    return f'<div class="facts">{cards}</div>'


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


def _notes(nowcast: Nowcast) -> str:
    """Tell what is not in the numbers."""
    told = remarks(nowcast)
    if not told:
        return ""
    return f'<div class="remarks">{"".join(f"<p>{escape(note)}</p>" for note in told)}</div>'


def _today(nowcast: Nowcast) -> str:
    week = (
        "<p>The same as sums of seven days, which have no weekday in them.</p>"
        '<div class="figure" id="week-figure">Drawing ...</div>'
        if nowcast.triangle.every == "day"
        else ""
    )
    return (
        '<section id="today"><h2>Where we stand</h2><p>Counts of the newest dates are not all in '
        "yet. The dotted line is what has been reported, the ribbon what the final count will "
        "be: it lies in the dark band with a chance of one half, in the light one with 95 %.</p>"
        f"{_notes(nowcast)}"
        '<div class="figure" id="nowcast-figure">Drawing ...</div>'
        f"{week}{_table(nowcast)}</section>"
    )


def _table(nowcast: Nowcast) -> str:
    levels = (0.025, 0.25, 0.5, 0.75, 0.975)
    found = nowcast.quantiles(levels)
    rows = []
    for age, date in enumerate(found.dates[:_ROWS]):
        low, quarter, middle, three, high = (f"{v:,.0f}" for v in found.values[0, age])
        reported = f"{found.reported[0, age]:,.0f}"
        cells = (reported, middle, f"{quarter} to {three}", f"{low} to {high}")
        numbers = "".join(f'<td class="number">{c}</td>' for c in cells)
        rows.append(f"<tr><td>{date}</td>{numbers}</tr>")
    names = ("reported so far", "median", "50 % interval", "95 % interval")
    head = "".join(f'<th class="number">{n}</th>' for n in names)
    return f'<div class="scroll"><table><tr><th>date</th>{head}</tr>{"".join(rows)}</table></div>'


def _strata(nowcast: Nowcast) -> str:
    """Tell what the last seven dates come to, by each label of each stratum."""
    days = 7 if nowcast.triangle.every == "day" else 1
    found = nowcast.quantiles((0.025, 0.5, 0.975), days=days)
    parts = []
    for axis, name in enumerate(nowcast.units.strata):
        rows = []
        for u, key in enumerate(nowcast.units.keys):
            if [k for k, part in enumerate(key) if part is not None] != [axis]:
                continue
            low, middle, high = (f"{v:,.0f}" for v in found.values[u, 0])
            if np.isnan(found.reported[u, 0]):  # there have not been seven dates yet
                continue
            cells = (f"{found.reported[u, 0]:,.0f}", middle, f"{low} to {high}")
            numbers = "".join(f'<td class="number">{c}</td>' for c in cells)
            rows.append(f"<tr><td>{escape(str(key[axis]))}</td>{numbers}</tr>")
        if not rows:
            continue
        head = "".join(
            f'<th class="number">{n}</th>' for n in ("reported so far", "median", "95 % interval")
        )
        parts.append(
            f'<h3>{escape(name)}</h3><div class="scroll"><table><tr><th></th>{head}</tr>'
            f"{''.join(rows)}</table></div>"
        )
    if not parts:
        return ""
    span = "The last seven dates together." if days == 7 else "The last date."
    return (
        f'<section id="strata"><h2>By {escape(" and ".join(nowcast.units.strata))}</h2>'
        f"<p>{span}</p>{''.join(parts)}</section>"
    )


def _delays(stratum: str | None) -> str:
    by = "" if stratum is None else f" by {escape(stratum)} (the largest)"
    return (
        f'<section id="delays"><h2>How late reports come</h2><p>Share of the final count that is '
        f"out after each delay{by}, of dates that are complete.</p>"
        '<div class="figure" id="delay-figure">Drawing ...</div>'
        "<p>The same over time: if these lines move, reporting has become faster or slower.</p>"
        '<div class="figure" id="course-figure">Drawing ...</div></section>'
    )


def _triangle() -> str:
    return (
        '<section id="triangle"><h2>The triangle</h2><p>New counts by reference date and delay; '
        "the empty corner is what is still to come.</p>"
        '<div class="figure" id="triangle-figure">Drawing ...</div></section>'
    )


def _scored(replay: Replay) -> str:
    scored = replay.scored
    if scored.final == scored.asked:
        return ""
    of_whole = f"{scored.final:,} of {scored.asked:,} nowcasts of the whole"
    return f" ({of_whole}: the others are not final yet)"


def _past(replay: Replay) -> str:
    rows = []
    for row in replay.summary().to_pylist():
        relative = row.get("relative_wis")
        cells = (
            f"{row['wis']:,.2f}",
            "" if relative is None else f"{relative:.2f}",
            f"{row['coverage_50']:.0%}",
            f"{row['coverage_95']:.0%}",
            f"{row['bias']:+,.2f}",
            f"{row['mae']:,.2f}",
        )
        numbers = "".join(f'<td class="number">{c}</td>' for c in cells)
        words = f"<td>{escape(row['level'])}</td><td>{escape(row['model'])}</td>"
        rows.append(f"<tr>{words}{numbers}</tr>")
    names = ("WIS", "relative", "50 % covers", "95 % covers", "bias", "MAE")
    head = "".join(f'<th class="number">{n}</th>' for n in names)
    first, last = replay.dates[0], replay.dates[-1]
    what = (
        f"single {replay.every}s" if replay.days == 1 else f"sums of {replay.days} {replay.every}s"
    )
    return (
        f'<section id="past"><h2>How good it would have been</h2><p>Every {replay.every} from '
        f"{first} to {last} was nowcast with what was known then, and scored by what came later"
        f"{_scored(replay)}. "
        f"Targets are {what}. WIS is the weighted interval score (lower is better), relative to "
        "the chain-ladder; the pictures are about all strata together.</p>"
        f'<div class="scroll"><table><tr><th>level</th><th>model</th>{head}</tr>{"".join(rows)}'
        '</table></div><div class="figure" id="wis-figure">Drawing ...</div>'
        '<div class="figure" id="coverage-figure">Drawing ...</div>'
        '<div class="figure" id="coverage-95-figure">Drawing ...</div></section>'
    )
