"""`tensortide methods`: the registry."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table

from tensortide.methods import METHODS


def list_methods() -> None:
    """Print a line for each method: what it keeps, what it can take, and what it is."""
    table = Table(box=None, pad_edge=False)
    table.add_column("method", no_wrap=True)
    for header in ("keeps\nhistory", "new\nlabels in", "late and\ncorrected", "holes"):
        table.add_column(header, no_wrap=True)
    table.add_column("what it is")
    for name, make in METHODS.items():
        method = make()
        limits = method.limits
        first_line = (make.__doc__ or "").splitlines()[0]
        table.add_row(
            name,
            _yes(method.keeps_history),
            "one mode" if limits.one_mode else "any modes",
            _yes(not limits.new_cells),
            _yes(not limits.complete),
            first_line.partition(": ")[2] or first_line,
        )
    Console().print(table)


def _yes(holds: bool) -> str:
    return "yes" if holds else "no"
