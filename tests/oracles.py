"""The paper's formulas on dense tensors, slow and obvious.  Imports nothing of the package.

Cells are tuples, data are a dict {cell: (value, weight)}, factors are lists of 2-d arrays.
"""

from __future__ import annotations

import itertools

import numpy as np


def cells_of(shape):
    return itertools.product(*(range(n) for n in shape))


def z_row(factors, cell, skip):
    """The Khatri-Rao row of a cell: element-wise product of the other modes' rows."""
    row = np.ones(factors[0].shape[1])
    for k, i in enumerate(cell):
        if k != skip:
            row = row * factors[k][i]
    return row


def reconstruct(factors):
    shape = [len(f) for f in factors]
    letters = "abcdefgh"[: len(shape)]
    return np.einsum(",".join(f"{c}r" for c in letters) + "->" + letters, *factors)


def objective(factors, data, previous, alpha, beta, *, zeros=None):
    """eq:baseline_objective; `zeros` is the set of unlisted cells that are known to be zero."""
    y = reconstruct(factors)
    total = sum(w * (x - y[cell]) ** 2 for cell, (x, w) in data.items())
    total += sum(y[cell] ** 2 for cell in zeros or ())
    if previous is not None:
        old = tuple(slice(0, len(f)) for f in previous)
        total += alpha * ((reconstruct(previous) - y[old]) ** 2).sum()
    return total + beta * sum((f**2).sum() for f in factors)


def in_box(cell, shape):
    return all(i < n for i, n in zip(cell, shape, strict=True))


def zero_cells(data, old_shape, new_shape, *, economy):
    """Cells not listed that are known to be zero: all, or those outside the old box."""
    return {
        c for c in cells_of(new_shape) if c not in data and not (economy and in_box(c, old_shape))
    }


def start_lower(previous, data, new_shape, beta, *, absent_zero=False):
    """eq:baseline-initialize-lower with the objective's ridge; then rows that meet started
    rows, round by round; then the mean of the started new rows, or of the old rows."""
    order, rank = len(previous), previous[0].shape[1]
    old_shape = [len(f) for f in previous]
    factors = [
        np.vstack([f, np.zeros((n - len(f), rank))])
        for f, n in zip(previous, new_shape, strict=True)
    ]
    done = [set(range(n)) for n in old_shape]
    if absent_zero:  # a new row without any entry is known to be zero
        for n in range(order):
            done[n] |= set(range(new_shape[n])) - {c[n] for c in data}
    while True:
        found = []
        for n in range(order):
            for i in set(range(new_shape[n])) - done[n]:
                mine = [
                    c
                    for c in data
                    if c[n] == i and all(c[k] in done[k] for k in range(order) if k != n)
                ]
                if not mine:
                    continue
                p, q = beta * np.eye(rank), np.zeros(rank)
                cells = {c: data[c] for c in mine}
                if absent_zero:  # the box of the old rows is complete: what is not listed is zero
                    others = [range(s) if k != n else [i] for k, s in enumerate(old_shape)]
                    for c in itertools.product(*others):
                        cells.setdefault(c, (0.0, 1.0))
                for c, (x, w) in cells.items():
                    z = z_row(factors, c, n)
                    p = p + w * np.outer(z, z)
                    q = q + w * x * z
                found.append((n, i, np.linalg.solve(p, q)))
        for n, i, row in found:
            factors[n][i] = row
            done[n].add(i)
        if not found:
            break
    for n in range(order):
        new = sorted(done[n] - set(range(old_shape[n])))
        mean = factors[n][new].mean(axis=0) if new else previous[n].mean(axis=0)
        for i in set(range(new_shape[n])) - done[n]:
            factors[n][i] = mean
    return factors


def hadamard_grams(lefts, rights, skip):
    product = 1.0
    for k, (left, right) in enumerate(zip(lefts, rights, strict=True)):
        if k != skip:
            product = product * (left.T @ right)
    return product


def step_rows(
    previous,
    data,
    new_shape,
    alpha,
    beta,
    *,
    sweeps=1,
    zeros=frozenset(),
    absent_zero=False,
    full=False,
):
    """Algorithm 1 with eq:sparse-solution: every row from its own sums over cells."""
    factors = start_lower(previous, data, new_shape, beta, absent_zero=absent_zero)
    old = [len(f) for f in previous]
    rank = previous[0].shape[1]
    terms = {**dict.fromkeys(zeros, (0.0, 1.0)), **data}
    for _ in range(sweeps):
        for n in range(len(factors)):
            for rows in (range(old[n]), range(old[n], new_shape[n])):
                solved = {}
                for i in rows:
                    in_data = terms if absent_zero and (full or i >= old[n]) else data
                    if not any(c[n] == i for c in in_data):
                        continue
                    p, q = beta * np.eye(rank), np.zeros(rank)
                    for c, (x, w) in terms.items():
                        if c[n] == i:
                            z = z_row(factors, c, n)
                            p += w * np.outer(z, z)
                            q += w * x * z
                    if i < old[n]:
                        upper = [f[:m] for f, m in zip(factors, old, strict=True)]
                        p += alpha * hadamard_grams(upper, upper, n)
                        q += alpha * previous[n][i] @ hadamard_grams(previous, upper, n)
                    solved[i] = np.linalg.solve(p, q)
                for i, row in solved.items():
                    factors[n][i] = row
    return factors


def unfold(x, n):
    return np.moveaxis(x, n, 0).reshape(x.shape[n], -1)


def khatri_rao(factors, skip):
    """Rows in the order of the columns of `unfold`."""
    out = np.ones((1, factors[0].shape[1]))
    for k, f in enumerate(factors):
        if k != skip:
            out = (out[:, None, :] * f[None, :, :]).reshape(-1, f.shape[1])
    return out


def step_imputed(previous, data, new_shape, alpha, beta, *, sweeps=1):
    """Algorithm 1 with eq:dense-solution: impute the whole tensor, then dense ALS blocks.

    Rows without an entry stay untouched.
    """
    factors = start_lower(previous, data, new_shape, beta)
    old = [len(f) for f in previous]
    rank = previous[0].shape[1]
    for _ in range(sweeps):
        full = reconstruct(factors)
        for cell, (x, _) in data.items():
            full[cell] = x
        for n in range(len(factors)):
            for rows in (slice(0, old[n]), slice(old[n], new_shape[n])):
                p = hadamard_grams(factors, factors, n) + beta * np.eye(rank)
                q = unfold(full, n)[rows] @ khatri_rao(factors, n)
                if rows.start == 0:
                    upper = [f[:m] for f, m in zip(factors, old, strict=True)]
                    p = p + alpha * hadamard_grams(upper, upper, n)
                    q = q + alpha * previous[n] @ hadamard_grams(previous, upper, n)
                new = np.linalg.solve(p, q.T).T
                touched = [i for i in range(rows.start, rows.stop) if any(c[n] == i for c in data)]
                for i in touched:
                    factors[n][i] = new[i - rows.start]
    return factors


# ---------------------------------------------------------------- other losses


def loss_value(name, x, y):
    """One entry's loss from the textbook; minus log-likelihoods less that of a perfect fit."""
    tiny = 1e-10
    if name == "squared":
        return (x - y) ** 2
    if name == "huber":
        return (x - y) ** 2 if abs(x - y) <= 1.0 else 2.0 * abs(x - y) - 1.0
    if name == "bernoulli":
        return x * np.logaddexp(0.0, -y) + (1.0 - x) * np.logaddexp(
            0.0, y
        )  # - log p, - log (1 - p)
    if name == "gamma":
        return np.log((y + tiny) / x) + x / (y + tiny) - 1.0
    perfect = 0.0 if x == 0 else x * np.log(x)
    if name == "poisson":  # minus the log-likelihood, less that of y = x
        return (y + tiny) - x * np.log(y + tiny) - (x - perfect)
    if name == "negative_binomial":
        size = 10.0
        own = (x + size) * np.log(y + tiny + size) - x * np.log(y + tiny)
        return own - ((x + size) * np.log(x + size) - perfect)
    raise AssertionError(name)


def anchor(loss, data, zeros=(), *, by_components=False):
    """What the distance to the old model is worth: its curvature at the mean becomes the loss's."""
    if loss in ("squared", "huber") or not data:
        return 1.0
    size = sum(w for _, w in data.values()) + len(zeros)
    m = sum(w * x for x, w in data.values()) / size
    if loss == "bernoulli":
        p = min(max(m, 0.01), 0.99)
        return 0.5 * max(p * (1.0 - p), 0.01)
    if loss != "gamma":
        m = max(m, 1.0 / size)
    curvature = 1.0 / {"poisson": m, "negative_binomial": m + m * m / 10.0, "gamma": m * m}[loss]
    return curvature * m if by_components else 0.5 * curvature


def divergence(old, new):
    """Kullback and Leibler's divergence of a positive array from another, cell by cell."""
    total = 0.0
    for x, y in zip(np.ravel(old), np.ravel(new), strict=True):
        total += y - x + (x * np.log(x / y) if x > 0.0 else 0.0)
    return total


def divergence_of_components(previous, factors):
    """The divergences of the rank-one parts of two models over the old box, summed."""
    total = 0.0
    for r in range(previous[0].shape[1]):
        old = reconstruct([f[:, [r]] for f in previous])
        new = reconstruct([f[: len(p), [r]] for f, p in zip(factors, previous, strict=True)])
        total += divergence(old, new)
    return total


def general_objective(
    factors, data, previous, alpha, beta, loss, *, zeros=(), ridge=0.0, l1=0.0, smooth=(),
    by_components=False,
):  # fmt: skip
    """The objective with any loss; `smooth` lists (mode, i, j, weight), ridge, l1: of mode 0."""
    y = reconstruct(factors)
    total = sum(w * loss_value(loss, x, y[cell]) for cell, (x, w) in data.items())
    total += sum(loss_value(loss, 0.0, y[cell]) for cell in zeros)
    if previous is not None and by_components:
        total += alpha * divergence_of_components(previous, factors)
    elif previous is not None:
        old = tuple(slice(0, len(f)) for f in previous)
        total += alpha * ((reconstruct(previous) - y[old]) ** 2).sum()
    total += beta * sum((f**2).sum() for f in factors)
    total += ridge * (factors[0] ** 2).sum()
    for r in range(factors[0].shape[1]):
        size = np.prod([np.sqrt((f[:, r] ** 2).sum()) for f in factors[1:]])
        total += l1 * size * np.abs(factors[0][:, r]).sum()
    for m, i, j, w in smooth:  # squared distance of the two slices, component by component
        for r in range(factors[0].shape[1]):
            size = np.prod([(f[:, r] ** 2).sum() for k, f in enumerate(factors) if k != m])
            total += w * size * (factors[m][i, r] - factors[m][j, r]) ** 2
    return total
