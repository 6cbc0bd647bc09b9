"""Ways to run steps of rows with learned priors on small tensors, for laws and oracles."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import pytest

from tensortide.core.steps.beliefs import Beliefs
from tensortide.core.steps.blocks import step
from tensortide.core.tensor import packed
from tensortide.core.tensor.factors import Factors
from tensortide.online.ahead import begun_anew
from tests.engines import recipe
from tests.oracles_believed import Rows, diagonal, whole


@contextmanager
def storing(kind):
    """Keep whole matrices of rows, or diagonals as for large ranks; gives what is kept."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(packed, "FULL_RANK", {"whole": 20, "diagonal": 1}[kind])
        yield {"whole": whole, "diagonal": diagonal}[kind]


def some_rows(means, seed=0, noise=0.3, keep=whole):
    """Rows with precisions of all sizes."""
    rng = np.random.default_rng(seed)
    told = []
    for m in means:
        roots = rng.standard_normal((len(m), m.shape[1], m.shape[1] + 2))
        size = 10.0 ** rng.uniform(-1, 1, (len(m), 1, 1))
        told.append(np.array([keep(t) for t in size * roots @ roots.transpose(0, 2, 1)]))
    return Rows([m.copy() for m in means], told, noise)


def factors_of(rows):
    return Factors(rows.means, precisions=[packed.pack(told) for told in rows.told])


def beliefs_of(rows, factors):
    """Beliefs that know the noise and nothing of an outlook."""
    rank, none = factors.rank, np.zeros((0, 0))
    beliefs = Beliefs(
        noise=rows.noise, cells=rows.cells, size=1.0, spread=none, timeline=-1, grown=0, unit=1,
        monthly=False, periods=(), ahead=none, known=none, blend=np.zeros((0, 3, 3)),
        drift=np.zeros((rank, rank)), n_drift=0.0,
    )  # fmt: skip
    return begun_anew(beliefs, factors)


def run_believed(rows, change, *, economy, beliefs=None, **options):
    """The outcome of a step, and all rows after it."""
    factors = factors_of(rows)
    method = replace(recipe(economy=economy, **options), learned=True)
    memory = (beliefs_of(rows, factors) if beliefs is None else beliefs).as_memory()
    outcome = step(method, factors, change, memory=memory)
    return outcome, rows_after(factors, outcome)


def rows_after(factors, outcome):
    """Means, precisions and noise of all rows, those that did not take part too."""
    factors.put(
        outcome.positions, outcome.rows, outcome.new_shape, outcome.grams, outcome.precisions
    )
    found = Beliefs.of_memory(outcome.memory)
    told = [packed.unpack(one, factors.rank) for one in factors.precisions()]
    return Rows(factors.rows(), told, found.noise, found.cells, outcome.objective)


def assert_same(fast, slow, rtol=1e-8):
    """The same rows, precisions, noise and objective."""
    assert fast.noise == pytest.approx(slow.noise, rel=rtol)
    assert fast.bound == pytest.approx(slow.bound, rel=1e-6, abs=1e-6)
    assert fast.cells == slow.cells
    for got, expected in zip([*fast.means, *fast.told], [*slow.means, *slow.told], strict=True):
        np.testing.assert_allclose(got, expected, rtol=rtol, atol=rtol * np.abs(expected).max())
