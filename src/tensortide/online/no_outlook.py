"""Why a model sees nothing ahead, and what to do: only learned priors come with an outlook."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tensortide.core.penalties.parts import Terms
from tensortide.core.steps.method import LEARNING
from tensortide.wording import listed

if TYPE_CHECKING:
    from tensortide.core.steps.method import Method


def no_outlook(method: Method, used: dict[str, Any], *, former: bool) -> str:
    """Return the sentence for a model without learned priors.

    `used` are the parameters that it was made with; `former` says that a version made it which had
    no other prior than the paper's.
    """
    if method.name not in LEARNING:
        cause = f"method {method.name!r} is a baseline, which sees nothing ahead"
        return f"{cause}; forecasts need {_names()}, so learn the data with one of these."
    asked = used["prior"] == "paper" and not former  # a file that says nothing means it, too
    if not asked and any(_penalised(terms) for terms in method.terms):
        modes = listed([repr(mode) for mode in used["penalties"]])
        return (
            f"this model has penalties (mode {modes}), which take the place of learned priors, and "
            "without these nothing is seen ahead; for forecasts learn the data without penalties; "
            "nonnegative() alone may stay."
        )
    if former:
        return (
            "this model was begun by an earlier version, which had the paper's prior only, and "
            "sees nothing ahead; for forecasts learn the data anew, in another model or run."
        )
    return (
        "this model was made with prior='paper', which sees nothing ahead; for forecasts learn "
        "the data with prior='learned', in another model or run."
    )


def _penalised(terms: Terms) -> bool:
    return terms != Terms(nonnegative=terms.nonnegative)


def _names() -> str:
    return " or ".join(f"method={name!r}" for name in LEARNING)
