"""A model as one file: a zip of plain arrays and one JSON text.  Never a pickle.

A crash or a full disk leaves the old file whole.  Every member has a checksum; a damaged, cut or
foreign file is refused with a sentence.  A method without history has no raw value in its file.
"""

from __future__ import annotations

import datetime as dt
import json
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tensortide.arrays import AnyArray
from tensortide.atomic import writing
from tensortide.data.labels import DTYPES, Labels, NamedLabels, PositionLabels
from tensortide.errors import FileError
from tensortide.online.plain_checks import check_facts, check_texts
from tensortide.online.plain_data import (
    facts_of,
    history_arrays,
    history_of,
    plain_params,
    rebuild,
    small_arrays,
)
from tensortide.online.saved_members import read_arrays, read_facts

if TYPE_CHECKING:
    from tensortide.online.estimator import OnlineCP
    from tensortide.online.model import Model

FORMAT = "tensortide model"
VERSION = 2


def save_model(params: dict[str, Any], model: Model, path: Path) -> None:
    """Write the model; the path holds either the old file or the whole new one."""
    arrays, facts = _contents(params, model)
    with writing(path) as file, zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as bundle:
        bundle.writestr("model.json", json.dumps(facts, indent=1))
        for key, array in arrays.items():
            with bundle.open(f"{key}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, array, allow_pickle=False)


def load(path: str | Path) -> OnlineCP:
    """Read a model that `OnlineCP.save` wrote."""
    file = Path(path)
    try:
        with zipfile.ZipFile(file) as bundle:
            facts = read_facts(bundle)
            _check_version(facts, file)
            return _restore(facts, read_arrays(bundle))
    except FileNotFoundError:
        raise FileError(f"{file}: there is no such file.") from None
    except FileError:
        raise
    except OSError as error:
        raise FileError(f"{file}: cannot be read: {error.strerror or error}.") from None
    except MemoryError:
        raise FileError(f"{file}: there is not enough memory to read it.") from None
    except Exception as error:  # whatever a crafted file leads to: it is no model
        detail = (str(error).splitlines() or ["no detail"])[0].rstrip(".")
        raise FileError(
            f"{file}: is damaged or not a Tensortide model ({type(error).__name__}: {detail})."
        ) from None


def _check_version(facts: dict[str, Any], file: Path) -> None:
    if facts.get("format") != FORMAT:
        raise FileError(f"{file}: is not a Tensortide model.")
    version = facts["version"]
    if type(version) is not int or version != VERSION:
        advice = "upgrade" if version > VERSION else "fit anew"
        raise FileError(
            f"{file}: has format version {version}; this Tensortide reads version {VERSION}, "
            f"please {advice}."
        )


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
    arrays |= small_arrays(model.factors.grams, model.seen, model.memory, model.dispersion)
    if model.learned:
        told = model.factors.precisions()
        arrays |= {f"precision_{mode}": rows for mode, rows in enumerate(told)}
    if model.ahead.fibres is not None:
        fibres = model.ahead.fibres
        arrays |= {"fibre_keys": fibres.keys, "fibre_numbers": fibres.numbers}
    if model.store is not None:
        arrays |= history_arrays(model.store)
    facts = {
        "format": FORMAT,
        "version": VERSION,
        "params": plain_params(params),
        "modes": list(model.modes.names),
        "label_kinds": kinds,
        "text_labels": texts,
        **facts_of(model.modes.shape, model.n_steps, model.grown_last, model.rank, model.seen),
    }
    return arrays, facts


def _restore(facts: dict[str, Any], arrays: dict[str, AnyArray]) -> OnlineCP:
    shape = check_facts(facts)
    kinds = facts["label_kinds"]
    if len(kinds) != len(shape) or 0 < kinds.count("position") < len(shape):
        raise ValueError("the kinds of labels are not those of the modes")
    labels = [_labels(facts, arrays, mode) for mode in range(len(shape))]
    rows = [np.ascontiguousarray(arrays[f"factor_{mode}"]) for mode in range(len(shape))]
    return rebuild(facts, labels, rows, arrays, lambda: history_of(arrays, shape))


def _labels(facts: dict[str, Any], arrays: dict[str, AnyArray], mode: int) -> Labels:
    kind = facts["label_kinds"][mode]
    if kind == "position":
        return PositionLabels(facts["shape"][mode])
    if kind == "text":
        texts = facts["text_labels"][str(mode)]
        check_texts(texts)
        return NamedLabels(kind, texts)
    array = arrays[f"labels_{mode}"]
    values: list[Any] = array.tolist() if array.ndim == 1 else []
    if array.dtype != DTYPES[kind] or any(type(value) is not _TYPES[kind] for value in values):
        raise ValueError("labels are not of the kind they should be")
    return NamedLabels(kind, values)


_TYPES = {
    "integer": int,
    "boolean": bool,
    "date": dt.date,
    "datetime": dt.datetime,
    "datetime UTC": dt.datetime,
}
