"""Tell whether this state computes the same bits as an earlier one, on this machine.

    python -m benchmarks.same_bits COMMIT

Both run the fixed streams of `benchmarks.same_streams`: all methods, losses, the tracker, the
nowcaster.  Hashes are not stored, since another processor rounds otherwise.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent


def results(source: Path, into: Path) -> dict[str, bytes]:
    """Run the streams on the package in `source`, its kernels compiled anew and at once.

    Sums may be ordered otherwise where some of them come from an earlier compilation.
    """
    kernels = str(into.with_suffix(".kernels"))
    env = os.environ | {"PYTHONPATH": str(source), "NUMBA_CACHE_DIR": kernels}
    script = [sys.executable, str(HERE / "same_streams.py"), str(into)]
    subprocess.run(script, env=env, check=True, cwd=into.parent)
    with np.load(into) as found:
        return {name: found[name].tobytes() for name in found.files}


def compare(before: dict[str, bytes], now: dict[str, bytes]) -> list[str]:
    """Name the results that differ or are not in both."""
    return sorted(name for name in before | now if before.get(name) != now.get(name))


def main() -> None:
    """Compare, say it, and fail if anything differs."""
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    with tempfile.TemporaryDirectory() as folder:
        earlier = Path(folder) / "earlier"
        subprocess.run(["git", "clone", "-q", str(HERE.parent), str(earlier)], check=True)
        subprocess.run(["git", "-C", str(earlier), "checkout", "-q", sys.argv[1]], check=True)
        before = results(earlier / "src", Path(folder) / "before.npz")
        now = results(HERE.parent / "src", Path(folder) / "now.npz")
    wrong = compare(before, now)
    for name in wrong:
        print(f"differs: {name}")
    print(f"{len(before):,} results before, {len(now):,} now, {len(wrong):,} differ")
    raise SystemExit(bool(wrong))


if __name__ == "__main__":
    main()
