"""Times of this state beside those of an earlier one, by turns on this machine.

    python -m benchmarks.turns COMMIT [TURNS]

Times are seconds of the processor, the best of all turns: machines are noisy, and by turns both
meet the same noise.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent


def times(source: Path) -> dict[str, float]:
    """Return the times of the package in `source`."""
    env = os.environ | {"PYTHONPATH": str(source)}
    done = subprocess.run(
        [sys.executable, str(HERE / "turn_times.py")], env=env, check=True, capture_output=True,
        text=True, cwd=tempfile.gettempdir(),
    )  # fmt: skip
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def main() -> None:
    """Print a table."""
    if len(sys.argv) not in (2, 3):
        raise SystemExit(__doc__)
    turns = int(sys.argv[2]) if len(sys.argv) == 3 else 3
    with tempfile.TemporaryDirectory() as folder:
        earlier = Path(folder) / "earlier"
        subprocess.run(["git", "clone", "-q", str(HERE.parent), str(earlier)], check=True)
        subprocess.run(["git", "-C", str(earlier), "checkout", "-q", sys.argv[1]], check=True)
        sources = {"before": earlier / "src", "now": HERE.parent / "src"}
        for source in sources.values():
            times(source)  # compiles
        found: dict[str, list[dict[str, float]]] = {"before": [], "now": []}
        for _ in range(turns):
            for name, source in sources.items():
                found[name].append(times(source))
    print("| what | before, s | now, s | ratio |\n|---|---|---|---|")
    for part in found["now"][0]:
        before, now = (min(turn[part] for turn in found[name]) for name in ("before", "now"))
        print(f"| {part.replace('_', ' ')} | {before:.4f} | {now:.4f} | {now / before:.2f} |")


if __name__ == "__main__":
    main()
