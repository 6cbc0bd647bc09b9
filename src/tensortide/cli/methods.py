"""`tensortide methods`: the registry."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table

from tensortide.methods import METHODS


def list_methods() -> None:
    """Print a line for each method."""
    table = Table("method", "keeps history", "what it is", box=None, pad_edge=False)
    for name, make in METHODS.items():
        first_line = (make.__doc__ or "").splitlines()[0]
        table.add_row(name, "yes" if make().keeps_history else "no", first_line)
    Console().print(table)
