"""What one commit of a run holds: the change of the model, its history, and its line."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from tensortide.online.info import Info
from tensortide.tracker.batches import Line, last_link, next_number, write_batch
from tensortide.tracker.history import write_history
from tensortide.tracker.state import write_model, write_step
from tensortide.tracker.surprises import write_surprises

if TYPE_CHECKING:
    from tensortide.online.model import Model
    from tensortide.online.plan import Plan
    from tensortide.tracker.ledger import Ledger


def commit_step(ledger: Ledger, model: Model, plan: Plan | None, info: Info, line: Line) -> None:
    """Commit a step that is planned; without one (an empty batch) its line only."""
    with _committing(ledger) as useless:
        seq = next_number(ledger)
        n_records, shape = 0, model.modes.shape
        if plan is not None:
            n_records, shape = len(plan.arrival.values), plan.arrival.new_shape
            write_step(ledger, model, plan)
            useless.extend(write_history(ledger, seq, plan.store, plan))
            if info.surprises and ledger.get("options")["keep_surprises"]:
                write_surprises(ledger, seq, info.surprises)
        kind = "empty" if plan is None else "step"
        write_batch(ledger, kind, info, shape, n_records, line)


def commit_first(ledger: Ledger, model: Model | None, info: Info, line: Line) -> None:
    """Commit a model made from first data, with a line for each step that they hold."""
    with _committing(ledger) as useless:
        for joined in line.earlier:
            write_batch(ledger, "joined", Info(step=0, entries=0), (), 0, joined)
        seq = next_number(ledger)
        if model is not None:
            write_model(ledger, model)
            useless.extend(write_history(ledger, seq, model.store, None))
        shape = () if model is None else model.modes.shape
        kind = "empty" if model is None else "prepare"
        write_batch(ledger, kind, info, shape, info.entries + info.duplicates, line)


def commit_whole(ledger: Ledger, model: Model, kind: str, line: Line) -> None:
    """Commit a model that is another one throughout."""
    with _committing(ledger) as useless:
        seq = next_number(ledger)
        write_model(ledger, model)
        ledger.put("params", ledger.get("params") | {"rank": model.rank})
        useless.extend(write_history(ledger, seq, model.store, None))
        write_batch(ledger, kind, model.nothing(), model.modes.shape, 0, line)


@contextmanager
def _committing(ledger: Ledger) -> Iterator[list[Path]]:
    """Make one transaction, and remove the files that are of no use after it."""
    useless: list[Path] = []
    with ledger.writing():
        yield useless
        last = last_link(ledger)
    ledger.mark_commit(*last)
    for file in useless:
        file.unlink(missing_ok=True)
