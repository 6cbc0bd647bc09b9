"""What a method cannot do, said before it is tried, with a method that can."""

from __future__ import annotations

import math

from tensortide.core.steps.change import Change
from tensortide.core.steps.method import Memory, Method
from tensortide.core.tensor.dense_box import DenseBox
from tensortide.data.arrival import Arrival
from tensortide.data.modes import Modes
from tensortide.errors import InputError

GENERAL = "method='gocpte' (or 'gocpt', which keeps history)"


def check_first(method: Method, modes: Modes, change: Change) -> None:
    """Refuse first data that a method cannot be prepared from."""
    limits, name = method.limits, method.name
    if limits.third_order and modes.order != 3:
        raise InputError(
            f"method {name!r} is made for three modes, the data have {modes.order}; use "
            f"method='online_cpd' for complete slices, or {GENERAL}."
        )
    if limits.listed and change.absent_zero:
        raise InputError(
            f"method {name!r} works on whole slices and needs every cell listed, so absent='zero' "
            "does not go with it; use method='online_cpd' or 'cp_stream', or list the zeros."
        )
    _check_complete(method, change, math.prod(change.new_shape))


def check_step(
    method: Method, modes: Modes, arrival: Arrival, change: Change, established: int | None
) -> None:
    """Refuse a batch that a method cannot take.

    `established` is the mode that has grown before, if any.
    """
    limits, name = method.limits, method.name
    grown = arrival.grown_modes()
    if limits.one_mode:
        _check_growth(name, modes, grown, established)
    if limits.new_cells:
        n_old = _old_cells(change)
        if n_old:
            raise InputError(
                f"method {name!r} takes new slices only, but {n_old} of the {change.n_arrived} "
                "cells are between labels that it knows: late or corrected values; use "
                f"{GENERAL}."
            )
    _check_complete(method, change, math.prod(change.new_shape) - math.prod(change.old_shape))


def check_no_memory(method: Method, memory: Memory, what: str) -> None:
    """Refuse to reshape a model whose method remembers the past in sums of this shape."""
    if memory:
        raise InputError(
            f"method {method.name!r} remembers the past in sums that cannot get {what}; use "
            f"{GENERAL}, or fit anew."
        )


def _check_growth(name: str, modes: Modes, grown: list[int], established: int | None) -> None:
    if not grown:
        raise InputError(
            f"method {name!r} needs a new label in every batch, and this one has none; use "
            f"{GENERAL}."
        )
    if len(grown) > 1:
        both = " and ".join(repr(modes.names[m]) for m in grown)
        raise InputError(
            f"method {name!r} lets one mode grow, but there are new labels in modes {both}; use "
            f"{GENERAL}, or method='mast'."
        )
    if established is not None and grown[0] != established:
        raise InputError(
            f"method {name!r} lets one mode grow, so far {modes.names[established]!r}, and now "
            f"there are new labels in mode {modes.names[grown[0]]!r}; use {GENERAL}."
        )


def _check_complete(method: Method, change: Change, n_cells: int) -> None:
    if not method.limits.complete or change.absent_zero or change.complete:
        return
    if change.weighted:
        raise InputError(f"method {method.name!r} takes no weights; use {GENERAL}.")
    raise InputError(
        f"method {method.name!r} needs every cell of a slice, but {change.n_arrived} of "
        f"{n_cells} are there; use method='olstec' or 'cp_stream', which take slices with "
        f"holes, or {GENERAL}."
    )


def _old_cells(change: Change) -> int:
    """Return how many cells of the batch lie in the old box."""
    inside = 0
    if not isinstance(change.arrived, DenseBox):
        limits = [change.n_upper(mode) for mode in range(len(change.old_shape))]
        inside = int((change.arrived < limits).all(axis=1).sum())
    return inside
