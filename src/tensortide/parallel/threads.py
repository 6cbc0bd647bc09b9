"""A few threads for large blocks; small ones stay on the calling thread."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache

from tensortide.arrays import Floats
from tensortide.core.tensor.workspace import Block
from tensortide.core.updates.exact import Run, serially


@cache
def runner(threads: int | None) -> Run:
    """Return a way to run the parts of a block on up to `threads` threads (None: all cores).

    Kernels release the interpreter lock, parts are cut by the data alone, and results come
    back in order, so the number of threads changes no bit of the result.
    """
    count = (os.cpu_count() or 1) if threads is None else threads
    return serially if count == 1 else _Pool(count)


class _Pool:
    def __init__(self, count: int) -> None:
        self._count = count

    def __call__(
        self, task: Callable[[Block], Floats], blocks: Sequence[Block]
    ) -> Iterable[Floats]:
        if len(blocks) == 1:
            return serially(task, blocks)
        with ThreadPoolExecutor(min(self._count, len(blocks))) as pool:
            return list(pool.map(task, blocks))
