"""The model in the ledger: written whole at the start, then only what a step has touched."""

from __future__ import annotations

import datetime as dt
import re
import sqlite3
import zlib
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tensortide.arrays import AnyArray, Floats, Positions
from tensortide.core.tensor.fibres import NUMBERS
from tensortide.data.labels import Labels, NamedLabels, PositionLabels
from tensortide.errors import FileError, InputError
from tensortide.online.plain_data import facts_of, read_params, rebuild, small_arrays
from tensortide.tracker.history import read_history
from tensortide.tracker.schema import insert

if TYPE_CHECKING:
    from tensortide.core.steps.outcome import Journal, Outcome
    from tensortide.core.tensor.fibres import FibreChange, Fibres
    from tensortide.online.estimator import OnlineCP
    from tensortide.online.model import Model
    from tensortide.online.plan import Plan
    from tensortide.tracker.ledger import Ledger

_ARRAY = ("name", "dtype", "shape", "data")
_TYPE = re.compile(r"[<>|=][fiu][1248]")
_MODE = 1 << 40  # the place of a block of rows is its number plus this for each mode before


def write_model(ledger: Ledger, model: Model) -> None:
    """Write all of a model: after preparation, a change of rank, or retirement."""
    for table in ("factors", "labels", "arrays"):
        ledger.db.execute(f"DELETE FROM {table}")
    order, fibres = model.modes.order, model.ahead.fibres
    sums: dict[str, Any] = {"factors": [0] * order, "labels": [0] * order}
    held = zip(model.rows(), model.factors.precisions(), strict=True)
    kept = [_beside(rows, told) for rows, told in held]
    if fibres is not None:
        kept.append(_beside(fibres.keys, fibres.numbers))
        sums["factors"].append(0)
    for place, rows in enumerate(kept):
        everywhere = np.arange(len(rows))
        _put_rows(ledger.db, place, everywhere, rows, (), len(rows))
        sums["factors"][place] = fingerprint(everywhere, rows)
    for mode, labels in enumerate(model.modes.labels):
        if isinstance(labels, NamedLabels):
            known = [labels.label(i) for i in range(len(labels))]
            sums["labels"][mode] = _put_labels(ledger.db, mode, 0, known, labels.kind)
    arrays = small_arrays(model.factors.grams, model.seen, model.memory, model.dispersion)
    sums["arrays"] = _put_arrays(ledger.db, arrays)
    facts = facts_of(model.modes.shape, model.n_steps, model.grown_last, model.rank, model.seen)
    facts |= _widths(model.factors.width, fibres)
    ledger.put("facts", facts | {"sums": sums})
    kinds = [labels.kind for labels in model.modes.labels]
    ledger.put("modes", {"names": list(model.modes.names), "kinds": kinds})


def write_step(ledger: Ledger, model: Model, plan: Plan) -> None:
    """Write what a planned step changes: touched rows, new labels, statistics."""
    outcome, arrival = plan.outcome, plan.arrival
    sums = ledger.get("facts")["sums"]
    before, told = outcome.before, model.factors.precisions()
    parts = 2 if model.learned else 1
    for mode, labels in enumerate(model.modes.labels):
        _replace_rows(
            ledger.db, mode, sums["factors"],
            (_places(before.positions[mode], len(before.rows[mode])), _kept(before, mode)),
            (_places(outcome.positions[mode], len(outcome.rows[mode])), _kept(outcome, mode)),
            (model.rows()[mode], told[mode])[:parts], arrival.new_shape[mode],
        )  # fmt: skip
        if isinstance(labels, NamedLabels):
            fresh = _put_labels(
                ledger.db, mode, len(labels), list(arrival.fresh[mode]), labels.kind
            )
            sums["labels"][mode] = (sums["labels"][mode] + fresh) % 2**64
    if plan.fibres is not None and plan.memory_of_fibres is not None:
        _write_fibres(ledger, model, plan.fibres, plan.memory_of_fibres, sums["factors"])
    arrays = small_arrays(outcome.grams, plan.seen, outcome.memory, plan.dispersion)
    sums["arrays"] = _put_arrays(ledger.db, arrays)
    facts = facts_of(arrival.new_shape, plan.step, plan.grown_last, model.rank, plan.seen)
    facts |= _widths(model.factors.width, plan.memory_of_fibres, plan.fibres)
    ledger.put("facts", facts | {"sums": sums})


def _write_fibres(
    ledger: Ledger, model: Model, change: FibreChange, fibres: Fibres, sums: list[int]
) -> None:
    """Write the fibres that a step touches; all, where they are of another mode than before."""
    place, known = model.modes.order, change.places < fibres.size
    if model.ahead.fibres is not fibres:
        ledger.db.execute("DELETE FROM factors WHERE place >= ?", (place * _MODE,))
        everywhere, rows = np.arange(fibres.size), _beside(fibres.keys, fibres.numbers)
        _put_rows(ledger.db, place, everywhere, rows, (), len(rows))
        sums[place] = fingerprint(everywhere, rows)
    _replace_rows(
        ledger.db, place, sums,
        (change.places[known], _beside(change.keys, change.before)[known]),
        (change.places, _beside(change.keys, change.after)), (fibres.keys, fibres.numbers),
        change.size,
    )  # fmt: skip


def _replace_rows(
    db: sqlite3.Connection,
    place: int,
    sums: list[int],
    old: tuple[Positions, Floats],
    new: tuple[Positions, Floats],
    known: Sequence[AnyArray],
    size: int,
) -> None:
    """Write touched rows and bring their checksum up to date."""
    _put_rows(db, place, *new, known, size)
    sums[place] = (sums[place] + fingerprint(*new) - fingerprint(*old)) % 2**64


def _beside(rows: AnyArray, more: Floats) -> Floats:
    """Return what is written of rows: two tables side by side."""
    return np.hstack([np.asarray(rows, np.float64), more])


def _kept(state: Journal | Outcome, mode: int) -> Floats:
    """Return rows and their precisions side by side."""
    rows = state.rows[mode]
    return rows if state.precisions is None else _beside(rows, state.precisions[mode])


def _widths(width: int, fibres: Fibres | None, change: FibreChange | None = None) -> dict[str, Any]:
    """Return what a reader has to know about rows: numbers of a precision, and fibres."""
    if fibres is None:
        return {"width": width}
    size = fibres.size if change is None else change.size
    return {"width": width, "fibres": {"mode": fibres.mode, "size": size}}


def read_model(ledger: Ledger) -> OnlineCP | None:
    """Return the estimator as the ledger and the history have it; None before the first data."""
    facts = ledger.get("facts")
    if facts is None:
        return None
    try:
        modes = ledger.get("modes")
        facts |= {"params": ledger.get("params"), "modes": modes["names"]}
        params = read_params(facts["params"])
        adds, decay = params["combine"] == "add", params["method"].entry_decay
        rank, order = facts["rank"], len(facts["shape"])
        kept = [read_rows(ledger, mode, facts) for mode in range(order)]
        arrays = read_arrays(ledger, facts) | read_beside(ledger, kept, facts)
        rows = [np.ascontiguousarray(found[:, :rank]) for found in kept]
        labels = [
            read_labels(ledger, mode, kind, size, facts["sums"]["labels"][mode])
            for mode, (kind, size) in enumerate(zip(modes["kinds"], facts["shape"], strict=True))
        ]
        return rebuild(
            facts, labels, rows, arrays, lambda: read_history(ledger, add=adds, decay=decay)
        )
    except (AttributeError, KeyError, IndexError, TypeError, ValueError) as error:
        raise FileError(
            f"{ledger.folder}: the run is damaged ({type(error).__name__}: {error}); "
            "`tensortide check` tells more."
        ) from None


def read_beside(
    ledger: Ledger, kept: Sequence[Floats], facts: dict[str, Any]
) -> dict[str, AnyArray]:
    """Return the precisions beside rows, and the fibres, by the names that files have for them."""
    found: dict[str, AnyArray] = {}
    if facts.get("width", 0):
        for mode, rows in enumerate(kept):
            found[f"precision_{mode}"] = np.ascontiguousarray(rows[:, facts["rank"] :])
    if "fibres" in facts:
        order = len(facts["shape"])
        rows = read_rows(ledger, order, facts)
        found["fibre_keys"] = rows[:, : order - 1].astype(np.int32)
        found["fibre_numbers"] = np.ascontiguousarray(rows[:, order - 1 :])
    return found


def read_rows(ledger: Ledger, place: int, facts: dict[str, Any]) -> Floats:
    """Return the rows of a mode (or the fibres) and what stands beside them, each bit as written.

    Refuses what was not written this way.
    """
    found = ledger.db.execute(
        "SELECT rows FROM factors WHERE place >= ? AND place < ? ORDER BY place",
        (place * _MODE, (place + 1) * _MODE),
    ).fetchall()
    data = b"".join(block for (block,) in found)
    order = len(facts["shape"])
    what = f"the factor of mode {place}" if place < order else "the memory of fibres"
    if place < order:
        size, width = facts["shape"][place], facts["rank"] + facts.get("width", 0)
    else:
        size, width = facts["fibres"]["size"], order - 1 + NUMBERS
    if len(data) != 8 * size * width or len(found) != -(-size // block_size(width)):
        raise ValueError(f"{what} has not the size it should have")
    rows = np.frombuffer(data).reshape(size, width)
    if fingerprint(np.arange(len(rows)), rows) != facts["sums"]["factors"][place]:
        raise ValueError(f"{what} does not have the checksum it should have")
    return rows.copy()


def read_labels(ledger: Ledger, mode: int, kind: str, size: int, checksum: int) -> Labels:
    """Return the labels of a mode; refuse them if they are not what was written."""
    if kind == "position":
        return PositionLabels(size)
    rows = ledger.db.execute("SELECT label FROM labels WHERE mode = ? ORDER BY position", (mode,))
    found = [label for (label,) in rows]
    if len(found) != size or label_sum(0, found) % 2**64 != checksum:
        raise ValueError(f"the labels of mode {mode} are not those that were written")
    read = _READ.get(kind)
    try:
        return NamedLabels(kind, found if read is None else [read(label) for label in found])
    except InputError as error:
        raise ValueError(str(error)) from None


def read_arrays(ledger: Ledger, facts: dict[str, Any]) -> dict[str, AnyArray]:
    """Return the small statistics; refuse them if they are not what was written."""
    rows = ledger.db.execute(f"SELECT {', '.join(_ARRAY)} FROM arrays").fetchall()
    if not all(_TYPE.fullmatch(dtype) for _, dtype, _, _ in rows):  # NumPy would parse any text
        raise ValueError("a statistic is of an unknown type")
    found = {
        name: np.frombuffer(data, np.dtype(dtype)).reshape([int(n) for n in shape.split()]).copy()
        for name, dtype, shape, data in rows
    }
    sums = {name: zlib.crc32(array.tobytes()) for name, array in found.items()}
    # a type or a shape can be written in several ways: only one of them was
    if sums != facts["sums"]["arrays"] or list(map(_array_row, found.items())) != rows:
        raise ValueError("the statistics are not those that were written")
    return found


def _array_row(item: tuple[str, AnyArray]) -> tuple[str, str, str, bytes]:
    name, array = item
    return name, array.dtype.str, " ".join(map(str, array.shape)), array.tobytes()


def label_sum(first: int, stored: Iterable[Any]) -> int:
    """Return a checksum of labels and their positions that adds up over parts."""
    return sum(
        zlib.crc32(f"{position} {label}".encode()) for position, label in enumerate(stored, first)
    )


def fingerprint(positions: Positions, rows: Floats) -> int:
    """Return a checksum of rows and their positions, exact to the bit, that adds up over rows.

    >>> rows = np.array([[1.0, 2.0], [3.0, 4.0]])
    >>> parts = [fingerprint(np.array([i]), rows[i : i + 1]) for i in (0, 1)]
    >>> fingerprint(np.arange(2), rows) == sum(parts) % 2**64
    True
    """
    bits = np.ascontiguousarray(rows).view(np.uint64)
    mixed = positions.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    for column in range(bits.shape[1]):
        mixed = (mixed ^ bits[:, column]) * np.uint64(0xBF58476D1CE4E5B9)
        mixed ^= mixed >> np.uint64(29)
    return int(mixed.sum(dtype=np.uint64))


def _places(positions: Positions | None, n_rows: int) -> Positions:
    return np.arange(n_rows) if positions is None else positions


def block_size(width: int) -> int:
    """Return how many neighbouring rows are written together: as many as fit a page."""
    return max(1, 100 // width)


def _put_rows(
    db: sqlite3.Connection,
    mode: int,
    places: Positions,
    rows: Floats,
    known: Sequence[AnyArray],
    size: int,
) -> None:
    """Write the blocks that hold touched rows; their other rows are as in `known`, side by side."""
    rank = rows.shape[1]
    height = block_size(rank)
    blocks = np.unique(places // height)
    within = (blocks[:, None] * height + np.arange(height)).ravel()
    content = np.zeros((len(within), rank))
    if known:
        old = within < len(known[0])
        held = [part[within[old]] for part in known]
        content[old] = held[0] if len(held) == 1 else np.hstack(held)
    content[np.searchsorted(blocks, places // height) * height + places % height] = rows
    data, step = content.tobytes(), 8 * height * rank
    ends = np.minimum(blocks * height + height, size) - blocks * height
    db.executemany(
        insert("factors", ("place", "rows"), "INSERT OR REPLACE"),
        (
            (mode * _MODE + block, data[i * step : i * step + 8 * rank * end])
            for i, (block, end) in enumerate(zip(blocks.tolist(), ends.tolist(), strict=True))
        ),
    )


def _put_labels(
    db: sqlite3.Connection, mode: int, first: int, labels: Sequence[Any], kind: str
) -> int:
    """Append labels and return their checksum."""
    dated = kind.startswith("date")
    stored = [label.isoformat() if dated else label for label in labels]
    if kind == "boolean":
        stored = [int(label) for label in stored]
    db.executemany(
        insert("labels", ("mode", "position", "label")),
        ((mode, position, label) for position, label in enumerate(stored, first)),
    )
    return label_sum(first, stored)


def _put_arrays(db: sqlite3.Connection, arrays: dict[str, AnyArray]) -> dict[str, int]:
    """Replace the statistics and return their checksums; what is no longer known goes away."""
    db.execute(
        f"DELETE FROM arrays WHERE name NOT IN ({', '.join('?' * len(arrays))})", list(arrays)
    )
    db.executemany(insert("arrays", _ARRAY, "INSERT OR REPLACE"), map(_array_row, arrays.items()))
    return {name: zlib.crc32(array.tobytes()) for name, array in arrays.items()}


_READ: dict[str, Callable[[Any], Any]] = {
    "boolean": bool,
    "date": dt.date.fromisoformat,
    "datetime": dt.datetime.fromisoformat,
    "datetime UTC": dt.datetime.fromisoformat,
}
