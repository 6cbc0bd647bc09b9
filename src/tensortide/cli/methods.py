"""`tensortide methods`: the registry."""

from __future__ import annotations

import json
from typing import Any

from rich.console import Console
from rich.table import Table

from tensortide.methods.registry import METHODS


def list_methods(*, as_json: bool) -> None:
    """Print what each method can take and keeps, then what it is."""
    found = [_facts(name) for name in METHODS]
    if as_json:
        print(json.dumps(found))
        return
    able = Table(box=None, pad_edge=False)
    for header in ("method", "modes", "new labels in", "late, corrected", "holes", "history"):
        able.add_column(header, no_wrap=True)
    what = Table(box=None, pad_edge=False, show_header=False)
    what.add_column(no_wrap=True)
    what.add_column()
    for facts in found:
        able.add_row(
            facts["method"],
            str(facts["modes"] or "any"),
            "one mode, every step" if facts["one_mode"] else "any modes",
            _yes(facts["old_cells"]),
            _yes(facts["holes"]),
            "kept" if facts["history"] else "no",
        )
        what.add_row(facts["method"], facts["what"])
    console = Console()
    console.print(able)
    console.print()
    console.print(what)


def _facts(name: str) -> dict[str, Any]:
    """Return what a method can take and keeps, as plain data."""
    make = METHODS[name]
    method = make()
    limits = method.limits
    first_line = (make.__doc__ or "").splitlines()[0]
    return {
        "method": name,
        "modes": 3 if limits.third_order else None,
        "one_mode": limits.one_mode,
        "old_cells": not limits.new_cells,
        "holes": not limits.complete,
        "history": method.keeps_history,
        "what": first_line.partition(": ")[2] or first_line,
    }


def _yes(holds: bool) -> str:
    return "yes" if holds else "no"
