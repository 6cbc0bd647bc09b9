"""What a run has seen and how well it fits, as plain data for people, machines and the page."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tensortide.core.losses.standard import loss_for
from tensortide.methods.registry import by_name
from tensortide.tracker import history, ledger, lock, mark, quarantine

if TYPE_CHECKING:
    from tensortide.tracker.tracker import Tracker

RECENT = 20


def own_files(folder: Path) -> list[Path]:
    """Return the files of a run; its folder may hold others."""
    names = (f"{ledger.FILE}*", f"{lock.FILE}*", mark.FILE, quarantine.FILE, f"{history.FOLDER}/*")
    return [file for name in names for file in folder.glob(name) if file.is_file()]


def summarise(tracker: Tracker, batches: Sequence[dict[str, Any]] | None = None) -> dict[str, Any]:
    """Return the facts of a run; `batches` are its lines, where they have been read already."""
    batches = tracker.batches().to_pylist() if batches is None else batches
    steps = [b for b in batches if b["kind"] in ("prepare", "step")]
    errors = [b["prequential_error"] for b in steps if b["prequential_error"] is not None]
    recent = errors[-RECENT:]
    learned = [b["learned_error"] for b in steps if b["learned_error"] is not None][-RECENT:]
    params = tracker.settled
    sources: dict[str, int] = {}
    for batch in steps:
        if batch["source"]:
            name = batch["source"]
            sources[name] = sources.pop(name, 0) + 1  # the latest one last
    modes: list[dict[str, Any]] = []
    entries, exact, outlook = 0, True, None
    if tracker.fitted:
        model = tracker.model
        inner = model._require_model()
        modes = [
            {"name": name, "kind": labels.kind, "size": len(labels)}
            for name, labels in zip(inner.modes.names, inner.modes.labels, strict=True)
        ]
        line = inner.ahead.line
        outlook = None if line is None else inner.modes.names[line.mode]
        seen = inner.seen
        entries = model.n_entries_
        exact = inner.store is not None or seen.grown == seen.reported
    return {
        "run": str(tracker.path),
        "method": str(by_name(params["method"])),
        "rank": params["rank"],
        "absent": params["absent"],
        "duplicates": params["duplicates"],
        "combine": params["combine"],
        "loss": loss_for(params["loss"]).name,
        "prior": params["prior"],
        "fibres": params["fibres"],
        "outlook": outlook,
        "seed": params["seed"],
        "value": None if params["duplicates"] == "count" else params["value"],
        "modes": modes,
        "steps": len(steps),
        "records": sum(b["records"] for b in batches),
        "bad": sum(b["bad"] for b in batches),
        "entries": entries,
        "exact": exact,
        "fitness": 1.0 - sum(recent) / len(recent) if recent else None,
        "fitness_steps": len(recent),
        "learned": 1.0 - sum(learned) / len(learned) if learned else None,
        "duplicates_combined": sum(b["duplicates"] or 0 for b in batches),
        "first": steps[0]["at"][:19].replace("T", " ") if steps else None,
        "last": steps[-1]["at"][:19].replace("T", " ") if steps else None,
        "sources": [{"name": name, "steps": count} for name, count in sources.items()],
        "bytes": sum(f.stat().st_size for f in own_files(tracker.path)),
    }
