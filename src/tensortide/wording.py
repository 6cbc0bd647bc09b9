"""Words for people: with their numbers, in a row, not too long."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Sequence
from typing import Any

#: Arguments of the library that the command line has as options of the same name.
_OPTIONS = (
    "rank", "method", "methods", "modes", "value", "absent", "duplicates", "combine", "loss",
    "prior", "seed", "on_bad", "changed_file", "first", "step_by", "step_rows", "start",
    "hold_out", "steps", "mode", "where", "unknown", "top", "every", "early", "cumulative",
)  # fmt: skip
_NAMES = "|".join((*_OPTIONS, "fibres"))
_ONE = r"(?:'[^']*'|True|False|\d+(?:\.\d+)?|\.\.\.)"
#: An argument with its value; not a part of a path or of a label.
_GIVEN = re.compile(
    rf"(?<![\w/\\'\"-])({_NAMES})=({_ONE}(?:(?:, | or )'[^']*')*)(?![\w/\\]|\.\w)"
    r"(?: \((--[^)]*)\))?"
)
_JUDGED = re.compile(rf"(^|[.:;] )({'|'.join(_OPTIONS)})(?= must )")
_SWITCHES = {"fibres=True": "--keep-fibres", "fibres=False": "--no-fibres"}
#: Sentences that are about Python and say something else in a shell.
_PHRASES = {
    "choose labels of other modes with where=, ask for fewer steps, or raise max_cells above": (
        "choose labels with --where MODE=LABEL, or ask for fewer steps; at most"
    ),
    "`where`": "--where",
    "predict with unknown='forecast'": "predict --unknown forecast",
    "give its labels in place of steps": "say how far with --steps",
    " or a part such as tt.losses.Huber(2.0)": "",
    " or what such a function returns": "",
    "leave fibres out": "leave --keep-fibres out",
}


def counted(number: int, word: str) -> str:
    """Return a number with its word.

    >>> counted(1, "step"), counted(1200, "step")
    ('1 step', '1,200 steps')
    """
    return f"{number:,} {word}{'' if number == 1 else 's'}"


def listed(words: Sequence[str]) -> str:
    """Return words in a row.

    >>> listed(["place", "age", "date"])
    'place, age and date'
    """
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def short(text: str, most: int) -> str:
    """Return a text of `most` characters at most.

    >>> short("a long name", 6)
    'a lon…'
    """
    return text if len(text) <= most else text[: most - 1] + "…"


def written(label: Any) -> str:
    """Return a label as sentences have it: text in quotes, dates and times as they are written.

    >>> written("Kiel"), written(7), written(dt.date(2026, 1, 5))
    ("'Kiel'", '7', '2026-01-05')
    """
    plain = label.item() if hasattr(label, "item") else label
    return str(plain) if isinstance(plain, dt.date) else repr(plain)


def in_options(sentence: str) -> str:
    """Return a sentence of the library in the words of the command line.

    >>> in_options("fibres=True goes with prior='learned'.")
    '--keep-fibres goes with --prior learned.'
    >>> in_options("on_bad must be one of 'stop', 'quarantine', not 'x'.")
    "--on-bad must be one of 'stop', 'quarantine', not 'x'."
    >>> in_options("lake/start=2024/mode=1.csv: label 'first=3'")
    "lake/start=2024/mode=1.csv: label 'first=3'"
    """
    for theirs, ours in _PHRASES.items():
        sentence = sentence.replace(theirs, ours)
    sentence = _GIVEN.sub(_option, sentence)
    return _JUDGED.sub(lambda m: f"{m[1]}--{m[2].replace('_', '-')}", sentence)


def _option(found: re.Match[str]) -> str:
    """Return an argument as an option; where a sentence has the option beside it, that one."""
    name, value, beside = found.groups()
    if beside is not None:
        return beside
    word = _SWITCHES.get(f"{name}={value}")
    return word or f"--{name.replace('_', '-')} {value.replace(chr(39), '')}"
