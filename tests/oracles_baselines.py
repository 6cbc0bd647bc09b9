"""The published recursions of the baselines on dense third- and fourth-order slices.

Slow and obvious; imports nothing of the package.  A stream is a list of dense slices with NaN
for what is missing; the growing mode is the last.  Factors are lists of arrays, `past` is what
a method carries.  `ridge` is the package's beta.
"""

from __future__ import annotations

import numpy as np

from tests.oracles import hadamard_grams, khatri_rao, reconstruct, unfold


def solve_row(z, x, ridge):
    """Least squares of x on the columns of z, with a ridge."""
    return np.linalg.solve(z.T @ z + ridge * np.eye(z.shape[1]), z.T @ x)


def new_time_row(spatial, piece, ridge):
    """The row of a new slice: least squares on its observed cells, all other factors fixed."""
    z = khatri_rao([*spatial, np.ones((1, spatial[0].shape[1]))], len(spatial))
    x = piece.ravel()
    seen = ~np.isnan(x)
    return solve_row(z[seen], x[seen], ridge)


def mode_rows(piece, spatial, c, n):
    """For each row of mode n: its Khatri-Rao rows and its observed values in one slice."""
    factors = [*spatial, c[None, :]]
    z = khatri_rao(factors, n)
    for row in unfold(piece[..., None], n):
        seen = ~np.isnan(row)
        yield z[seen], row[seen]


def complete_equations(piece, spatial, c, n):
    """P and Q of OnlineCPD: MTTKRP of the slice, Hadamard product of Gram matrices."""
    factors = [*spatial, c[None, :]]
    return unfold(piece[..., None], n) @ khatri_rao(factors, n), hadamard_grams(factors, factors, n)


def online_cpd(x, factors, pieces, ridge):
    """Zhou et al. 2016, with the factors just computed."""
    spatial, times = [f.copy() for f in factors[:-1]], list(factors[-1])
    p = [unfold(x, n) @ khatri_rao(factors, n) for n in range(len(spatial))]
    q = [hadamard_grams(factors, factors, n) for n in range(len(spatial))]
    for piece in pieces:
        c = new_time_row(spatial, piece, ridge)
        for n in range(len(spatial)):
            dp, dq = complete_equations(piece, spatial, c, n)
            p[n], q[n] = p[n] + dp, q[n] + dq
            spatial[n] = p[n] @ np.linalg.inv(q[n] + ridge * np.eye(len(c)))
        times.append(c)
    return [*spatial, np.array(times)]


def olstec(x, factors, pieces, forgetting, ridge):
    """Kasai 2016, eqs. of Algorithm 1: the recursion for R_l and a_l, written out.

    Starts from the sums of the preparation data instead of a multiple of the identity.
    """
    spatial, times = [f.copy() for f in factors[:-1]], list(factors[-1])
    rank = factors[0].shape[1]
    eye = ridge * np.eye(rank)
    running = []
    for n in range(len(spatial)):
        z = khatri_rao(factors, n)
        running.append([])
        for i, row in enumerate(unfold(x, n)):
            seen = ~np.isnan(row)
            gram = z[seen].T @ z[seen] + eye
            running[n].append(gram)
            # the recursion holds for a_l that solves the past exactly
            spatial[n][i] = np.linalg.solve(gram, z[seen].T @ row[seen])
    fitted = [s.copy() for s in spatial]
    spatial = [f.copy() for f in factors[:-1]]
    for piece in pieces:
        c = new_time_row(spatial, piece, ridge)
        for n in range(len(spatial)):
            rows = list(mode_rows(piece, spatial, c, n))
            for i, (z, values) in enumerate(rows):
                gram = forgetting * running[n][i] + z.T @ z + (1 - forgetting) * eye
                a = fitted[n][i]
                inverse = np.linalg.inv(gram)
                a = a - (1 - forgetting) * ridge * inverse @ a + inverse @ (z.T @ (values - z @ a))
                running[n][i], fitted[n][i] = gram, a
            spatial[n] = fitted[n].copy()
        times.append(new_time_row(spatial, piece, ridge))
    return [*spatial, np.array(times)]


def online_sgd(factors, pieces, step, ridge):
    """Mardani et al. 2015: all factors at once along the gradient, rate = step / curvature."""
    spatial, times = [f.copy() for f in factors[:-1]], list(factors[-1])
    for piece in pieces:
        c = new_time_row(spatial, piece, ridge)
        seen = ~np.isnan(piece)
        gap = np.where(seen, piece - reconstruct([*spatial, c[None, :]])[..., 0], 0.0)
        new = []
        for n in range(len(spatial)):
            ascent = unfold(gap[..., None], n) @ khatri_rao([*spatial, c[None, :]], n)
            largest = max(
                np.linalg.norm(z, 2) ** 2 if len(z) else 0.0
                for z, _ in mode_rows(piece, spatial, c, n)
            )
            rate = step / (largest + ridge)
            new.append((1 - rate * ridge) * spatial[n] + rate * ascent)
        spatial = new
        times.append(new_time_row(spatial, piece, ridge))
    return [*spatial, np.array(times)]


def cp_stream(factors, pieces, mu, ridge, sweeps):
    """Smith et al. 2018, eqs. for s_t, Phi and Psi; complete slices or slices with holes."""
    spatial, times = [f.copy() for f in factors[:-1]], list(factors[-1])
    rank = factors[0].shape[1]
    g = np.zeros((rank, rank))
    for s in factors[-1]:
        g = mu * g + np.outer(s, s)
    for piece in pieces:
        old = [s.copy() for s in spatial]
        for _ in range(sweeps):
            c = new_time_row(spatial, piece, ridge)
            for n in range(len(spatial)):
                own = hadamard_grams(spatial, spatial, n) * (mu * g)
                link = hadamard_grams(old, spatial, n) * (mu * g)
                for i, (z, values) in enumerate(list(mode_rows(piece, spatial, c, n))):
                    phi = own + z.T @ z + ridge * np.eye(rank)
                    psi = z.T @ values + old[n][i] @ link
                    spatial[n][i] = np.linalg.solve(phi, psi)
        g = mu * g + np.outer(c, c)
        times.append(c)
    return [*spatial, np.array(times)]


def shrink(a, weight):
    left, sizes, right = np.linalg.svd(a, full_matrices=False)
    return left @ np.diag(np.maximum(sizes - weight, 0.0)) @ right


def mast_objective(factors, previous, cells, alpha, weight, ridge):
    """Song et al. 2017 (section 4 of the GOCPT paper): new cells, old model, nuclear norms."""
    y = reconstruct(factors)
    old = tuple(slice(0, len(f)) for f in previous)
    total = sum((x - y[c]) ** 2 for c, x in cells.items())
    total += alpha * ((reconstruct(previous) - y[old]) ** 2).sum()
    total += ridge * sum((f**2).sum() for f in factors)
    return total + weight * sum(np.linalg.svd(f, compute_uv=False).sum() for f in factors)


def mast(previous, start, cells, alpha, weight, ridge, sweeps, eta, growth):
    """One step of MAST's ADMM; `start` are the factors with their new rows."""
    factors = [f.copy() for f in start]
    old = [len(f) for f in previous]
    rank = factors[0].shape[1]
    copies = [f.copy() for f in factors]
    duals = [np.zeros_like(f) for f in factors]
    for _ in range(sweeps):
        eta *= growth
        for n in range(len(factors)):
            copies[n] = shrink(factors[n] - duals[n] / eta, weight / eta)
        for n in range(len(factors)):
            new = factors[n].copy()
            for i in range(len(factors[n])):
                # gradient of the smooth part plus <Y, Z - A> + eta / 2 |Z - A|^2 set to zero
                lhs = (2 * ridge + eta) * np.eye(rank)
                rhs = duals[n][i] + eta * copies[n][i]
                for c, x in cells.items():
                    if c[n] == i:
                        z = np.prod([factors[k][c[k]] for k in range(len(c)) if k != n], axis=0)
                        lhs = lhs + 2 * np.outer(z, z)
                        rhs = rhs + 2 * x * z
                if i < old[n]:
                    upper = [f[:m] for f, m in zip(factors, old, strict=True)]
                    lhs = lhs + 2 * alpha * hadamard_grams(upper, upper, n)
                    rhs = rhs + 2 * alpha * previous[n][i] @ hadamard_grams(previous, upper, n)
                new[i] = np.linalg.solve(lhs, rhs)
            factors[n] = new
        for n in range(len(factors)):
            duals[n] = duals[n] + eta * (copies[n] - factors[n])
    return factors


def split(h, spatial):
    """One step of the power method for each column of H, from the normalised old a."""
    a, b = (s.copy() for s in spatial)
    for r in range(h.shape[1]):
        matrix = h[:, r].reshape(len(a), len(b))
        right = matrix.T @ (a[:, r] / np.linalg.norm(a[:, r]))
        left = matrix @ right
        a[:, r], b[:, r] = left / np.linalg.norm(left), right
    return [a, b]


def rlst(x, factors, pieces, forgetting, structured):
    """Nion and Sidiropoulos 2009, exponential window, H = R P^-1.

    `structured`: rows of C by least squares on the split factors instead of on H.
    """
    a, b, times = factors[0].copy(), factors[1].copy(), list(factors[2])
    r = x.reshape(-1, x.shape[2]) @ factors[2]
    p = factors[2].T @ factors[2]
    for piece in pieces:
        v = piece.ravel()
        c = new_time_row([a, b], piece, 0.0) if structured else p @ np.linalg.pinv(r) @ v
        r, p = forgetting * r + np.outer(v, c), forgetting * p + np.outer(c, c)
        a, b = split(r @ np.linalg.inv(p), [a, b])
        plain = p @ np.linalg.pinv(r) @ v
        times.append(new_time_row([a, b], piece, 0.0) if structured else plain)
    return [a, b, np.array(times)]


def sdt(x, factors, pieces, forgetting, structured):
    """Nion and Sidiropoulos 2009: V of the whole window kept, W from the old rows of C."""
    a, b, times = factors[0].copy(), factors[1].copy(), list(factors[2])
    rank = factors[0].shape[1]
    length = x.shape[2]
    window = x.reshape(-1, length) * np.sqrt(forgetting ** np.arange(length - 1, -1, -1.0))
    u, s, vt = (m for m in np.linalg.svd(window, full_matrices=False))
    u, s, v = u[:, :rank], np.diag(s[:rank]), vt[:rank].T
    w = np.linalg.pinv(u @ s) @ khatri_rao([a, b], 2)
    for piece in pieces:
        # the window is known through its rank-R decomposition only
        window = np.column_stack([np.sqrt(forgetting) * u @ s @ v.T, piece.ravel()])
        old_c = v @ np.linalg.inv(w).T
        u, s, vt = np.linalg.svd(window, full_matrices=False)
        u, s, v = u[:, :rank], np.diag(s[:rank]), vt[:rank].T
        # old rows of C stay: sqrt(forgetting) C_old = V[:-1] W^-T
        w_inverse_t = np.linalg.pinv(v[:-1]) @ (np.sqrt(forgetting) * old_c)
        w = np.linalg.inv(w_inverse_t.T)
        a, b = split(u @ s @ w, [a, b])
        plain = w_inverse_t.T @ v[-1]
        times.append(new_time_row([a, b], piece, 0.0) if structured else plain)
    return [a, b, np.array(times)]


def decayed_objective(factors, slices, gamma, ridge):
    """Mardani et al. 2015 as in section 4 of the GOCPT paper: slices fade, and so do their rows.

    `slices` is the tensor with NaN for what is missing; the last mode is time.
    """
    y, last = reconstruct(factors), slices.shape[-1]
    total = ridge * sum((f**2).sum() for f in factors[:-1])
    for k in range(last):
        weight = gamma ** (last - 1 - k)
        total += weight * np.nansum((slices[..., k] - y[..., k]) ** 2)
        total += weight * ridge * (factors[-1][k] ** 2).sum()
    return total


def em_als_decay(start, slices, gamma, ridge, sweeps):
    """EM-ALS on slices that fade: impute, then weighted dense ALS mode by mode."""
    factors = [f.copy() for f in start]
    last = slices.shape[-1]
    weights = gamma ** np.arange(last - 1, -1, -1.0)
    rank = factors[0].shape[1]
    for _ in range(sweeps):
        full = np.where(np.isnan(slices), reconstruct(factors), slices)
        for n in range(len(factors) - 1):
            scaled = [*factors[:-1], factors[-1] * np.sqrt(weights)[:, None]]
            gram = hadamard_grams(scaled, scaled, n) + ridge * np.eye(rank)
            rhs = unfold(full * np.sqrt(weights), n) @ khatri_rao(scaled, n)
            factors[n] = np.linalg.solve(gram, rhs.T).T
        gram = hadamard_grams(factors, factors, len(factors) - 1) + ridge * np.eye(rank)
        rhs = unfold(full, len(factors) - 1) @ khatri_rao(factors, len(factors) - 1)
        factors[-1] = np.linalg.solve(gram, rhs.T).T
    return factors
