"""Judge a model that was read from a file or a ledger, before anything is built from it.

Kernels trust shapes and positions, so nothing may reach them that does not fit together.  What
is wrong is raised as ValueError; who reads the file knows its name.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any

import numpy as np

from tensortide.arrays import AnyArray, Floats, Shape
from tensortide.core.penalties.prox import NonNegative, Nuclear, Simplex
from tensortide.core.steps.alpha import Schedule, constant, density, per_size
from tensortide.core.steps.beliefs import BLENDED, Beliefs
from tensortide.core.steps.method import Limits, Method, Recipe, Recursion
from tensortide.core.tensor.fibres import MEMORIES, NUMBERS
from tensortide.core.tensor.packed import diagonal_places, packed_width
from tensortide.data.sketch import REGISTERS
from tensortide.data.timeline import LONGEST, ORDERED
from tensortide.methods.registry import METHODS
from tensortide.online.compose import ties_for
from tensortide.validate import LARGEST_MODE, check_count, check_number, check_order, check_rank

if TYPE_CHECKING:
    from tensortide.data.modes import Modes

BELIEFS = ("facts", "line", "spread", "ahead", "known", "blend", "drift")
_LARGEST_RANK_OF_A_HASH = 53  # see data.sketch
_AS_MADE = (
    "keeps_history",
    "limits",
    "resolve",
    "by_svd",
    "lists_zeros",
    "loss",
    "terms",
    "learned",
)
_LATER = (
    "loss",
    "penalties",
    "prior",
    "fibres",
)  # parameters that files of earlier versions do not have


def check_facts(facts: Mapping[str, Any]) -> Shape:
    """Return the shape of a model whose single numbers make sense."""
    sizes = _whole_list("shape", facts["shape"], 1, LARGEST_MODE)
    order = check_order(len(sizes))
    check_rank(facts["rank"])
    if facts["params"]["rank"] != facts["rank"]:
        raise ValueError("factors and rank do not agree")
    _whole("n_steps", facts["n_steps"], 1, 2**62)
    _whole("grown_last", facts["grown_last"], 0, order - 1)
    seen = facts["seen"]
    for name in ("grown", "reported"):
        _whole(name, seen[name], 0, 2**62)
    check_number("base", seen["base"], least=0.0)
    full = _whole_list("full", seen.get("full", []), 0, LARGEST_MODE)
    if full and (len(full) != order or any(f > s for f, s in zip(full, sizes, strict=True))):
        raise ValueError("the box that is full does not fit the shape")
    names = facts["modes"]
    check_texts(names)
    if len(names) != order or len(set(names)) < order:
        raise ValueError("there is not one name for each mode")
    given = facts["params"]["modes"]
    if given is not None and given != names:
        raise ValueError("the names of the modes do not agree with the parameters")
    return sizes


def check_params(params: Mapping[str, Any], known: Sequence[str]) -> None:
    """Refuse parameters that are missing or unknown, and methods that nobody could have made."""
    if set(params) | set(_LATER) != set(known):
        raise ValueError("parameters are missing or unknown")
    check_texts([params["value"]])
    _check_method(params["method"])


def _check_method(method: Method) -> None:
    """Refuse a method that differs from the one of its name in more than its parameters."""
    if not isinstance(method, Method) or method.name not in METHODS:
        raise ValueError("the method is unknown")
    made = METHODS[method.name]()
    if type(method) is not type(made) or not isinstance(method.limits, Limits):
        raise ValueError(f"the method is not {made.name}")
    names = {field.name for field in fields(made)}
    for name in names.intersection(_AS_MADE):
        if getattr(method, name) != getattr(made, name):
            raise ValueError(f"{name} is not that of method {made.name}")
    if isinstance(method, Recursion) and (method.step is None) == method.name.endswith("sgd"):
        raise ValueError(f"step is not that of method {made.name}")
    if isinstance(method, Recipe) and isinstance(made, Recipe):
        _check_recipe(method, made)


def _check_weight(name: str, weight: Schedule) -> None:
    if not isinstance(weight, constant | density | per_size):
        raise ValueError(f"{name} is no weight")
    if isinstance(weight, constant):
        check_number(name, weight.weight, least=0.0)


def _check_recipe(method: Recipe, made: Recipe) -> None:
    _check_weight("alpha", method.alpha)
    if isinstance(method.beta, int | float):  # as it has to be, unless it is a schedule
        _check_weight("beta", constant(method.beta))
    else:
        _check_weight("beta", method.beta)
    if (method.past_decay is None) != (made.past_decay is None):
        raise ValueError(f"mu is not that of method {made.name}")
    if made.slice_decay == 1.0 and method.slice_decay != 1.0:
        raise ValueError(f"method {made.name} has no gamma")
    penalty = method.penalty
    if penalty is None:
        if made.penalty is not None:
            raise ValueError(f"method {made.name} lacks its penalty")
        return
    if made.penalty is None and made.name != "cp_stream":
        raise ValueError(f"method {made.name} has no penalty")
    if not isinstance(penalty.prox, NonNegative | Nuclear | Simplex):
        raise ValueError("the penalty is unknown")
    if penalty.weight is not None:
        check_number("eta", penalty.weight, least=1e-300)
    check_number("growth", penalty.growth, least=1.0)
    check_number("tol", penalty.tol, least=0.0)
    check_count("inner", penalty.inner, least=1)


def check_state(
    method: Method, facts: Mapping[str, Any], rows: Sequence[Floats], arrays: Mapping[str, AnyArray]
) -> None:
    """Refuse factors and statistics that do not fit the shape, the rank and the method."""
    order, rank = len(facts["shape"]), facts["rank"]
    for mode, (size, factor) in enumerate(zip(facts["shape"], rows, strict=True)):
        check_floats(f"the factor of mode {mode}", factor, (size, rank))
    for name in ("gram_total", "gram_error"):
        check_floats(name, arrays[name], (order, rank, rank))
    check_floats("gram_sums", arrays["gram_sums"], (order, rank))
    registers = arrays["seen_registers"]
    if registers.dtype != np.uint8 or registers.shape != (REGISTERS,):
        raise ValueError("seen_registers are not what they should be")
    if registers.max() > _LARGEST_RANK_OF_A_HASH:
        raise ValueError("seen_registers are too large")
    if "dispersion" in arrays:
        check_floats("dispersion", arrays["dispersion"], (2, 2), least=0.0)
    if method.learned:
        _check_precisions(facts, arrays)
    for name, shapes in _memory(method, facts).items():
        array = arrays[f"memory_{name}"]
        if not shapes:
            continue
        fitting = [shape for shape in shapes if shape == array.shape]
        check_floats(f"memory_{name}", array, (fitting or shapes)[0])


def _memory(method: Method, facts: Mapping[str, Any]) -> dict[str, list[Shape]]:
    """Return what a method has to remember, and the shapes that it may have."""
    shape, rank, time = facts["shape"], facts["rank"], facts["grown_last"]
    fresh = facts["n_steps"] == 1  # which mode grows is not known then
    if method.learned:
        return {name: [] for name in BELIEFS}
    if isinstance(method, Recipe):
        return {} if method.past_decay is None or fresh else {"past": [(rank, rank)]}
    found: dict[str, list[Shape]] = {}
    for mode, size in enumerate(shape):
        if isinstance(method, Recursion):
            if method.step is None and (fresh or mode != time):
                found[f"gram_{mode}"] = [(rank, rank), (size, rank, rank)]
                found[f"rhs_{mode}"] = [(size, rank)]
        elif fresh or mode == time:
            cells = math.prod(shape) // size
            names = {"basis": (rank, cells), "sizes": (rank,), "mixing": (rank, rank)}
            if not method.by_svd:
                names = {"sums": (rank, cells), "past": (rank, rank)}
            found |= {f"{name}_{mode}": [wanted] for name, wanted in names.items()}
    return found


def _check_precisions(facts: Mapping[str, Any], arrays: Mapping[str, AnyArray]) -> None:
    """Refuse precisions that are none, and beliefs whose shapes do not fit together."""
    order, rank = len(facts["shape"]), facts["rank"]
    width = packed_width(rank)
    for mode, size in enumerate(facts["shape"]):
        told = arrays[f"precision_{mode}"]
        check_floats(f"the precision of mode {mode}", told, (size, width))
        if not (told[:, diagonal_places(rank, width)] > 0.0).all():
            raise ValueError(f"the precision of mode {mode} is no precision")
    line = arrays["memory_line"]
    check_floats("memory_facts", arrays["memory_facts"], (4,), least=0.0)
    check_floats("memory_line", line, (len(line),), least=-1.0)
    check_floats("memory_spread", arrays["memory_spread"], (order, width))
    check_floats("memory_drift", arrays["memory_drift"], (rank, rank))
    blend = arrays["memory_blend"]
    check_floats("memory_blend", blend, (len(blend), BLENDED, BLENDED))
    for name in ("ahead", "known"):
        size = len(arrays[f"memory_{name}"])
        check_floats(f"memory_{name}", arrays[f"memory_{name}"], (size, size))


def check_beliefs(beliefs: Beliefs, modes: Modes, *, fibres: bool) -> Beliefs:
    """Refuse beliefs that nobody could have."""
    along = beliefs.timeline
    if not (beliefs.noise > 0.0 and beliefs.cells > 0.0):
        raise ValueError("the noise is none")
    if not -1 <= along < modes.order or (along >= 0 and modes.labels[along].kind not in ORDERED):
        raise ValueError("the mode of the outlook has no order")
    if beliefs.unit < 1 or beliefs.grown < 0 or any(not 1 <= p <= LONGEST for p in beliefs.periods):
        raise ValueError("the seasons of the outlook are none")
    if beliefs.monthly and modes.labels[along].kind != "date":
        raise ValueError("labels that are no dates are counted in months")
    memories = MEMORIES if fibres else 0
    wanted = (
        (beliefs.n_candidates + memories, 2 + memories if fibres else 0) if along >= 0 else (0, 0)
    )
    found = (len(beliefs.ahead), len(beliefs.known))
    if found != wanted or len(beliefs.blend) != (2 if fibres and along >= 0 else 0):
        raise ValueError("the errors of the outlook are not those of its candidates")
    return beliefs


def check_fibres(keys: AnyArray, numbers: AnyArray, mode: int, shape: Shape) -> None:
    """Refuse a memory of fibres that does not fit the shape."""
    others = [size for m, size in enumerate(shape) if m != mode]
    if keys.dtype != np.int32 or keys.shape != (len(numbers), len(others)):
        raise ValueError("the fibres are no list of positions")
    if len(keys) and (keys.min() < 0 or (keys.max(axis=0) >= np.array(others)).any()):
        raise ValueError("a fibre lies outside of the shape")
    if len(np.unique(keys, axis=0)) < len(keys):
        raise ValueError("a fibre stands twice in the memory")
    check_floats("the memory of fibres", numbers, (len(keys), NUMBERS))


def memory_of(
    method: Method, facts: Mapping[str, Any], arrays: Mapping[str, AnyArray]
) -> dict[str, AnyArray]:
    """Return what the method remembers; `check_state` has judged it."""
    return {name: arrays[f"memory_{name}"] for name in _memory(method, facts)}


def check_listed(coords: AnyArray, values: AnyArray, weights: AnyArray, shape: Shape) -> None:
    """Refuse a list of entries that does not fit the shape."""
    if coords.dtype.kind not in "iu" or coords.shape != (len(values), len(shape)):
        raise ValueError("the cells of the history are no list of positions")
    if len(coords) and (
        coords.min() < 0 or (coords.max(axis=0) >= np.array(shape, np.int64)).any()
    ):
        raise ValueError("a cell of the history lies outside of the shape")
    check_floats("the history", values, (len(coords),))
    check_floats("weights", weights, (len(coords) if len(weights) else 0,), least=0.0)


def check_floats(what: str, array: AnyArray, shape: Shape, *, least: float = -np.inf) -> None:
    """Refuse an array that is not of finite doubles and of this shape."""
    if array.dtype != np.float64 or array.shape != shape:
        raise ValueError(f"{what} is {array.dtype} {array.shape}, not float64 {tuple(shape)}")
    if not np.isfinite(array).all() or (array < least).any():
        raise ValueError(f"{what} has a number that it cannot have")


def check_texts(texts: Any) -> None:
    """Refuse what is no list of texts; halves of characters cannot be written anywhere."""
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise ValueError("names or labels are not texts")
    "".join(texts).encode()


def check_ties(method: Method, modes: Modes) -> None:
    """Refuse penalties that the labels do not go with."""
    with warnings.catch_warnings(action="ignore"):
        ties_for(method, modes, ((),) * modes.order)


def _whole(name: str, value: Any, least: int, most: int) -> int:
    if type(value) is not int or not least <= value <= most:
        raise ValueError(f"{name} is no whole number from {least} to {most}")
    return value


def _whole_list(name: str, values: Any, least: int, most: int) -> Shape:
    if not isinstance(values, list | tuple):
        raise ValueError(f"{name} is no list")
    return tuple(_whole(name, value, least, most) for value in values)
