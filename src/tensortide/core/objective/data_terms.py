"""How the data enter the objective: observed, imputed and zero-filled cells."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from tensortide.arrays import Flags, Floats
from tensortide.core.kernels.dense import dot
from tensortide.core.objective.squares import BoxTerm, Listed, model_values
from tensortide.core.tensor.dense_box import AnyEntries, DenseBox
from tensortide.core.tensor.workspace import Workspace

DataTerms: TypeAlias = Callable[[Workspace, AnyEntries], tuple[Listed, list[BoxTerm]]]


def observed_rows(_: Workspace, entries: AnyEntries) -> tuple[Listed, list[BoxTerm]]:
    """Return the paper's sparse strategy: the squared residual on the observed entries."""
    if isinstance(entries, DenseBox):
        return Listed.whole(entries), [BoxTerm(1.0, None, upper_only=False)]
    return Listed.squares(entries), []


def imputed(work: Workspace, entries: AnyEntries) -> tuple[Listed, list[BoxTerm]]:
    """Return the paper's dense strategy (`eq:dense-solution`) without a dense tensor.

    The imputed tensor is ``[[A^]]`` plus a sparse residual ``w (x - y^)``, so the squared
    distance to it is a box term with the current rows as reference plus a linear term on
    the entries.  The sum lies above the squared residual on the observed entries and
    touches it at ``A^``, so lowering it lowers that too.  Weights above one raise the
    curvature of the whole box to the largest weight.

    A complete tensor needs no imputation: the squared distance to it is the box term with
    reference zero and the entries as they are.
    """
    if work.whole and isinstance(entries, DenseBox):
        return observed_rows(work, entries)
    residuals: list[Floats] = []
    curvature, constant = 1.0, 0.0
    for mode, order in enumerate(entries.orders):
        y = model_values(work, entries, mode)
        gap = order.values - y
        residual = order.weights * gap if len(order.weights) else gap
        residuals.append(residual)
        if mode == 0:
            constant = dot(residual, gap) + 2.0 * dot(residual, y)
            if len(order.weights):
                curvature = max(1.0, float(order.weights.max(initial=0.0)))
    box = BoxTerm(curvature, work.stack.copy(), upper_only=False)
    return Listed(entries, None, residuals, constant), [box]


@dataclass(frozen=True, slots=True)
class ZeroFilled:
    """Absent cells are zeros: in the whole box, or in all of it outside the old box.

    The whole box is a box term with reference zero; less the old box, one more with
    negative weight.  Listed cells inside the old box of an economy step are corrections of
    single cells: they enter as observed entries, beside the reconstruction that stands for
    the rest.
    """

    outside_old: bool

    def __call__(self, work: Workspace, entries: AnyEntries) -> tuple[Listed, list[BoxTerm]]:
        """Return the zero-filled box and what the listed cells add to it."""
        boxes = [BoxTerm(1.0, None, upper_only=False, every_row=True)]
        if self.outside_old:
            boxes.append(BoxTerm(-1.0, None, upper_only=True))
        if isinstance(entries, DenseBox):
            return Listed.whole(entries), boxes
        curvatures: list[Floats] = []
        values: list[Floats] = []
        for mode, order in enumerate(entries.orders):
            weights = order.weights if len(order.weights) else np.ones(len(order.values))
            boxed = np.ones(len(order.values))
            if self.outside_old:
                boxed[in_old_box(work, entries, mode)] = 0.0
            curvatures.append(weights - boxed)
            values.append(weights * order.values)
        constant = dot(values[0], entries.orders[0].values)
        plain = not any(h.any() for h in curvatures)
        return Listed(entries, None if plain else curvatures, values, constant), boxes


def in_old_box(work: Workspace, entries: AnyEntries, mode: int) -> Flags:
    """Return which entries, in the order of a mode, have old labels in all modes."""
    order = entries.orders[mode]
    limits = np.array([n for k, n in enumerate(work.n_upper) if k != mode])
    inside: Flags = np.all(order.others < limits, axis=1)
    inside[order.pointers[work.n_upper[mode]] :] = False
    return inside
