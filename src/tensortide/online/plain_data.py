"""A model as plain data, arrays and JSON, and back: what files and ledgers have in common."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tensortide.arrays import AnyArray, Floats, Shape
from tensortide.core.kernels.sorting import count_repeats
from tensortide.core.losses.standard import check_loss_values, loss_for
from tensortide.core.steps.beliefs import Beliefs
from tensortide.core.tensor.dense_box import DenseBox
from tensortide.core.tensor.entries import Entries
from tensortide.core.tensor.factors import Factors, RunningGrams
from tensortide.core.tensor.fibres import Fibres
from tensortide.data.modes import Modes
from tensortide.data.sketch import DistinctCells
from tensortide.data.store import Store
from tensortide.errors import InputError
from tensortide.methods.registry import describe, from_description, method_for
from tensortide.online.ahead import Ahead, restored
from tensortide.online.changes import Rules
from tensortide.online.compose import compose, listed_parts
from tensortide.online.dispersion import Dispersion
from tensortide.online.estimator import OnlineCP
from tensortide.online.info import Info
from tensortide.online.model import Model
from tensortide.online.plain_checks import (
    check_beliefs,
    check_facts,
    check_fibres,
    check_floats,
    check_listed,
    check_params,
    check_state,
    check_ties,
    memory_of,
)

if TYPE_CHECKING:
    from tensortide.core.steps.method import Memory
    from tensortide.data.labels import Labels


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
    if isinstance(entries, DenseBox):
        axes = np.array(entries.modes, np.int32)
        return {"box": np.ascontiguousarray(entries.values), "box_axes": axes}
    return {
        "coords": entries.coords(),
        "values": entries.orders[0].values,
        "weights": entries.orders[0].weights,
    }


def history_of(arrays: Mapping[str, AnyArray], shape: Shape) -> Store:
    """Return the store that `history_arrays` listed; refuse what does not fit the shape."""
    if "box" in arrays:
        axes = arrays["box_axes"].tolist() if "box_axes" in arrays else list(range(len(shape)))
        if sorted(axes) != list(range(len(shape))):
            raise ValueError("the axes of the history are not those of the modes")
        check_floats("the history", arrays["box"], tuple(shape[axis] for axis in axes))
        return Store(DenseBox(np.ascontiguousarray(arrays["box"]), axes))
    coords, values, weights = (arrays[name] for name in ("coords", "values", "weights"))
    check_listed(coords, values, weights, shape)
    places = np.ascontiguousarray(coords, np.int32)
    entries = Entries.listed(places, values, shape, weights)
    if count_repeats(entries.coords()):
        raise ValueError("a cell stands twice in the history")
    return Store(entries)


def plain_params(params: dict[str, Any]) -> dict[str, Any]:
    """Return the parameters of an estimator as JSON knows them."""
    seed = params["seed"]
    if isinstance(seed, np.random.Generator):
        raise InputError("a model whose seed is a Generator cannot be saved; use a number.")
    penalties = listed_parts(params["penalties"])
    return params | {
        "method": describe(method_for(params["method"])),
        "loss": describe(loss_for(params["loss"])),
        "penalties": [[mode, [describe(p) for p in parts]] for mode, parts in penalties.items()],
        "rank": int(params["rank"]),
        "threads": None if params["threads"] is None else int(params["threads"]),
        "seed": int(seed),
        "modes": None if params["modes"] is None else list(params["modes"]),
    }


def read_params(plain: dict[str, Any]) -> dict[str, Any]:
    """Return what `plain_params` made plain."""
    penalties = {
        mode: [from_description(part) for part in parts]
        for mode, parts in plain.get("penalties") or ()
    }
    return plain | {
        "method": from_description(plain["method"]),
        "loss": from_description(plain.get("loss", "squared")),
        "penalties": penalties or None,
        "prior": plain.get("prior", "paper"),
        "fibres": plain.get("fibres"),
    }


def rebuild(
    facts: dict[str, Any],
    labels: Sequence[Labels],
    rows: Sequence[Floats],
    arrays: Mapping[str, AnyArray],
    history: Callable[[], Store],
) -> OnlineCP:
    """Build the estimator around a model; `history` is called where the method keeps one."""
    shape = check_facts(facts)
    params = read_params(facts["params"])
    estimator = OnlineCP(**params)
    check_params(facts["params"] | {"method": params["method"]}, list(estimator.get_params()))
    if [len(known) for known in labels] != list(shape):
        raise ValueError("labels and shape do not agree")
    modes = Modes(facts["modes"], labels)
    composed = compose(
        params["method"], params["loss"], params["penalties"], params["absent"], params["prior"],
        modes,
    )  # fmt: skip
    fibres = estimator._keeps_fibres(composed)
    check_state(composed, facts, rows, arrays)
    told = None
    if composed.learned:
        told = [np.ascontiguousarray(arrays[f"precision_{m}"]) for m in range(len(rows))]
    grams = RunningGrams(
        *(np.ascontiguousarray(arrays[name]) for name in ("gram_total", "gram_error", "gram_sums"))
    )
    seen = facts["seen"] | {"full": tuple(facts["seen"].get("full", ()))}
    check_ties(composed, modes)
    store = history() if composed.keeps_history else None
    if store is not None:
        check_loss_values(composed.loss, store.entries.all_values())
    memory, ahead = memory_of(composed, facts, arrays), Ahead()
    if composed.learned:
        beliefs = check_beliefs(Beliefs.of_memory(memory), modes, fibres=fibres)
        known = None
        if fibres and beliefs.timeline >= 0:
            check_fibres(arrays["fibre_keys"], arrays["fibre_numbers"], beliefs.timeline, shape)
            known = Fibres(beliefs.timeline, arrays["fibre_keys"], arrays["fibre_numbers"])
        ahead = restored(beliefs, modes, known)
    estimator._model = Model(
        method=composed,
        rules=Rules(params["absent"] == "zero", params["duplicates"], params["combine"] == "add"),
        modes=modes, factors=Factors(rows, grams, told), store=store,
        seen=DistinctCells(registers=arrays["seen_registers"], **seen), n_steps=facts["n_steps"],
        grown_last=facts["grown_last"], memory=memory, ahead=ahead,
        dispersion=Dispersion(*arrays.get("dispersion", ())),
    )  # fmt: skip
    estimator.info_ = Info(step=facts["n_steps"], entries=0)
    estimator._used = estimator.get_params()
    estimator._before_priors = "prior" not in facts["params"]
    return estimator
