"""Words with their numbers."""

from __future__ import annotations


def counted(number: int, word: str) -> str:
    """Return a number with its word.

    >>> counted(1, "step"), counted(1200, "step")
    ('1 step', '1,200 steps')
    """
    return f"{number:,} {word}{'' if number == 1 else 's'}"
