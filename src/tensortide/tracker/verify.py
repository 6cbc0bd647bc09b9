"""Is a run whole?  Every part is verified and told, also of a run that cannot be opened."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tensortide.errors import TensortideError
from tensortide.tracker.batches import verify_chain
from tensortide.tracker.history import check_segment
from tensortide.tracker.ledger import Ledger
from tensortide.tracker.mark import FILE as MARK
from tensortide.tracker.mark import read_mark
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
                findings = [_look(what, look, ledger) for what, look in _LOOKS]
                seq = _last(ledger)
            if all(f.good for f in findings) or seq == _last(ledger):
                break  # else a writer has tidied its history meanwhile: look again
    yield from findings


def _last(ledger: Ledger) -> Any:
    try:
        return ledger.db.execute("SELECT max(seq) FROM batches").fetchone()
    except sqlite3.Error:
        return None


def _look(what: str, look: Callable[[Ledger], str], ledger: Ledger) -> Finding:
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
    count = verify_chain(ledger)
    rows = ledger.db.execute("SELECT kind, step FROM batches ORDER BY seq")
    steps = [step for kind, step in rows if kind in ("prepare", "step")]
    if steps != list(range(1, len(steps) + 1)):
        raise ValueError("their steps are not one after the other")
    facts = ledger.get("facts")
    if (0 if facts is None else facts["n_steps"]) != len(steps):
        raise ValueError("the model has taken another number of steps than the ledger")
    if (ledger.folder / MARK).exists() and read_mark(ledger.folder) is None:
        raise ValueError(f"the mark of the last commit ({MARK}) is damaged; delete it to go on")
    return f"{count:,} lines, {len(steps):,} steps, each once, linked from first to last"


def _settings(ledger: Ledger) -> str:
    """Read all that the run was begun with: its checksums are verified on the way."""
    keys = [key for (key,) in ledger.db.execute("SELECT key FROM meta ORDER BY key")]
    for key in keys:
        ledger.get(key)
    lost = {"format", "version", "params", "options", "sums"} - set(keys)
    if lost:
        raise ValueError(f"{', '.join(sorted(lost))} lost")
    return f"{len(keys)} entries, as they were written"


def _surprises(ledger: Ledger) -> str:
    ledger.verify_sum("surprises")
    (count,) = ledger.db.execute("SELECT count(*) FROM surprises").fetchone()
    return f"{count} kept, as they were written" if count else "none is kept"


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
    for mode in range(len(facts["shape"]) + ("fibres" in facts)):
        if not np.isfinite(read_rows(ledger, mode, facts)).all():
            raise ValueError(f"rows at {mode} hold numbers that are not finite")
    width = facts["rank"] + facts.get("width", 0)
    return f"{sum(facts['shape']):,} rows of {width} numbers, each bit as it was written"


def _statistics(ledger: Ledger) -> str:
    """Compare the Gram matrices, which were followed step by step, with those of the rows."""
    facts = ledger.get("facts")
    if facts is None:
        return "none yet"
    arrays = read_arrays(ledger, facts)
    followed = arrays["gram_total"] + arrays["gram_error"]
    grams = []
    for mode in range(len(followed)):
        rows = read_rows(ledger, mode, facts)[:, : facts["rank"]]
        grams.append(rows.T @ rows)
    # of a model that is zero rows fade to nothing, and what they were rounded to stays
    zero = not all(gram.any() for gram in grams)
    least = 1e-9 * max(float(np.abs(gram).max()) for gram in grams) if zero else 1e-300
    worst = 0.0
    for gram, matrix in zip(grams, followed, strict=True):
        gap = float(np.abs(gram - matrix).max())
        worst = max(worst, gap / max(float(np.abs(matrix).max()), least))
    if not worst < 1e-9:
        raise ValueError(f"the Gram matrices are off by {worst:.1e} of their size")
    return f"Gram matrices agree with the factors to {worst:.0e}"


def _history(ledger: Ledger) -> str:
    ledger.verify_sum("segments")
    rows = ledger.db.execute("SELECT name, checksum FROM segments ORDER BY seq").fetchall()
    for name, checksum in rows:
        check_segment(ledger, name, checksum)
    return f"{len(rows)} segments, whole" if rows else "none is kept"


def _model(ledger: Ledger) -> str:
    estimator = read_model(ledger)
    return "no data yet" if estimator is None else repr(estimator)


_LOOKS: tuple[tuple[str, Callable[[Ledger], str]], ...] = (
    ("database", _database),
    ("settings", _settings),
    ("batches", _batches),
    ("labels", _labels),
    ("factors", _factors),
    ("statistics", _statistics),
    ("history", _history),
    ("surprises", _surprises),
    ("model", _model),
)
