"""One self-contained page about a run: no external links, works offline, prints."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from tensortide import markup
from tensortide.errors import InputError
from tensortide.report.figures.forecast import STEPS, forecast_figure
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
from tensortide.wording import counted, in_options, listed, short

if TYPE_CHECKING:
    from tensortide.drawing import Spec
    from tensortide.tracker.tracker import Tracker

_SURPRISES = 15


def write_report(tracker: Tracker, out: Path, title: str | None = None) -> int:
    """Write the page and return its size in bytes; the old file stays until it is whole."""
    return write_page(report_html(tracker, title), out)


def report_html(tracker: Tracker, title: str | None = None) -> str:
    """Return the page as text."""
    course = Course(tracker)
    facts = summarise(tracker, course.batches)
    figures = {
        "labels-figure": labels_figure(course),
        "entries-figure": entries_figure(course),
        "error-figure": error_figure(course),
    }
    ahead, none = _ahead(tracker)
    figures |= ahead
    name = title or f"Report on {tracker.path.resolve().name}"
    body = [
        markup.header(name, _facts(facts)),
        _what(tracker, facts),
        _growth(facts, course),
        _fit(facts),
        _forecast(tracker, none),
        _components(components(tracker.model) if tracker.fitted else []),
        _surprises(tracker),
        _settings(tracker, facts),
    ]
    return page_around(name, "\n".join(body), figures)


def _facts(facts: dict[str, Any]) -> list[tuple[str, str]]:
    shown = [("records", f"{facts['records']:,}"), ("steps", f"{facts['steps']:,}")]
    shown += [(_plural(m["name"], m["size"]), f"{m['size']:,}") for m in facts["modes"]]
    if facts["fitness"] is not None:
        shown.append(("fitness before learning", f"{facts['fitness']:.0%}"))
        shown.append(("fitness after learning", f"{facts['learned']:.0%}"))
    if facts["bad"]:
        shown.append(("bad records", f"{facts['bad']:,}"))
    return shown


def _plural(name: str, count: int) -> str:
    return f"{name} labels" if count != 1 else f"{name} label"


def _what(tracker: Tracker, facts: dict[str, Any]) -> markup.Html:
    title = "What the data are"
    if not facts["steps"]:
        return markup.section("what", title, "Nothing has come yet.")
    modes = listed([m["name"] for m in facts["modes"]])
    value = facts["value"] or "number of records"
    sources = [Path(s["name"]).name for s in facts["sources"]]
    where = f" from {_some(sources)}" if sources else ""
    absent = "zero" if facts["absent"] == "zero" else "unknown"
    known = "exactly" if facts["exact"] else "about"
    text = (
        f"The data are values of {markup.strong(value)} by {markup.strong(modes)}"
        f"{markup.escape(where)}. {facts['records']:,} records were learned in "
        f"{counted(facts['steps'], 'step')} between {facts['first']} and {facts['last']} UTC. They "
        f"report {known} {facts['entries']:,} different cells; a cell that "
        f"nobody reported counts as {absent}."
    )
    return markup.section("what", title, markup.paragraph(markup.Html(text)), _ranges(tracker))


def _ranges(tracker: Tracker) -> markup.Html:
    """Tell of each mode how many labels it has and which."""
    modes = tracker.model._require_model().modes
    rows = []
    for name, labels in zip(modes.names, modes.labels, strict=True):
        size = len(labels)
        if labels.kind in ("text", "boolean"):
            some = ", ".join(str(labels.label(i)) for i in range(min(size, 6)))
            which = some + (", ..." if size > 6 else "")
        else:
            array = labels.array()
            which = f"{array.min()} to {array.max()}"
        rows.append((name, labels.kind, f"{size:,}", which))
    return markup.table(("mode", "kind", "labels", "which"), rows, ("", "", markup.NUMBER, "wrap"))


def _too_few(facts: dict[str, Any]) -> bool:
    return int(facts["steps"]) < 2


def _growth(facts: dict[str, Any], course: Course) -> markup.Html:
    title = "How it grew"
    if _too_few(facts):
        few = "There are too few steps to draw: the pictures begin with the second."
        return markup.section("growth", title, few)
    old = (
        "Late values fill holes, and published values are revised."
        if course.keeps_history
        else "Late values fill holes and published values are revised; a model without history "
        "cannot tell one from the other."
    )
    return markup.section(
        "growth",
        title,
        "Labels of each mode over time (on a logarithmic axis).",
        markup.figure("labels-figure"),
        f"What each step after the first one brought. {old}",
        markup.figure("entries-figure"),
    )


def _fit(facts: dict[str, Any]) -> markup.Html:
    text = "Every step is predicted before it is learned; the error is what the prediction missed, "
    text += "as a share of the size of the values. A new label has to be guessed at first."
    if facts["fitness"] is not None:
        over, missed = counted(facts["fitness_steps"], "step"), f"{1 - facts['fitness']:.0%}"
        text += f" Over the last {over} it was {markup.strong(missed)}"
        if facts["learned"] is not None:
            text += f", and {1 - facts['learned']:.0%} after learning"
        text += (
            ". The fitness at the top of the page is what that leaves of 100 %: 100 % is exact, "
        )
        text += "and 0 % no better than predicting zeros."
    parts = [markup.paragraph(markup.Html(text))]
    if not _too_few(facts):
        below = (
            f"Dots: single steps. Line: mean of {AVERAGED} steps. Single steps with errors far "
            "above all others lie outside the picture."
        )
        parts += [markup.figure("error-figure"), markup.paragraph(below, "soft")]
    return markup.section("fit", "How well it fits", *parts)


def _ahead(tracker: Tracker) -> tuple[dict[str, Spec], str]:
    """Return the figure of what comes next, or why there is none."""
    if not tracker.fitted:
        return {}, "Nothing has come yet."
    try:
        return {"forecast-figure": forecast_figure(tracker.model)}, ""
    except InputError as error:
        return {}, f"This run has no forecast: {in_options(str(error))}"


def _forecast(tracker: Tracker, none: str) -> markup.Html:
    name, title = "forecast", "What comes next (forecast)"
    if none:
        return markup.section(name, title, none)
    kept = " Dots: values as reported." if tracker.params["method"].keeps_history else ""
    text = (
        f"The largest series, {STEPS} steps ahead of the newest label. Dashed, on grey: a forecast "
        "of labels that have not come. It is a mixture of the last values, their means, seasons "
        "and a damped trend, weighed by how each would have done before; there are no intervals."
        f" Thin lines: the model's values of known labels.{kept}"
    )
    return markup.section(name, title, text, markup.figure("forecast-figure"))


def _components(found: list[Component]) -> markup.Html:
    parts = [
        f"The model is a sum of {counted(len(found), 'component')}, strongest first. In each, a "
        "panel shows how much every label takes part: a line where labels have an order, else "
        "bars for the largest (orange where they count against)."
    ]
    for c in found:
        panels = "".join(
            f'<div class="panel">{markup.strong(name)}{drawn}</div>' for name, drawn in c.panels
        )
        title = markup.heading(f"{c.number}. {c.title or 'empty so far'}")
        parts.append(
            markup.Html(
                f'<div class="component">{title}<div class="soft">strength '
                f'{c.share:.0%} of all</div><div class="panels">{panels}</div></div>'
            )
        )
    return markup.section("components", "What it is made of", *parts)


def _surprises(tracker: Tracker) -> markup.Html:
    name, title = "surprises", "The largest surprises"
    if not tracker.options["keep_surprises"]:
        none = (
            "These would be raw values, and this run keeps none; track it with --keep-surprises "
            "to see them from then on."
        )
        return markup.section(name, title, none)
    found = tracker.surprises()[:_SURPRISES]
    if not found:
        return markup.section(name, title, "There are none yet.")
    modes = list(found[0].cell)
    rows = []
    for s in found:
        new = dict.fromkeys(s.fresh, " <span class=soft>new</span>")
        cells = [
            markup.Html(markup.escape(short(label, 28)) + new.get(mode, ""))
            for mode, label in s.cell.items()
        ]
        came = f"{s.value:,.4g}" + (" (corrected)" if s.revised else "")
        span = "" if s.low is None else f"{s.low:,.4g} to {s.high:,.4g}"
        chance = "" if s.probability is None else _chance(s.probability)
        rows.append((*cells, came, f"{s.expected:,.4g}", span, chance, f"{s.step:,}"))
    head = (*modes, "came", "expected", "95 % range", "chance", "step")
    return markup.section(
        name,
        title,
        "Values and corrections that fitted least what the model expected before it "
        "learned them, the least likely first. (On a narrow screen the table can be moved "
        "sideways.)",
        markup.table(head, rows, (*[""] * len(modes), markup.NUMBER)),
    )


def _chance(probability: float) -> str:
    """Return a small probability for people."""
    if probability >= 1e-4:
        return f"{100 * probability:.2g} %"
    return "1 in " + (f"{1 / probability:,.0f}" if probability > 1e-7 else "over 10 million")


def _settings(tracker: Tracker, facts: dict[str, Any]) -> markup.Html:
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
    return markup.section("settings", "Settings", markup.table((), rows))


def _some(names: list[str]) -> str:
    if len(names) <= 3:
        return listed(names)
    return f"{len(names):,} sources, the last {names[-1]}"
