"""Import is light and compiles nothing; kernels compile once per machine."""

from __future__ import annotations

import json
import os
import subprocess
import sys

STEP = """
import json, sys
import numba.core.event as event
compiled = []
class Recorder(event.Listener):
    def on_start(self, e): compiled.append(str(e.data["dispatcher"].py_func.__name__))
    def on_end(self, e): pass
event.register("numba:compile", Recorder())
import numpy as np
import tensortide as tt
counts = []
for shape, rank, method in [((6, 5, 4), 2, "gocpte"), ((6, 5, 4), 2, "gocpt"),
                            ((4, 5), 3, "gocpt"), ((3, 4, 2, 5, 3), 1, "gocpte")]:
    x = tt.simulate.low_rank(shape, 1, seed=0).dense()
    for options in ({}, {"absent": "zero"}):
        model = tt.OnlineCP(rank, method, **options).fit(x, max_sweeps=2)
        model.update(x[..., :1])
        model.update(tt.Batch([[0] * len(shape)], [1.0], weights=[2.0]))
    counts.append(len(compiled))
print(json.dumps(counts))
"""


def python(code: str, **env: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **env},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_import_loads_neither_compiler_nor_tables():
    heavy = python(
        "import sys, tensortide as tt; tt.OnlineCP(2); tt.gocpte(); tt.density(1)\n"
        "print([m for m in ('numba', 'pyarrow', 'narwhals', 'pandas', 'rich', 'typer', 'scipy') "
        "if m in sys.modules])"
    )
    assert heavy.strip() == "[]"


def test_kernels_compile_once_for_all_orders_ranks_and_processes(tmp_path):
    cold = json.loads(python(STEP, NUMBA_CACHE_DIR=str(tmp_path)))
    assert cold[0] > 0
    assert cold == [cold[0]] * 4  # another method, order or rank compiles nothing
    warm = json.loads(python(STEP, NUMBA_CACHE_DIR=str(tmp_path)))
    assert warm == [0, 0, 0, 0]
