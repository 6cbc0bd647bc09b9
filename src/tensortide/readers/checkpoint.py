"""A model as one file: a zip of plain arrays and one JSON text.  Never a pickle.

The file is written beside the target and renamed over it, so a crash or a full disk
leaves the old file whole.  Every member has a checksum; a damaged, cut or foreign file is
refused with a sentence.  A method without history has no raw value in its file.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import io
import json
import os
import tempfile
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tensortide.core.complete import AnyEntries, Complete
from tensortide.core.entries import Entries
from tensortide.core.types import AnyArray, Shape
from tensortide.data.labels import Labels, NamedLabels, PositionLabels
from tensortide.errors import FileError, InputError

if TYPE_CHECKING:
    from tensortide.estimator import OnlineCP
    from tensortide.model import Model

FORMAT = "tensortide model"
VERSION = 2


def save_model(params: dict[str, Any], model: Model, path: Path) -> None:
    """Write the model; the path holds either the old file or the whole new one."""
    arrays, facts = _contents(params, model)
    try:
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent or Path())
    except OSError as error:
        raise FileError(f"{path}: cannot be written: {error.strerror}.") from None
    try:
        with os.fdopen(handle, "wb") as file:
            with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as bundle:
                bundle.writestr("model.json", json.dumps(facts, indent=1))
                for key, array in arrays.items():
                    with bundle.open(f"{key}.npy", "w", force_zip64=True) as member:
                        np.lib.format.write_array(member, array, allow_pickle=False)
            file.flush()
            os.fsync(file.fileno())
        os.replace(name, path)
    except BaseException as error:
        with contextlib.suppress(OSError):
            os.unlink(name)
        if isinstance(error, OSError):
            raise FileError(f"{path}: cannot be written: {error.strerror}.") from None
        raise


def load(path: str | Path) -> OnlineCP:
    """Read a model that `OnlineCP.save` wrote."""
    file = Path(path)
    try:
        with zipfile.ZipFile(file) as bundle:
            facts = json.loads(bundle.read("model.json"))
            if facts.get("format") != FORMAT:
                raise FileError(f"{file}: is not a Tensortide model.")
            if facts["version"] != VERSION:
                advice = "upgrade" if facts["version"] > VERSION else "fit anew"
                raise FileError(
                    f"{file}: has format version {facts['version']}; this Tensortide reads version "
                    f"{VERSION}, please {advice}."
                )
            arrays = {
                name.removesuffix(".npy"): np.lib.format.read_array(
                    io.BytesIO(bundle.read(name)), allow_pickle=False
                )
                for name in bundle.namelist()
                if name.endswith(".npy")
            }
        return _restored(facts, arrays)
    except FileNotFoundError:
        raise FileError(f"{file}: there is no such file.") from None
    except FileError:
        raise
    except OSError as error:
        raise FileError(f"{file}: cannot be read: {error.strerror or error}.") from None
    except (
        zipfile.BadZipFile,
        AttributeError,
        KeyError,
        ValueError,
        TypeError,
        IndexError,
        EOFError,
        InputError,
        NotImplementedError,  # zipfile's word for a compression it does not know
    ) as error:
        raise FileError(
            f"{file}: is damaged or not a Tensortide model ({type(error).__name__}: "
            f"{str(error).splitlines()[0] if str(error) else 'no detail'})."
        ) from None


def _contents(params: dict[str, Any], model: Model) -> tuple[dict[str, AnyArray], dict[str, Any]]:
    arrays: dict[str, AnyArray] = {}
    kinds, texts = [], {}
    for mode, (labels, rows) in enumerate(zip(model.modes.labels, model.rows(), strict=True)):
        arrays[f"factor_{mode}"] = rows
        kinds.append(labels.kind)
        if labels.kind == "text":
            texts[str(mode)] = labels.array().tolist()
        elif labels.kind != "position":
            arrays[f"labels_{mode}"] = labels.array()
    grams, seen = model.factors.grams, model.seen
    arrays |= {
        "gram_total": grams.total,
        "gram_error": grams.error,
        "gram_sums": grams.sums,
        "seen_registers": seen.registers,
    }
    if model.store is not None:
        entries = model.store.entries
        if isinstance(entries, Complete):
            arrays["box"] = np.ascontiguousarray(entries.in_order())
        else:
            arrays |= {
                "coords": entries.coords(),
                "values": entries.orders[0].values,
                "weights": entries.orders[0].weights,
            }
    arrays |= {f"memory_{name}": array for name, array in model.memory.items()}
    facts = {
        "format": FORMAT,
        "version": VERSION,
        "params": _plain(params),
        "modes": list(model.modes.names),
        "label_kinds": kinds,
        "text_labels": texts,
        "shape": list(model.modes.shape),
        "n_steps": model.n_steps,
        "grown_last": model.grown_last,
        "rank": model.rank,
        "seen": {
            "grown": seen.grown,
            "reported": seen.reported,
            "base": seen.base,
            "full": list(seen.full),
        },
    }
    return arrays, facts


def _plain(params: dict[str, Any]) -> dict[str, Any]:
    """Return the parameters as JSON knows them."""
    from tensortide.methods import describe, recipe_for

    seed = params["seed"]
    if isinstance(seed, np.random.Generator):
        raise InputError("a model whose seed is a Generator cannot be saved; use a number.")
    return params | {
        "method": describe(recipe_for(params["method"])),
        "rank": int(params["rank"]),
        "threads": None if params["threads"] is None else int(params["threads"]),
        "seed": int(seed),
        "modes": None if params["modes"] is None else list(params["modes"]),
    }


def _restored(facts: dict[str, Any], arrays: dict[str, AnyArray]) -> OnlineCP:
    from tensortide.core.factors import Factors, RunningGrams
    from tensortide.data.modes import Modes
    from tensortide.data.sketch import DistinctCells
    from tensortide.data.store import Store
    from tensortide.estimator import OnlineCP
    from tensortide.incoming import Rules
    from tensortide.info import Info
    from tensortide.methods import from_description
    from tensortide.model import Model

    params = facts["params"] | {"method": from_description(facts["params"]["method"])}
    estimator = OnlineCP(**params)
    shape = tuple(facts["shape"])
    labels = [_labels(facts, arrays, mode) for mode in range(len(shape))]
    rows = [np.array(arrays[f"factor_{mode}"], np.float64) for mode in range(len(shape))]
    if any(r.shape[1:] != (facts["rank"],) for r in rows) or params["rank"] != facts["rank"]:
        raise ValueError("factors and rank do not agree")
    if [len(r) for r in rows] != list(shape) or [len(known) for known in labels] != list(shape):
        raise ValueError("factors, labels and shape do not agree")
    grams = RunningGrams(arrays["gram_total"], arrays["gram_error"], arrays["gram_sums"])
    store = None
    if params["method"].keeps_history:
        store = Store(_history(arrays, shape))
    seen = DistinctCells(
        arrays["seen_registers"], **facts["seen"] | {"full": tuple(facts["seen"].get("full", ()))}
    )
    rules = Rules(params["absent"] == "zero", params["duplicates"], params["combine"] == "add")
    estimator._model = Model(
        params["method"],
        rules,
        Modes(facts["modes"], labels),
        Factors(rows, grams),
        store,
        seen,
        facts["n_steps"],
        facts["grown_last"],
        {
            name.removeprefix("memory_"): array
            for name, array in arrays.items()
            if name.startswith("memory_")
        },
    )
    estimator.info_ = Info(step=facts["n_steps"], entries=0)
    estimator._used = estimator.get_params()
    return estimator


def _history(arrays: dict[str, AnyArray], shape: Shape) -> AnyEntries:
    if "box" in arrays:
        if arrays["box"].shape != shape:
            raise ValueError("history and shape do not agree")
        return Complete(arrays["box"])
    return Entries.listed(arrays["coords"], arrays["values"], shape, arrays["weights"])


def _labels(facts: dict[str, Any], arrays: dict[str, AnyArray], mode: int) -> Labels:
    kind = facts["label_kinds"][mode]
    if kind == "position":
        return PositionLabels(facts["shape"][mode])
    if kind == "text":
        return NamedLabels(kind, facts["text_labels"][str(mode)])
    values: list[Any] = arrays[f"labels_{mode}"].tolist()
    if kind.startswith("datetime") and not all(isinstance(v, dt.datetime) for v in values):
        raise ValueError("labels are not of the kind they should be")
    return NamedLabels(kind, values)
