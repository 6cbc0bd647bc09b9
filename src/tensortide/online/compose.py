"""A method with the user's loss and penalties: checked together, tied to the labels of the data."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from tensortide.arrays import Floats, Positions
from tensortide.core.losses.standard import loss_for
from tensortide.core.penalties.parts import Fixed, Part, Ties
from tensortide.core.steps.method import Method, with_parts, with_prior
from tensortide.data.modes import Modes
from tensortide.errors import InputError, warn_user
from tensortide.validate import brief

LARGEST = np.iinfo(np.int64).max
_ORDERED = ("position", "integer", "date", "datetime", "datetime UTC")


def listed_parts(penalties: Any) -> dict[str | int, list[Part]]:
    """Return the parts of each mode as a list; a single part may stand alone."""
    if penalties is None:
        return {}
    if not isinstance(penalties, Mapping):
        raise InputError(
            "penalties must be a dict from modes to parts, for example "
            f"{{'date': tt.smooth(7)}}, not {brief(penalties)}."
        )
    found: dict[str | int, list[Part]] = {}
    for mode, given in penalties.items():
        parts = list(given) if isinstance(given, list | tuple) else [given]
        for part in parts:
            if not isinstance(part, Part):
                raise InputError(
                    f"penalties of mode {mode!r} must be parts such as tt.smooth(7) or "
                    f"tt.nonnegative(), not {brief(part)}."
                )
        found[mode] = parts
    return found


def compose(
    method: Method,
    loss: Any,
    penalties: Any,
    absent: str,
    prior: str | None,
    modes: Modes | None = None,
) -> Method:
    """Return the method with its parts; without modes only to see whether they fit together."""
    given = listed_parts(penalties)
    per_mode: list[list[Part]] = list(given.values())
    if modes is not None and given:
        per_mode = [[] for _ in modes.names]
        for mode, parts in given.items():
            per_mode[modes.index(mode)] += parts
    parts_given = per_mode if any(per_mode) else None
    composed = with_parts(method, loss_for(loss), parts_given, absent_zero=absent == "zero")
    return with_prior(composed, prior)


def ties_for(method: Method, modes: Modes, fresh: Sequence[Sequence[Any]]) -> tuple[Ties, ...]:
    """Return what the labels, new ones included, make of the terms of each mode."""
    if not any(t.smooth or t.fixed for t in method.terms):
        return ()
    ties = []
    for mode, term in enumerate(method.terms):
        pairs, weights = [np.empty((0, 2), np.int64)], [np.empty(0)]
        for smooth in term.smooth:
            found, share = _neighbours(modes, mode, fresh[mode], smooth.period)
            pairs.append(found)
            weights.append(smooth.weight * share)
        tie = Ties(np.concatenate(pairs), np.concatenate(weights))
        if term.fixed is not None:
            tie = replace(tie, fixed=_fixed(modes, mode, term.fixed))
        ties.append(tie)
    return tuple(ties)


def _neighbours(
    modes: Modes, mode: int, fresh: Sequence[Any], period: int
) -> tuple[Positions, Floats]:
    """Return pairs of positions whose labels are `period` apart, and their share of the weight.

    A random walk goes on over a gap: labels that are n times as far apart as the nearest ones
    are tied with one n-th of the weight.
    """
    labels = modes.labels[mode]
    if labels.kind not in _ORDERED:
        raise InputError(
            f"mode {modes.names[mode]!r} has {labels.kind} labels, which have no distance; smooth "
            "takes dates, times, whole numbers or positions."
        )
    known = labels.array()
    new = np.asarray(list(fresh), known.dtype) if len(fresh) else known[:0]
    values = np.concatenate([known, new])
    if values.dtype.kind == "M" and labels.kind != "date":
        values = np.unique(values, return_inverse=True)[1]  # times: by their order
    values = values.astype("int64")
    order = np.argsort(values, kind="stable")
    ranked = values[order]
    if period == 1:
        gaps = np.diff(ranked)
        return np.column_stack([order[1:], order[:-1]]), gaps.min(initial=LARGEST) / gaps
    earlier = np.searchsorted(ranked, ranked - period)
    there = (earlier < len(ranked)) & (
        ranked[np.minimum(earlier, len(ranked) - 1)] == ranked - period
    )
    pairs = np.column_stack([order[there], order[earlier[there]]])
    if not len(pairs) and len(ranked) and ranked[-1] - ranked[0] >= period:
        warn_user(
            f"smooth({period}) ties nothing in mode {modes.names[mode]!r}: no two labels are "
            f"{period} apart; dates are counted in days."
        )
    return pairs, np.ones(len(pairs))


def _fixed(modes: Modes, mode: int, fixed: Fixed) -> Positions:
    """Return the positions of rows that do not move; new labels are free."""
    labels = modes.labels[mode]
    if fixed.labels is None:
        return np.arange(len(labels))
    if not len(labels):
        return np.empty(0, np.int64)
    places = {_key(label, labels.kind): k for k, label in enumerate(labels.array().tolist())}
    try:
        found = [
            places[key] for key in (_key(f, labels.kind) for f in fixed.labels) if key in places
        ]
    except TypeError:
        raise InputError(
            f"{brief(fixed.labels)} cannot be fixed in mode {modes.names[mode]!r}: its labels are "
            f"of another kind ({labels.kind})."
        ) from None
    return np.unique(np.array(found, np.int64))


def _key(label: Any, kind: str) -> Any:
    """Return a label in the one form that labels of its kind are compared in."""
    plain = label.item() if isinstance(label, np.generic) and label.dtype.kind != "M" else label
    if kind.startswith("date"):
        if isinstance(plain, dt.datetime) and plain.tzinfo is not None:
            plain = plain.astimezone(dt.UTC).replace(tzinfo=None)
        try:
            return np.datetime64(plain).astype(f"datetime64[{'D' if kind == 'date' else 'us'}]")
        except ValueError:
            raise TypeError from None
    wanted = {"position": int, "integer": int, "text": str, "boolean": bool}.get(kind, object)
    if not isinstance(plain, wanted) or isinstance(plain, list | dict | set):
        raise TypeError
    return plain
