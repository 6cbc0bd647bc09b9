"""Words for people: with their numbers, in a row, not too long."""

from __future__ import annotations

from collections.abc import Sequence


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
