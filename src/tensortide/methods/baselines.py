"""The methods that the paper compares with, from the equations of their own papers.

Each is a function that returns a method; cost is given in ``nnz`` (entries that a step sees),
``N`` modes, rank ``R``, ``S`` (sum of all sizes), ``P`` (cells of a slice) and ``I`` (size of the
growing mode).
"""

from __future__ import annotations

from dataclasses import replace

from tensortide.core.penalties.prox import NonNegative, Nuclear, Penalty
from tensortide.core.steps.alpha import Schedule, constant, schedule
from tensortide.core.steps.method import Limits, Recipe, Recursion, Tracking
from tensortide.validate import check_number

SLICES = Limits(one_mode=True, new_cells=True)
COMPLETE_SLICES = Limits(one_mode=True, new_cells=True, complete=True)
TRACKED = Limits(one_mode=True, new_cells=True, complete=True, listed=True, third_order=True)


def _least_squares(name: str, strategy: str, beta: float, sweeps: int) -> Recipe:
    """Return alternating least squares on all entries, not drawn to the last model."""
    return Recipe(
        name=name, keeps_history=True, alpha=constant(0.0), beta=beta, sweeps=sweeps,
        strategy=strategy,
    )  # fmt: skip


def cpc_als(beta: float = 1e-5, sweeps: int = 1) -> Recipe:
    """CPC-ALS: alternating least squares on all observed entries, warm-started.

    Karlsson, Kressner, Uschmajew: Parallel algorithms for tensor completion in the CP format,
    Parallel Computing 57 (2016).

    Objective: squared residual on all observed entries + beta || factors ||^2; every row from
    its own entries.  It is `gocpt` without the last reconstruction.
    Cost per step ``nnz N R (N + R)`` for all entries kept; memory: all entries.  Takes growth of
    any modes, late and corrected values.

    >>> import tensortide as tt
    >>> model = tt.OnlineCP(1, tt.cpc_als(sweeps=3)).fit([[1.0, 2.0], [2.0, 4.0]])
    >>> _ = model.update([[3.0], [float("nan")]])
    >>> model.predict([[1, 2]]).round(3).tolist()
    [6.0]
    """
    return _least_squares("cpc_als", "rows", beta, sweeps)


def em_als(beta: float = 1e-5, sweeps: int = 1) -> Recipe:
    """EM-ALS: impute what is missing by the model, then alternating least squares.

    Acar, Dunlavy, Kolda, Morup: Scalable tensor factorizations for incomplete data,
    Chemometrics and Intelligent Laboratory Systems 106 (2011); Walczak, Massart: Dealing with
    missing data, ibid. 58 (2001).

    Objective: squared distance to the imputed tensor + beta || factors ||^2, which lowers the
    squared residual on all observed entries.  The imputed tensor is never written out:
    cost per step ``nnz N R + S R^2`` for all entries kept; memory: all entries.  Takes growth
    of any modes, late and corrected values.  Slow where little is observed: what is imputed
    holds the model where it is.

    >>> import tensortide as tt
    >>> model = tt.OnlineCP(1, tt.em_als(sweeps=9)).fit([[1.0, 2.0], [2.0, 4.0]])
    >>> _ = model.update([[3.0], [6.0]])
    >>> model.predict([[1, 2]]).round(3).tolist()
    [6.0]
    """
    return _least_squares("em_als", "imputed", beta, sweeps)


def em_als_decay(gamma: float = 0.99, beta: float = 1e-5, sweeps: int = 1) -> Recipe:
    """EM-ALS in which a slice counts `gamma` times as much as the next one.

    The variant of section 5.1 of the GOCPT paper: exponentially decaying weights for the
    slices of the growing mode.  That is the mode that grows at the first update (the longest one,
    if several do, and before any has grown), and stays so.

    Objective: the sum over slices k of ``gamma^(I - k)`` times (squared distance to the imputed
    slice + beta || its row ||^2), + beta || other factors ||^2.
    Cost, memory and abilities as `em_als`; with ``absent="zero"`` the zeros fade with their slice.

    >>> import tensortide as tt
    >>> model = tt.OnlineCP(1, tt.em_als_decay(0.5, sweeps=9)).fit([[1.0, 2.0], [2.0, 4.0]])
    >>> _ = model.update([[3.0], [9.0]])
    >>> model.predict([[1, 2]]).round(1).tolist()
    [9.0]
    """
    return replace(_least_squares("em_als_decay", "imputed", beta, sweeps), slice_decay=gamma)


def online_cpd(beta: float = 1e-5) -> Recursion:
    """OnlineCPD: complementary matrices P and Q carry the past.

    Zhou, Vinh, Bailey, Jia, Davidson: Accelerating online CP decompositions for higher order
    tensors, KDD 2016.

    Objective: the squared residual of every slice with the factors of its time.  A step solves
    the new rows of the growing mode by least squares, then for every other mode
    ``P <- P + X_new (Khatri-Rao)``, ``Q <- Q + (Hadamard of Gram matrices)`` and
    ``A = P (Q + beta I)^-1``, each with the factors just computed.
    Cost per step ``N R P``; memory ``2 S R + N R^2`` numbers, no history.
    Cannot take: slices with holes, growth of a second mode, values between known labels.

    >>> import tensortide as tt
    >>> model = tt.OnlineCP(1, tt.online_cpd()).fit([[1.0, 2.0], [2.0, 4.0]])
    >>> _ = model.update([[3.0], [6.0]])
    >>> model.predict([[1, 2]]).round(3).tolist()
    [6.0]
    """
    return Recursion("online_cpd", 1.0, beta, COMPLETE_SLICES)


def mast(
    alpha: float | Schedule = 1.0,
    nuclear: float = 1e-5,
    beta: float = 1e-5,
    sweeps: int = 20,
    tol: float = 1e-5,
    eta: float = 1e-4,
    growth: float = 1.05,
) -> Recipe:
    """MAST: the economy objective with a nuclear norm, by ADMM; several modes may grow.

    Song, Huang, Ge, Caverlee, Hu: Multi-aspect streaming tensor completion, KDD 2017.

    Objective: squared residual on the new entries + alpha || previous model - model ||^2 on the
    old box + nuclear sum_n || factor n ||_* + beta || factors ||^2.  It is `gocpte` with
    another regulariser (section 4 of the GOCPT paper).  ADMM with weight `eta`, growing by `growth`
    per sweep, at most `sweeps` of them, until one moves every number by less than `tol` times the
    largest.  `nuclear` and `eta` are absolute, as in the paper: they suit values of the order of
    one and above.
    Cost per sweep ``nnz N R (N + R) + S R^2``, ``N R P`` for complete slices; memory ``3 S R``
    numbers, no history.
    Cannot take: values between known labels.

    >>> import tensortide as tt
    >>> model = tt.OnlineCP(1, tt.mast()).fit([[1.0, 2.0], [2.0, 4.0]])
    >>> _ = model.update(tt.Batch([[0, 2], [1, 2], [2, 0], [2, 1], [2, 2]], [3, 6, 3, 6, 9]))
    >>> model.predict([[2, 2]]).round(3).tolist()
    [9.0]
    """
    check_number("eta", eta, least=1e-300)
    check_number("growth", growth, least=1.0)
    return Recipe(
        name="mast", keeps_history=False, alpha=schedule(alpha), beta=beta, sweeps=sweeps,
        penalty=Penalty(Nuclear(nuclear), eta, growth), stop=tol, limits=Limits(new_cells=True),
    )  # fmt: skip


def cp_stream(
    mu: float = 0.99,
    beta: float = 1e-5,
    sweeps: int = 10,
    tol: float = 1e-3,
    non_negative: bool = False,
) -> Recipe:
    """CP-stream: past slices count through the Gram matrix of their rows, fading by `mu`.

    Smith, Huang, Sidiropoulos, Karypis: Streaming tensor factorization for infinite data
    sources, SDM 2018.

    Objective at step t: squared residual of the new slices + the sum over past slices k of
    ``mu^(t - k) || [[A_{t-1}, s_k]] - [[A, s_k]] ||^2`` + beta || factors ||^2; the rows s_k of
    past slices do not move, so that the sum needs only ``G = sum_k mu^(t-k) s_k' s_k``.
    `non_negative` constrains all factors, by ADMM within each block.  At most `sweeps` sweeps, new
    rows first, until one moves every number by less than `tol` times the largest.  Slices that
    come in one batch have the same age.
    Cost per sweep ``N R P`` for complete slices, ``nnz N R (N + R)`` with holes; memory ``2 S R +
    R^2`` numbers, no history.
    Cannot take: growth of a second mode, values between known labels.

    >>> import tensortide as tt
    >>> model = tt.OnlineCP(1, tt.cp_stream(non_negative=True)).fit([[1.0, 2.0], [2.0, 4.0]])
    >>> _ = model.update([[3.0], [6.0]])
    >>> model.predict([[1, 2]]).round(3).tolist()
    [6.0]
    """
    return Recipe(
        name="cp_stream", keeps_history=False, alpha=constant(1.0), beta=beta, sweeps=sweeps,
        past_decay=mu, penalty=Penalty(NonNegative()) if non_negative else None, stop=tol,
        limits=SLICES,
    )  # fmt: skip


def rlst(forgetting: float = 1.0, structured: bool = True, beta: float = 1e-5) -> Tracking:
    """RLST: recursive least squares for the unsplit factor, then rank-one splits.

    Nion, Sidiropoulos: Adaptive algorithms to track the PARAFAC decomposition of a third-order
    tensor, IEEE Transactions on Signal Processing 57 (2009).

    Objective: ``sum_t forgetting^(T - t) || x_t - H c_t ||^2`` over H for rows c_t as they were
    found; each column of H is then split by one step of the power method.  The row of a new
    slice is fitted to the split factors; ``structured=False`` reads it off H as the published code
    does, which is far worse on real images.  `beta` is the ridge of the preparation only, which
    should have at least R slices: fewer do not determine H.
    Cost per slice ``R^2 P``; memory ``R P + S R + R^2`` numbers, no history (but a dense matrix
    of the size of R slices).
    Cannot take: other than three modes, slices with holes, ``absent="zero"``, growth of a second
    mode, values between known labels.

    >>> import numpy as np, tensortide as tt
    >>> x = np.einsum("a,b,c->abc", [1.0, 2.0], [1.0, 3.0], [1.0, 2.0, 3.0])
    >>> model = tt.OnlineCP(1, tt.rlst()).fit(x[:, :, :2])
    >>> _ = model.update(x[:, :, 2:])
    >>> model.predict([[1, 1, 2]]).round(3).tolist()
    [18.0]
    """
    return Tracking("rlst", forgetting, beta, TRACKED, structured=structured)


def sdt(forgetting: float = 1.0, structured: bool = True, beta: float = 1e-5) -> Tracking:
    """SDT: the singular value decomposition of the exponential window is tracked.

    Nion, Sidiropoulos: Adaptive algorithms to track the PARAFAC decomposition of a third-order
    tensor, IEEE Transactions on Signal Processing 57 (2009).

    Objective: none in closed form.  With ``U S V'`` the rank-R decomposition of the window (slices
    as columns, weight ``forgetting^((T - t) / 2)``), ``H = U S W``; W follows from the rows of past
    slices staying as they were, and each column of H is split as in `rlst`, also as to
    `structured`.  `beta` is the ridge of the preparation only.
    Cost per slice ``R^2 P``; memory ``R P + S R + 2 R^2`` numbers, no history.
    Cannot take: what `rlst` cannot.

    >>> import numpy as np, tensortide as tt
    >>> x = np.einsum("a,b,c->abc", [1.0, 2.0], [1.0, 3.0], [1.0, 2.0, 3.0])
    >>> model = tt.OnlineCP(1, tt.sdt()).fit(x[:, :, :2])
    >>> _ = model.update(x[:, :, 2:])
    >>> model.predict([[1, 1, 2]]).round(3).tolist()
    [18.0]
    """
    return Tracking("sdt", forgetting, beta, TRACKED, by_svd=True, structured=structured)


def online_sgd(step: float = 0.1, beta: float = 1e-5) -> Recursion:
    """OnlineSGD: one gradient step on the new slices.

    Mardani, Mateos, Giannakis: Subspace learning and imputation for streaming big data matrices
    and tensors, IEEE Transactions on Signal Processing 63 (2015).

    Objective: the squared residual of the slices, fading or not, + beta || factors ||^2 (section 4
    of the GOCPT paper).  A step solves the new rows of the growing mode by least squares on their
    entries, moves all other factors at once along the gradient of the new slices' part, and
    solves the new rows once more.  The step size is `step` over the largest curvature of the
    batch, so it means the same for data of any scale (below 2 a factor cannot overshoot alone).
    Cost per step ``nnz N R (N + R)`` for the batch; memory ``S R`` numbers, no history.
    Cannot take: growth of a second mode, values between known labels.

    >>> import tensortide as tt
    >>> model = tt.OnlineCP(1, tt.online_sgd()).fit([[1.0, 2.0], [2.0, 4.0]])
    >>> _ = model.update([[3.0], [float("nan")]])
    >>> model.predict([[1, 2]]).round(3).tolist()
    [6.0]
    """
    check_number("step", step, least=0.0)
    return Recursion("online_sgd", 1.0, beta, SLICES, step, resolve=True)


def olstec(forgetting: float = 0.98, beta: float = 1e-5) -> Recursion:
    """OLSTEC: recursive least squares with forgetting, for slices with holes.

    Kasai: Online low-rank tensor subspace tracking from incomplete data by CP decomposition using
    recursive least squares, ICASSP 2016; Fast online low-rank tensor subspace tracking by CP
    decomposition using recursive least squares from incomplete observations, Neurocomputing 347
    (2019).

    Objective: the sum over steps k of ``forgetting^(t - k)`` times the squared residual of that
    step's slices with the factors of that time, + beta || factors ||^2.  The new rows of the
    growing mode are solved first and once more at the end; every row of the other modes has its
    own running Gram matrix.
    Cost per step ``nnz N R (N + R) + S R^3``; memory ``S R (R + 2)`` numbers, no history.
    Cannot take: growth of a second mode, values between known labels.

    >>> import tensortide as tt
    >>> model = tt.OnlineCP(1, tt.olstec()).fit([[1.0, 2.0], [2.0, 4.0]])
    >>> _ = model.update([[3.0], [float("nan")]])
    >>> model.predict([[1, 2]]).round(3).tolist()
    [6.0]
    """
    return Recursion("olstec", forgetting, beta, SLICES, resolve=True)
