"""What candidates miss on zeros that are not listed, against all cells looked at one by one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tensortide.core.losses.standard import loss_for
from tensortide.core.steps import missed
from tensortide.core.steps.missed import Missed, UnlistedZeros


@pytest.mark.parametrize("loss", ["squared", "poisson", "bernoulli"])
@settings(max_examples=40)
@given(seed=st.integers(0, 9999), order=st.integers(2, 4), piece=st.sampled_from([1, 3, 1 << 16]))
def test_listed_cells_and_unlisted_zeros_are_all_cells_of_a_label(loss, seed, order, piece):
    rng = np.random.default_rng(seed)
    rank, n = int(rng.integers(1, 4)), int(rng.integers(1, 5))
    rows = [rng.random((int(rng.integers(1, 5)), rank)) for _ in range(order - 1)]
    found = rng.standard_normal((n, rank))
    cells = list(np.ndindex(*map(len, rows)))
    listed = [c for c in cells if rng.random() < 0.4]
    values = {c: rng.random() for c in listed}
    expected, given_errors, z = np.zeros((n, n)), [], []
    for c in cells:
        product = np.prod([r[i] for r, i in zip(rows, c, strict=True)], axis=0)
        y = found @ product
        y = 1.0 / (1.0 + np.exp(-y)) if loss == "bernoulli" else y
        error = values.get(c, 0.0) - y
        expected += np.outer(error, error)
        if c in values:
            given_errors.append(error)
            z.append(product)
    of_listed = Missed.of(np.array(given_errors).reshape(-1, n))
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(missed, "PIECE", piece)
        zeros = UnlistedZeros(loss_for(loss), [r.T @ r for r in rows], rows)
        total = of_listed.gram + zeros.missed(found, np.array(z).reshape(-1, rank))
    assert of_listed.n == len(listed)
    np.testing.assert_allclose(total, expected, rtol=1e-8, atol=1e-9 * np.abs(expected).max())
