"""`tensortide methods`: the registry."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table

from tensortide.methods import METHODS


def list_methods() -> None:
    """Print what each method can take and keeps, then what it is."""
    able = Table(box=None, pad_edge=False)
    for header in ("method", "modes", "new labels in", "late, corrected", "holes", "history"):
        able.add_column(header, no_wrap=True)
    what = Table(box=None, pad_edge=False, show_header=False)
    what.add_column(no_wrap=True)
    what.add_column()
    for name, make in METHODS.items():
        method = make()
        limits = method.limits
        able.add_row(
            name,
            "3" if limits.third_order else "any",
            "one mode, every step" if limits.one_mode else "any modes",
            _yes(not limits.new_cells),
            _yes(not limits.complete),
            "kept" if method.keeps_history else "no",
        )
        first_line = (make.__doc__ or "").splitlines()[0]
        what.add_row(name, first_line.partition(": ")[2] or first_line)
    console = Console()
    console.print(able)
    console.print()
    console.print(what)


def _yes(holds: bool) -> str:
    return "yes" if holds else "no"
