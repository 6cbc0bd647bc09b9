"""A few series of a model as they were and as they are expected to go on, for pictures."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tensortide.arrays import Floats, Positions
from tensortide.core.tensor.dense_box import DenseBox
from tensortide.online.forecast import Answers, check_steps, mode_ahead, observed_fibres
from tensortide.online.horizon import Outlook

if TYPE_CHECKING:
    from tensortide.online.model import Model

MOST = 4  # series that one picture can show
LEAST_BACK, BACK = 30, 3  # labels that are shown before: so many, or times the steps ahead
# Where nobody knows which cells were observed, all are looked at if they are few; else these
# labels of each mode.
_ALL, _TOP = 100_000, 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """One cell of all modes but the ordered one: known labels, and labels ahead.

    `fitted` is what the model says now of known labels, `observed` what was reported of them (NaN
    where nothing was, or nobody keeps it), `ahead` what is expected.
    """

    name: str
    fitted: Floats
    observed: Floats
    ahead: Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class Continued:
    """Series along a mode: its name, the newest labels, the labels ahead."""

    mode: str
    known: Sequence[Any]
    ahead: Sequence[Any]
    series: Sequence[Series]


def continued(model: Model, steps: int, mode: str | int | None = None) -> Continued:
    """Return the largest series of a model with their forecasts."""
    steps = check_steps(steps)
    if mode is None and model.ahead.line is not None:
        mode = model.modes.names[model.ahead.line.mode]
    along = mode_ahead(model, mode)
    outlook, labels = Outlook(model, along), model.modes.labels[along]
    newest = outlook.line.places[-max(LEAST_BACK, BACK * steps) :]
    fresh = outlook.line.labels_ahead(labels, steps)
    answers = Answers(model, outlook, fresh)
    places = np.concatenate([newest, len(labels) + np.arange(steps)])
    loss = model.method.loss
    series = []
    for cell in _largest(model, along):
        cells = np.repeat(cell[None], len(places), axis=0)
        cells[:, along] = places
        values = loss.mean(answers.values(cells))
        words = [str(model.modes.labels[m].label(int(p))) for m, p in enumerate(cell) if m != along]
        series.append(
            Series(
                name=", ".join(words), fitted=values[: len(newest)], ahead=values[len(newest) :],
                observed=_observed(model, cells[: len(newest)]),
            )
        )  # fmt: skip
    return Continued(
        mode=model.modes.names[along], known=[labels.label(int(p)) for p in newest], ahead=fresh,
        series=series,
    )  # fmt: skip


def _largest(model: Model, along: int) -> Positions:
    """Return the cells whose values are largest at the mean row of the ordered mode."""
    others = [m for m in range(model.modes.order) if m != along]
    rows, keys = model.rows(), observed_fibres(model, along)
    if keys is None:
        few = math.prod(len(rows[m]) for m in others) <= _ALL
        top = [
            np.argsort(-(rows[m] ** 2).sum(axis=1), kind="stable")[: None if few else _TOP]
            for m in others
        ]
        keys = np.stack(np.meshgrid(*top, indexing="ij"), axis=-1).reshape(-1, len(others))
    size = np.tile(model.factors.means()[along], (len(keys), 1))
    for column, m in enumerate(others):
        size *= rows[m][keys[:, column]]
    found = keys[np.argsort(-np.abs(size.sum(axis=1)), kind="stable")[:MOST]]
    return np.insert(np.asarray(found, np.int64), along, 0, axis=1)


def _observed(model: Model, cells: Positions) -> Floats:
    """Return the values that were reported of cells, NaN where none is kept."""
    out = np.full(len(cells), np.nan)
    if model.store is None:
        return out
    entries = model.store.entries
    if isinstance(entries, DenseBox):
        return np.asarray(entries.in_order()[tuple(cells.T)])
    first, rest = entries.orders[0], np.delete(cells, 0, axis=1)
    for k, row in enumerate(cells[:, 0]):
        span = slice(int(first.pointers[row]), int(first.pointers[row + 1]))
        at = np.flatnonzero((first.others[span] == rest[k]).all(axis=1))
        if len(at):
            out[k] = first.values[span][at[0]]
    return out
