"""Thin products: what they compute, and that no thread of BLAS changes a bit of a step."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import tensortide as tt
from tensortide.core.kernels.dense import WIDTH, dot, thin_times, times_thin

sizes = st.integers(0, 11)


@given(sizes, st.one_of(sizes, st.just(WIDTH + 3)), sizes, st.booleans(), st.integers(0, 99))
def test_products_are_sums_over_the_shared_axis(
    n: int, m: int, rank: int, turned: bool, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    wide = np.asfortranarray(rng.normal(size=(n, m))) if turned else rng.normal(size=(n, m))
    thin, other = rng.normal(size=(n, rank)), rng.normal(size=(rank, m))
    np.testing.assert_allclose(
        thin_times(thin, wide), np.einsum("ir,ij->rj", thin, wide), atol=1e-12
    )
    np.testing.assert_allclose(
        times_thin(wide, other), np.einsum("ij,rj->ir", wide, other), atol=1e-11
    )
    if rank:
        assert np.isclose(dot(other[0], other[0]), sum(v * v for v in other[0]), atol=1e-12)


STEP = """
import hashlib, numpy as np, tensortide as tt
x = np.random.default_rng(0).random((240, 180, 12))
start = [np.random.default_rng(n).random((s, 6)) for n, s in enumerate((240, 180, 8))]
for method in sorted(set(tt.METHODS) - {"sdt"}):
    model = tt.OnlineCP(6, method).fit(x[..., :8], init=start, max_sweeps=0)
    for t in range(8, 12):
        model.update(x[..., t])
    info = model.info_
    facts = repr((info.objective, info.prequential_error, info.norm)).encode()
    bits = b"".join([*(f.tobytes() for f in model.factors_), facts])
    print(method, hashlib.sha256(bits).hexdigest())
"""


def test_a_step_of_every_method_has_the_same_bits_whatever_blas_does() -> None:
    """But SDT, which begins with LAPACK's singular values: on some processors BLAS splits them."""
    one, two = (
        subprocess.run(
            [sys.executable, "-c", STEP],
            env={**os.environ, "OPENBLAS_NUM_THREADS": threads},
            capture_output=True,
            text=True,
            check=True,
        ).stdout.splitlines()
        for threads in ("1", "2")
    )
    assert len(one) == len(tt.METHODS) - 1
    assert one == two
