"""A model as plain data, arrays and JSON, and back: what files and ledgers have in common."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tensortide.core.complete import Complete
from tensortide.core.entries import Entries
from tensortide.core.types import AnyArray, Floats, Shape
from tensortide.data.store import Store
from tensortide.errors import InputError

if TYPE_CHECKING:
    from tensortide.core.factors import RunningGrams
    from tensortide.core.recipe import Memory
    from tensortide.data.labels import Labels
    from tensortide.data.sketch import DistinctCells
    from tensortide.dispersion import Dispersion
    from tensortide.estimator import OnlineCP


def small_arrays(
    grams: RunningGrams, seen: DistinctCells, memory: Memory, dispersion: Dispersion
) -> dict[str, AnyArray]:
    """Return the statistics of a model that are not rows of factors."""
    arrays: dict[str, AnyArray] = {
        "gram_total": grams.total,
        "gram_error": grams.error,
        "gram_sums": grams.sums,
        "seen_registers": seen.registers,
        "dispersion": np.stack([dispersion.weights, dispersion.sums]),
    }
    return arrays | {f"memory_{name}": array for name, array in memory.items()}


def facts_of(
    shape: Shape, n_steps: int, grown_last: int, rank: int, seen: DistinctCells
) -> dict[str, Any]:
    """Return the single numbers of a model."""
    return {
        "shape": list(shape),
        "n_steps": n_steps,
        "grown_last": grown_last,
        "rank": rank,
        "seen": {
            "grown": seen.grown,
            "reported": seen.reported,
            "base": seen.base,
            "full": list(seen.full),
        },
    }


def history_arrays(store: Store) -> dict[str, AnyArray]:
    """Return all entries of a store: one box, or a list of cells in the order of mode 0.

    A box keeps the order of its axes, since sums over another one round differently.
    """
    entries = store.entries
    if isinstance(entries, Complete):
        axes = np.array(entries.modes, np.int32)
        return {"box": np.ascontiguousarray(entries.values), "box_axes": axes}
    return {
        "coords": entries.coords(),
        "values": entries.orders[0].values,
        "weights": entries.orders[0].weights,
    }


def history_of(arrays: Mapping[str, AnyArray], shape: Shape) -> Store:
    """Return the store that `history_arrays` listed."""
    if "box" in arrays:
        axes = arrays.get("box_axes")
        box = Complete(arrays["box"], None if axes is None else axes.tolist())
        if box.shape != shape:
            raise ValueError("history and shape do not agree")
        return Store(box)
    return Store(Entries.listed(arrays["coords"], arrays["values"], shape, arrays["weights"]))


def plain_params(params: dict[str, Any]) -> dict[str, Any]:
    """Return the parameters of an estimator as JSON knows them."""
    from tensortide.core.losses import loss_for
    from tensortide.methods import describe, recipe_for
    from tensortide.parts import listed_parts

    seed = params["seed"]
    if isinstance(seed, np.random.Generator):
        raise InputError("a model whose seed is a Generator cannot be saved; use a number.")
    penalties = listed_parts(params["penalties"])
    return params | {
        "method": describe(recipe_for(params["method"])),
        "loss": describe(loss_for(params["loss"])),
        "penalties": [[mode, [describe(p) for p in parts]] for mode, parts in penalties.items()],
        "rank": int(params["rank"]),
        "threads": None if params["threads"] is None else int(params["threads"]),
        "seed": int(seed),
        "modes": None if params["modes"] is None else list(params["modes"]),
    }


def read_params(plain: dict[str, Any]) -> dict[str, Any]:
    """Return what `plain_params` made plain."""
    from tensortide.methods import from_description

    penalties = {
        mode: [from_description(part) for part in parts]
        for mode, parts in plain.get("penalties") or ()
    }
    return plain | {
        "method": from_description(plain["method"]),
        "loss": from_description(plain.get("loss", "squared")),
        "penalties": penalties or None,
    }


def rebuilt(
    facts: dict[str, Any],
    labels: Sequence[Labels],
    rows: Sequence[Floats],
    arrays: Mapping[str, AnyArray],
    history: Callable[[], Store],
) -> OnlineCP:
    """Build the estimator around a model; `history` is called where the method keeps one."""
    from tensortide.core.factors import Factors, RunningGrams
    from tensortide.data.modes import Modes
    from tensortide.data.sketch import DistinctCells
    from tensortide.dispersion import Dispersion
    from tensortide.estimator import OnlineCP
    from tensortide.incoming import Rules
    from tensortide.info import Info
    from tensortide.model import Model
    from tensortide.parts import composed

    params = read_params(facts["params"])
    estimator = OnlineCP(**params)
    shape = list(facts["shape"])
    if any(r.shape[1:] != (facts["rank"],) for r in rows) or params["rank"] != facts["rank"]:
        raise ValueError("factors and rank do not agree")
    if [len(r) for r in rows] != shape or [len(known) for known in labels] != shape:
        raise ValueError("factors, labels and shape do not agree")
    grams = RunningGrams(arrays["gram_total"], arrays["gram_error"], arrays["gram_sums"])
    seen = facts["seen"] | {"full": tuple(facts["seen"].get("full", ()))}
    modes = Modes(facts["modes"], labels)
    estimator._model = Model(
        composed(params["method"], params["loss"], params["penalties"], params["absent"], modes),
        Rules(params["absent"] == "zero", params["duplicates"], params["combine"] == "add"),
        modes,
        Factors(rows, grams),
        history() if params["method"].keeps_history else None,
        DistinctCells(arrays["seen_registers"], **seen),
        facts["n_steps"],
        facts["grown_last"],
        {
            name.removeprefix("memory_"): array
            for name, array in arrays.items()
            if name.startswith("memory_")
        },
        Dispersion(*arrays["dispersion"]) if "dispersion" in arrays else None,
    )
    estimator.info_ = Info(step=facts["n_steps"], entries=0)
    estimator._used = estimator.get_params()
    return estimator
