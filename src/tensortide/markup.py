"""The parts of pages and of notebooks.  Text is escaped here; what is HTML already says so."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence

NUMBER = "number"  # the class of a column of numbers


class Html(str):
    """Text that is HTML already."""

    __slots__ = ()


def escape(text: object) -> Html:
    """Return text as HTML that shows it."""
    return text if isinstance(text, Html) else Html(html.escape(str(text)))


def header(title: str, facts: Iterable[tuple[str, str]]) -> Html:
    """Return the head of a page: its title, and cards with a number and what it is."""
    shown = "".join(
        f'<div class="fact"><b>{escape(number)}</b>{escape(what)}</div>' for what, number in facts
    )
    return Html(f'<header><h1>{escape(title)}</h1><div class="facts">{shown}</div></header>')


def section(name: str, title: str, *parts: str) -> Html:
    """Return a section of paragraphs, tables and figures; plain text becomes a paragraph."""
    inner = "".join(p if isinstance(p, Html) else paragraph(p) for p in parts)
    return Html(f'<section id="{name}"><h2>{escape(title)}</h2>{inner}</section>')


def paragraph(text: str, kind: str = "") -> Html:
    """Return a paragraph."""
    return Html(f"<p{_class(kind)}>{escape(text)}</p>")


def heading(text: str) -> Html:
    """Return the title of a part of a section."""
    return Html(f"<h3>{escape(text)}</h3>")


def strong(text: object) -> Html:
    """Return words that stand out."""
    return Html(f"<strong>{escape(text)}</strong>")


def figure(name: str) -> Html:
    """Return the place into which the figure of that name is drawn."""
    return Html(f'<div class="figure" id="{name}">Drawing ...</div>')


def table(head: Sequence[str], rows: Iterable[Sequence[object]], kinds: Sequence[str] = ()) -> Html:
    """Return a table; `kinds` are the classes of its columns, the last one of all that follow."""
    lines = [_line("th", head, [k if k == NUMBER else "" for k in kinds])] if head else []
    lines += [_line("td", row, kinds) for row in rows]
    return Html(f'<div class="scroll"><table>{"".join(lines)}</table></div>')


def _line(tag: str, cells: Sequence[object], kinds: Sequence[str]) -> str:
    known = [*kinds, *[kinds[-1] if kinds else ""] * (len(cells) - len(kinds))]
    shown = zip(cells, known, strict=True)
    return f"<tr>{''.join(f'<{tag}{_class(k)}>{escape(c)}</{tag}>' for c, k in shown)}</tr>"


def _class(kind: str) -> str:
    return f' class="{kind}"' if kind else ""
