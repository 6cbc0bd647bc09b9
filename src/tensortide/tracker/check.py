"""Is a run whole?  Every part is verified and told, also of a run that cannot be opened."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tensortide.errors import TensortideError
from tensortide.tracker.history import check_segment
from tensortide.tracker.ledger import Ledger
from tensortide.tracker.state import read_arrays, read_labels, read_model, read_rows


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was verified: what, whether it holds, and how it was seen."""

    what: str
    good: bool
    detail: str


def check_run(path: str | Path) -> Iterator[Finding]:
    """Verify a run from the database file up to the model; stops where nothing more can be read."""
    folder = Path(path)
    findings: list[Finding] = []
    try:
        ledger = Ledger(folder, read_only=True)
    except TensortideError as error:
        yield Finding("ledger", False, str(error))
        return
    with closing(ledger):
        for _ in range(5):
            with ledger.reading():
                findings = [_looked(what, look, ledger) for what, look in _LOOKS]
                seq = _last(ledger)
            if all(f.good for f in findings) or seq == _last(ledger):
                break  # else a writer has tidied its history meanwhile: look again
    yield from findings


def _last(ledger: Ledger) -> Any:
    try:
        return ledger.db.execute("SELECT max(seq) FROM batches").fetchone()
    except sqlite3.Error:
        return None


def _looked(what: str, look: Callable[[Ledger], str], ledger: Ledger) -> Finding:
    try:
        return Finding(what, True, look(ledger))
    except TensortideError as error:
        return Finding(what, False, str(error))
    except (sqlite3.Error, ValueError, KeyError, TypeError, IndexError, AttributeError) as error:
        return Finding(what, False, f"damaged ({type(error).__name__}: {error})")


def _database(ledger: Ledger) -> str:
    problems = [row[0] for row in ledger.db.execute("PRAGMA integrity_check(5)")]
    if problems != ["ok"]:
        raise ValueError("; ".join(problems))
    return f"{ledger.file.stat().st_size:,} bytes, structure intact"


def _batches(ledger: Ledger) -> str:
    rows = ledger.db.execute("SELECT seq, kind, step, report FROM batches ORDER BY seq").fetchall()
    numbers = [row[0] for row in rows]
    if numbers != list(range(1, len(rows) + 1)):
        raise ValueError("their numbers have gaps")
    steps = [row[2] for row in rows if row[1] in ("prepare", "step")]
    if steps != list(range(1, len(steps) + 1)):
        raise ValueError("their steps are not one after the other")
    for row in rows:
        json.loads(row[3])
    facts = ledger.get("facts")
    if (0 if facts is None else facts["n_steps"]) != len(steps):
        raise ValueError("the model has taken another number of steps than the ledger")
    return f"{len(rows):,} lines, {len(steps):,} steps, each once"


def _labels(ledger: Ledger) -> str:
    facts = ledger.get("facts")
    if facts is None:
        return "none yet"
    kinds = ledger.get("modes")["kinds"]
    sums = facts["sums"]["labels"]
    for mode, (kind, size) in enumerate(zip(kinds, facts["shape"], strict=True)):
        read_labels(ledger, mode, kind, size, sums[mode])
    return f"{' x '.join(f'{size:,}' for size in facts['shape'])}, as they were written"


def _factors(ledger: Ledger) -> str:
    facts = ledger.get("facts")
    if facts is None:
        return "none yet"
    for mode in range(len(facts["shape"])):
        if not np.isfinite(read_rows(ledger, mode, facts)).all():
            raise ValueError(f"the factor of mode {mode} holds numbers that are not finite")
    return f"{sum(facts['shape']):,} rows of {facts['rank']} numbers, each bit as it was written"


def _statistics(ledger: Ledger) -> str:
    """Compare the Gram matrices, which were followed step by step, with those of the rows."""
    facts = ledger.get("facts")
    if facts is None:
        return "none yet"
    arrays = read_arrays(ledger, facts)
    followed = arrays["gram_total"] + arrays["gram_error"]
    worst = 0.0
    for mode, matrix in enumerate(followed):
        rows = read_rows(ledger, mode, facts)
        gap = float(np.abs(rows.T @ rows - matrix).max())
        worst = max(worst, gap / max(float(np.abs(matrix).max()), 1e-300))
    if not worst < 1e-9:
        raise ValueError(f"the Gram matrices are off by {worst:.1e} of their size")
    return f"Gram matrices agree with the factors to {worst:.0e}"


def _history(ledger: Ledger) -> str:
    rows = ledger.db.execute("SELECT name, checksum FROM segments ORDER BY seq").fetchall()
    for name, checksum in rows:
        check_segment(ledger, name, checksum)
    return f"{len(rows)} segments, whole" if rows else "none is kept"


def _model(ledger: Ledger) -> str:
    estimator = read_model(ledger)
    return "no data yet" if estimator is None else repr(estimator)


_LOOKS: tuple[tuple[str, Callable[[Ledger], str]], ...] = (
    ("database", _database),
    ("batches", _batches),
    ("labels", _labels),
    ("factors", _factors),
    ("statistics", _statistics),
    ("history", _history),
    ("model", _model),
)
