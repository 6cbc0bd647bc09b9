"""One self-contained page about a run: no external links, works offline, prints."""

from __future__ import annotations

from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tensortide.report.figures.panels import Component, components
from tensortide.report.figures.run import (
    AVERAGED,
    Course,
    entries_figure,
    error_figure,
    labels_figure,
)
from tensortide.report.pages.shell import page_around, write_page
from tensortide.tracker.summary import summarise
from tensortide.wording import counted

if TYPE_CHECKING:
    from tensortide.tracker.tracker import Tracker

_SURPRISES = 15


def write_report(tracker: Tracker, out: Path, title: str | None = None) -> int:
    """Write the page and return its size in bytes; the old file stays until it is whole."""
    return write_page(report_html(tracker, title), out)


def report_html(tracker: Tracker, title: str | None = None) -> str:
    """Return the page as text."""
    facts = summarise(tracker)
    course = Course(tracker)
    figures = {
        "labels-figure": labels_figure(course),
        "entries-figure": entries_figure(course),
        "error-figure": error_figure(course),
    }
    name = escape(title or f"Report on {tracker.path.resolve().name}")
    body = "\n".join(
        [
            f"<header><h1>{name}</h1>{_facts(facts)}</header>",
            _what(tracker, facts),
            _growth(facts),
            _fit(facts),
            _components(components(tracker.model) if tracker.fitted else []),
            _surprises(tracker),
            _settings(tracker, facts),
        ]
    )
    return page_around(name, body, figures)


def _facts(facts: dict[str, Any]) -> str:
    shown = [("records", f"{facts['records']:,}"), ("steps", f"{facts['steps']:,}")]
    shown += [(_plural(m["name"], m["size"]), f"{m['size']:,}") for m in facts["modes"]]
    if facts["fitness"] is not None:
        shown.append(("fitness before learning", f"{facts['fitness']:.0%}"))
        shown.append(("after learning", f"{facts['learned']:.0%}"))
    if facts["bad"]:
        shown.append(("bad records", f"{facts['bad']:,}"))
    cards = "".join(f'<div class="fact"><b>{v}</b>{escape(k)}</div>' for k, v in shown)
    return f'<div class="facts">{cards}</div>'


def _plural(name: str, count: int) -> str:
    return f"{name} labels" if count != 1 else f"{name} label"


def _what(tracker: Tracker, facts: dict[str, Any]) -> str:
    if not facts["steps"]:
        return '<section id="what"><h2>What the data are</h2><p>Nothing has come yet.</p></section>'
    modes = [m["name"] for m in facts["modes"]]
    value = facts["value"] or "number of records"
    sources = [Path(s["name"]).name for s in facts["sources"]]
    where = f" from {_some(sources)}" if sources else ""
    absent = "zero" if facts["absent"] == "zero" else "unknown"
    known = "exactly" if facts["exact"] else "about"
    text = (
        f"The data are values of <strong>{escape(value)}</strong> by "
        f"<strong>{escape(_listed(modes))}</strong>{where}. {facts['records']:,} records were "
        f"learned in {counted(facts['steps'], 'step')} between {facts['first']} and "
        f"{facts['last']} UTC. "
        f"They report {known} {facts['entries']:,} different cells; a cell that nobody reported "
        f"counts as {absent}."
    )
    ranges = _ranges(tracker)
    return f'<section id="what"><h2>What the data are</h2><p>{text}</p>{ranges}</section>'


def _ranges(tracker: Tracker) -> str:
    """Tell of each mode how many labels it has and which."""
    modes = tracker.model._fitted().modes
    rows = []
    for name, labels in zip(modes.names, modes.labels, strict=True):
        size = len(labels)
        if labels.kind in ("text", "boolean"):
            some = ", ".join(str(labels.label(i)) for i in range(min(size, 6)))
            which = some + (", ..." if size > 6 else "")
        else:
            array = labels.array()
            which = f"{array.min()} to {array.max()}"
        cells = f"<td>{escape(name)}</td><td>{labels.kind}</td>"
        numbers = f'<td class="number">{size:,}</td>'
        rows.append(f'<tr>{cells}{numbers}<td class="wrap">{escape(which)}</td></tr>')
    head = '<tr><th>mode</th><th>kind</th><th class="number">labels</th><th>which</th></tr>'
    return f'<div class="scroll"><table>{head}{"".join(rows)}</table></div>'


def _too_few(facts: dict[str, Any]) -> bool:
    return int(facts["steps"]) < 2


def _growth(facts: dict[str, Any]) -> str:
    if _too_few(facts):
        return (
            '<section id="growth"><h2>How it grew</h2><p>There are too few steps to draw: the '
            "pictures begin with the second.</p></section>"
        )
    old = (
        "Late values fill holes and published values are revised; a model without history cannot "
        "tell one from the other."
    )
    if facts["method"].startswith(("gocpt", "cpc", "em_als")) and "gocpte" not in facts["method"]:
        old = "Late values fill holes, and published values are revised."
    return (
        '<section id="growth"><h2>How it grew</h2>'
        "<p>Labels of each mode over time (the axis counts in tens, hundreds, thousands).</p>"
        '<div class="figure" id="labels-figure">Drawing ...</div>'
        f"<p>What each step after the first one brought. {old}</p>"
        '<div class="figure" id="entries-figure">Drawing ...</div></section>'
    )


def _fit(facts: dict[str, Any]) -> str:
    text = "Every step is predicted before it is learned; the error is what the prediction missed, "
    text += "as a share of the size of the values. A new label has to be guessed at first."
    if facts["fitness"] is not None:
        text += (
            f" Over the last {counted(facts['fitness_steps'], 'step')} it was "
            f"<strong>{1 - facts['fitness']:.0%}</strong>"
        )
        if facts["learned"] is not None:
            text += f", and {1 - facts['learned']:.0%} after learning"
        text += "."
    if _too_few(facts):
        return f'<section id="fit"><h2>How well it fits</h2><p>{text}</p></section>'
    return (
        f'<section id="fit"><h2>How well it fits</h2><p>{text}</p>'
        f'<div class="figure" id="error-figure">Drawing ...</div>'
        f'<p class="soft">Dots: single steps. Line: mean of {AVERAGED} steps. Single steps with '
        "errors far above all others lie outside the picture.</p></section>"
    )


def _components(found: list[Component]) -> str:
    parts = [
        '<section id="components"><h2>What it is made of</h2><p>The model is a sum of '
        f"{counted(len(found), 'component')}, strongest first. In each, a panel shows how much "
        "every label takes part: a line where labels have an order, else bars for the largest "
        "(orange where they count against).</p>"
    ]
    for c in found:
        panels = "".join(
            f'<div class="panel"><strong>{escape(name)}</strong>{html}</div>'
            for name, html in c.panels
        )
        title = escape(c.title) or "empty so far"
        parts.append(
            f'<div class="component"><h3>{c.number}. {title}</h3><div class="soft">strength '
            f'{c.share:.0%} of all</div><div class="panels">{panels}</div></div>'
        )
    return "".join(parts) + "</section>"


def _surprises(tracker: Tracker) -> str:
    head = '<section id="surprises"><h2>The largest surprises</h2>'
    if not tracker.options["keep_surprises"]:
        return head + (
            "<p>These would be raw values, and this run keeps none; track it with "
            "--keep-surprises to see them from then on.</p></section>"
        )
    found = tracker.surprises()[:_SURPRISES]
    if not found:
        return head + "<p>There are none yet.</p></section>"
    names = list(found[0].cell)
    row = "".join(f"<th>{escape(n)}</th>" for n in names)
    words = ("came", "expected", "95 % range", "chance", "step")
    numbers = "".join(f'<th class="number">{w}</th>' for w in words)
    rows = []
    for s in found:
        new = dict.fromkeys(s.fresh, " <span class=soft>new</span>")
        cells = "".join(
            f"<td>{escape(_short(label))}{new.get(name, '')}</td>" for name, label in s.cell.items()
        )
        came = f"{s.value:,.4g}" + (" (corrected)" if s.revised else "")
        span = "" if s.low is None else f"{s.low:,.4g} to {s.high:,.4g}"
        chance = "" if s.probability is None else _chance(s.probability)
        values = (came, f"{s.expected:,.4g}", span, chance, f"{s.step:,}")
        cells += "".join(f'<td class="number">{v}</td>' for v in values)
        rows.append(f"<tr>{cells}</tr>")
    return (
        f"{head}<p>Values and corrections that fitted least what the model expected before it "
        "learned them, the least likely first. (On a narrow screen the table can be moved "
        "sideways.)</p>"
        f'<div class="scroll"><table><tr>{row}{numbers}</tr>{"".join(rows)}</table></div></section>'
    )


def _chance(probability: float) -> str:
    """Return a small probability for people."""
    if probability >= 1e-4:
        return f"{100 * probability:.2g} %"
    return "1 in " + (f"{1 / probability:,.0f}" if probability > 1e-7 else "over 10 million")


def _short(label: str) -> str:
    return label if len(label) <= 28 else label[:27] + "…"


def _settings(tracker: Tracker, facts: dict[str, Any]) -> str:
    roles = tracker.options.get("roles") or {}
    cut = roles.get("cut") or {}
    steps = "one step a batch"
    if cut.get("column"):
        steps = f"one for each {cut['column']}"
    elif cut.get("rows"):
        steps = f"{cut['rows']:,} records each"
    elif roles:
        steps = "one a file or table"
    rows = [
        ("method", facts["method"]),
        ("components (rank)", facts["rank"]),
        ("cells not listed", facts["absent"]),
        ("several records of a cell in a step", facts["duplicates"]),
        ("a record of a known cell", facts["combine"]),
        ("steps", steps),
        ("seed", facts["seed"]),
        ("size on the disk", f"{facts['bytes'] / 1e6:.1f} MB"),
    ]
    cells = "".join(f"<tr><td>{escape(k)}</td><td>{escape(str(v))}</td></tr>" for k, v in rows)
    return (
        '<section id="settings"><h2>Settings</h2>'
        f'<div class="scroll"><table>{cells}</table></div></section>'
    )


def _listed(words: list[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def _some(names: list[str]) -> str:
    if len(names) <= 3:
        return escape(_listed(names))
    return f"{len(names):,} sources, the last {escape(names[-1])}"
