"""The one place that talks to the compiler.

Kernels have fixed signatures, so they are compiled (or read from the disk cache) when
their module is first imported, and never again for another order, rank or layout.  The
package imports `model`, and with it all kernels, when the first data arrive.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec, TypeVar, cast

import numba

P = ParamSpec("P")
T = TypeVar("T")

REASSOCIATE = {"reassoc", "contract", "nsz", "arcp"}


def compiled(
    signature: str, *, reassociate: bool = False
) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Compile for one signature, cached on disk, with the interpreter lock released.

    `reassociate` lets the compiler reorder sums (vector registers); the order is fixed at
    compile time, so results stay repeatable.  Exact summation needs it off.
    """

    def jit(function: Callable[P, T], *, cache: bool) -> Callable[P, T]:
        decorate = numba.njit(
            signature,
            cache=cache,
            nogil=True,
            error_model="numpy",
            fastmath=REASSOCIATE if reassociate else False,
        )
        return cast(Callable[P, T], decorate(function))

    def wrap(function: Callable[P, T]) -> Callable[P, T]:
        try:
            return jit(function, cache=True)
        except RuntimeError:  # no folder can be written: compile in every process
            return jit(function, cache=False)

    return wrap
