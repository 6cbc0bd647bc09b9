"""Hyperparameters of row priors: the mean row of a mode, the scatter of its rows, the noise.

The scatter S of the rows of a mode about their mean m comes from sums over the rows:

    S = (sum a a' - n m m' + sum C + D / n) / (n - 1 + 1 / n)

with C the covariance of a row and D the diagonal of the mean of ``a a'``: a pseudo row as large
as the others, of weight one n-th, speaks while there are few.  Of a single row nobody knows how
far others will lie from it.  The precision of the prior is ``s2 S^-1``, in units of one cell; it is
inverted as a correlation matrix with `FLAT` added to its diagonal, as a mode with fewer rows than
components has none else.
"""

from __future__ import annotations

import numpy as np

from tensortide.arrays import Floats
from tensortide.core.kernels.matrices import prior_precisions, scatter_precision
from tensortide.core.tensor.packed import packed_width
from tensortide.errors import SolveError

FLAT = 1e-6  # added to the diagonal of a correlation matrix before it is inverted
NO_NOISE = 1e-12  # the noise of data that are all zero: whatever comes next is news
FAINT = 1e-8  # share of the mean square of all values below which noise is not believed


def faintest(size: float) -> float:
    """Return the smallest noise that is believed of values of this mean square."""
    return FAINT * size or NO_NOISE


def above(size: float) -> float:
    """Return the next power of two: a bound of squares that gives no value away.

    >>> above(25.0)
    32.0
    """
    return float(np.ldexp(1.0, np.frexp(size)[1])) if size > 0.0 else 0.0


def mode_precisions(
    squares: Floats, sums: Floats, n_rows: tuple[int, ...], spread: Floats, noise: float
) -> Floats:
    """Return the precision of the prior of each mode, packed.

    `squares` are the sums of ``a a'`` over its rows, `sums` of ``a``, `spread` of ``T^-1``, packed.
    """
    out = np.empty_like(spread)
    failed = prior_precisions(squares, sums, np.array(n_rows, np.int64), spread, noise, FLAT, out)
    if failed >= 0 or not np.isfinite(out).all():
        raise _no_scatter(max(int(failed), 0))
    return out


def precision(variances: Floats, noise: float, size: Floats, mode: int) -> Floats:
    """Return ``noise S^-1`` of a given scatter, packed.

    `size` is the mean square of the rows: no variance is believed that is far below it.
    """
    out = np.empty(packed_width(len(size)))
    if scatter_precision(variances.copy(), np.ascontiguousarray(size), noise, FLAT, out):
        raise _no_scatter(mode)
    return out


def _no_scatter(mode: int) -> SolveError:
    return SolveError(
        "its rows have no finite scatter: values or factors are too large or too small; "
        "scale the values",
        mode=mode,
        position=0,
    )
