"""`tensortide info`, `components` and `check`: read a run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from tensortide.cli.table_file import tell_written
from tensortide.errors import FileError
from tensortide.tracker.ledger import FILE
from tensortide.tracker.summary import summarise
from tensortide.tracker.tracker import Tracker
from tensortide.tracker.verify import check_run
from tensortide.wording import counted

if TYPE_CHECKING:
    import pyarrow as pa


def show_info(run: Path, *, as_json: bool) -> None:
    """Print what the run has seen and how well it fits."""
    with Tracker.open(run, read_only=True) as tracker:
        facts = summarise(tracker)
    if as_json:
        print(json.dumps(facts))
        return
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    table.add_column(style="bold")
    table.add_column(overflow="fold")
    for name, value in _rows(facts):
        table.add_row(name, value)
    Console(highlight=False).print(table)


def _rows(facts: dict[str, Any]) -> list[tuple[str, str]]:
    modes = ", ".join(f"{m['size']:,} {m['name']} ({m['kind']})" for m in facts["modes"])
    rows = [
        ("run", facts["run"]),
        ("model", f"{facts['method']}, rank {facts['rank']}, loss {facts['loss']}"),
        ("prior", facts["prior"]),
        ("absent", facts["absent"]),
        ("fibres", "kept" if facts["fibres"] else "not kept"),
        ("outlook", _outlook(facts)),
        ("labels", modes or "none yet"),
        ("steps", f"{facts['steps']:,}"),
        ("records", f"{facts['records']:,}" + (f", {facts['bad']:,} bad" if facts["bad"] else "")),
    ]
    if facts["duplicates_combined"]:
        combined = (
            f"{facts['duplicates_combined']:,} of the same cell and step ({facts['duplicates']})"
        )
        rows.append(("combined", combined))
    if facts["steps"]:
        rows.append(("cells seen", f"{'' if facts['exact'] else 'about '}{facts['entries']:,}"))
    if facts["fitness"] is not None:
        over = f"last {counted(facts['fitness_steps'], 'step')}"
        after = "" if facts["learned"] is None else f", {facts['learned']:.3f} after ({over})"
        rows.append(("fitness", f"{facts['fitness']:.3f} before learning{after}"))
    if facts["first"]:
        rows.append(("time", f"{facts['first']} to {facts['last']}"))
    rows += [
        ("source", f"{s['name']}: {counted(s['steps'], 'step')}") for s in facts["sources"][-5:]
    ]
    if len(facts["sources"]) > 5:
        rows.append(("", f"and {len(facts['sources']) - 5} more sources before"))
    rows.append(("on the disk", f"{facts['bytes'] / 1e6:.1f} MB"))
    return rows


def _outlook(facts: dict[str, Any]) -> str:
    """Say along which mode can be forecast."""
    if facts["outlook"] is not None:
        return f"along {facts['outlook']}"
    if facts["prior"] == "paper":
        return "none with the paper's prior"
    return "none: no mode has dates, times or numbers" if facts["modes"] else "none yet"


def show_components(run: Path, *, top: int, as_json: bool, out: Path | None) -> None:
    """Print who is in each component."""
    with Tracker.open(run, read_only=True) as tracker:
        model = tracker.model
    found = model.components(top=top)
    if out is not None:
        tell_written(found, out)
        return
    if as_json:
        print(json.dumps(found.to_pylist()))
        return
    print_components(found, Console(highlight=False))


def print_components(found: pa.Table, console: Console) -> None:
    """Print one row per component, one column per mode."""
    rows = found.to_pylist()
    modes = list(dict.fromkeys(r["mode"] for r in rows))
    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    table.add_column("", justify="right")
    table.add_column("weight", justify="right", no_wrap=True)
    for mode in modes:
        table.add_column(mode, overflow="fold")
    for component in dict.fromkeys(r["component"] for r in rows):
        mine = [r for r in rows if r["component"] == component]
        cells = [
            ", ".join(f"{r['label']} {r['loading']:.2f}" for r in mine if r["mode"] == mode)
            for mode in modes
        ]
        table.add_row(str(component + 1), f"{mine[0]['weight']:,.4g}", *cells)
    console.print(table)


def check(run: Path, *, as_json: bool) -> None:
    """Verify a run and tell; exit code 1 if anything is wrong."""
    if not (run / FILE).is_file():
        raise FileError(f"{run}: there is no run here (no {FILE}).")
    good = True
    for finding in check_run(run):
        good &= finding.good
        if as_json:
            facts = {"what": finding.what, "good": finding.good, "detail": finding.detail}
            print(json.dumps(facts))
        else:
            print(f"{'ok ' if finding.good else 'BAD'} {finding.what:10s} {finding.detail}")
    if not good:
        if not as_json:
            print(f"{run}: is damaged; go back to a copy, or begin anew from the sources.")
        raise SystemExit(1)
