"""The history of a run whose method keeps it: Arrow segments, each part of one commit.

A step writes what it learned to a file of its own, on the disk before the ledger names it; so
a crash in between leaves a file that no commit knows, which the next writer removes.  Every
64 steps one segment with everything takes the place of all before it.
"""

from __future__ import annotations

import hashlib
import json
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tensortide.arrays import AnyArray
from tensortide.atomic import write_whole
from tensortide.core.tensor.dense_box import DenseBox
from tensortide.data.cells import Cells
from tensortide.data.store import Store
from tensortide.errors import FileError
from tensortide.online.plain_data import history_arrays, history_of
from tensortide.tracker.schema import SEGMENT, insert

if TYPE_CHECKING:
    from tensortide.online.plan import Plan
    from tensortide.tracker.ledger import Ledger

FOLDER = "history"
TOGETHER = 64


def write_history(ledger: Ledger, seq: int, store: Store | None, plan: Plan | None) -> list[Path]:
    """Write what a step adds, or all of `store`; return the files that are of no use then."""
    if store is None:
        return []
    (count,) = ledger.db.execute("SELECT count(*) FROM segments").fetchone()
    if plan is None or count >= TOGETHER:
        names = [row[0] for row in ledger.db.execute("SELECT name FROM segments")]
        ledger.db.execute("DELETE FROM segments")
        _write(ledger, seq, "all", history_arrays(store), {"shape": list(store.entries.shape)})
        return [ledger.folder / FOLDER / name for name in names]
    arrays, facts = _step(plan)
    _write(ledger, seq, "step", arrays, facts)
    return []


def read_history(ledger: Ledger, *, add: bool, decay: float) -> Store:
    """Return the store, as it was when the last step was committed."""
    ledger.verify_sum("segments")
    store: Store | None = None
    rows = ledger.db.execute("SELECT name, kind, checksum FROM segments ORDER BY seq").fetchall()
    for name, kind, checksum in rows:
        arrays, facts = _read(ledger.folder / FOLDER / name, checksum)
        shape = tuple(facts["shape"])
        if kind == "all":
            store = history_of(arrays, shape)
            continue
        if store is None:
            break
        if "retract" in arrays:
            store = store.without(arrays["retract"])
        if "box" in arrays:
            store = store.append(DenseBox(arrays["box"]), facts["along"]).store
        else:
            cells = Cells(
                coords=arrays["coords"], values=arrays["values"], weights=arrays["weights"],
                shape=shape, n_duplicates=0,
            )  # fmt: skip
            store = store.absorb(cells, add=add, decay=decay).store
    if store is None:
        raise FileError(f"{ledger.folder}: the run is damaged: its history has no beginning.")
    return store


def remove_strays(ledger: Ledger) -> list[str]:
    """Delete files that no commit knows, left by a crash, and return their names."""
    known = {row[0] for row in ledger.db.execute("SELECT name FROM segments")}
    folder = ledger.folder / FOLDER
    strays = [f for f in sorted(folder.glob("*")) if f.name not in known] if folder.is_dir() else []
    for stray in strays:
        stray.unlink()
    return [stray.name for stray in strays]


def check_segment(ledger: Ledger, name: str, checksum: str) -> None:
    """Refuse a segment that is missing or damaged."""
    _bytes(ledger.folder / FOLDER / name, checksum)


def _step(plan: Plan) -> tuple[dict[str, AnyArray], dict[str, Any]]:
    """Return what `absorb` needs to do the same again."""
    cells, absorbed = plan.change.cells, plan.change.absorbed
    assert absorbed is not None
    facts: dict[str, Any] = {"shape": list(plan.arrival.new_shape)}
    arrays: dict[str, AnyArray] = {}
    if plan.retract is not None:
        arrays["retract"] = np.ascontiguousarray(plan.retract.astype(np.int32))
    arrived = plan.change.arrived
    if isinstance(arrived, DenseBox) and isinstance(absorbed.store.entries, DenseBox):
        grown = plan.arrival.grown_mode()
        facts["along"] = plan.grown_last if grown is None else grown
        return arrays | {"box": np.ascontiguousarray(arrived.in_order())}, facts
    if plan.arrival.block is not None:  # cells of a block that the store lists one by one
        from tensortide.online.changes import Rules, distinct

        cells = distinct(Rules(), plan.arrival)
    return arrays | {
        "coords": cells.coords, "values": cells.values, "weights": cells.weights,
    }, facts  # fmt: skip


def _write(
    ledger: Ledger, seq: int, kind: str, arrays: dict[str, AnyArray], facts: dict[str, Any]
) -> None:
    import pyarrow as pa

    folder = ledger.folder / FOLDER
    folder.mkdir(exist_ok=True)
    name = f"{seq:010d}-{kind}-{uuid.uuid4().hex[:8]}.arrow"  # no two alike, in any run
    columns, shapes = {}, {}
    for key, array in arrays.items():
        shapes[key] = list(array.shape)
        columns[key] = pa.array([array.ravel()], pa.large_list(pa.from_numpy_dtype(array.dtype)))
    facts = facts | {"shapes": shapes}
    table = pa.table(columns).replace_schema_metadata({"tensortide": json.dumps(facts)})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    data = sink.getvalue().to_pybytes()
    write_whole(folder / name, data, "Nothing of this step was kept.")
    ledger.db.execute(insert("segments", SEGMENT), (seq, name, kind, _digest(data)))
    ledger.sum_up("segments")


def _read(path: Path, checksum: str) -> tuple[dict[str, AnyArray], dict[str, Any]]:
    import pyarrow as pa

    data = _bytes(path, checksum)
    with pa.ipc.open_file(pa.BufferReader(data)) as reader:
        table = reader.read_all()
    facts = json.loads(table.schema.metadata[b"tensortide"])
    arrays = {
        key: np.array(table[key].chunk(0).flatten().to_numpy()).reshape(shape)
        for key, shape in facts["shapes"].items()
    }
    return arrays, facts


def _bytes(path: Path, checksum: str) -> bytes:
    try:
        data = path.read_bytes()
    except OSError as error:
        raise FileError(
            f"{path}: a part of the history cannot be read: {error.strerror}."
        ) from None
    if _digest(data) != checksum:
        raise FileError(f"{path}: this part of the history is damaged.")
    return data


def _digest(data: bytes) -> str:
    return hashlib.blake2b(data, digest_size=16).hexdigest()
