"""`make bench`: all measurements, each as a table that can be pasted into the docs."""

from __future__ import annotations

import argparse

from benchmarks import (
    answers,
    counts,
    flat,
    forecast,
    kept,
    losses,
    nowcast,
    peer,
    peers,
    priors,
    startup,
    sweep,
    tracker,
)

PARTS = {
    "startup": startup.main,
    "sweep": sweep.main,
    "flat": flat.main,
    "tracker": tracker.main,
    "nowcast": nowcast.main,
    "losses": losses.main,
    "counts": counts.main,
    "kept": kept.main,
    "priors": priors.main,
    "forecast": forecast.main,
    "answers": answers.main,
    "peer": peer.main,
    "peers": peers.main,
}


def main() -> None:
    """Run the parts named, or all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", help=f"some of {', '.join(PARTS)}; default: all")
    chosen = parser.parse_args().parts or list(PARTS)
    for wrong in set(chosen) - set(PARTS):
        parser.error(f"there is no part {wrong!r}; there are {', '.join(PARTS)}")
    for part in chosen:
        print(f"\n## {part}\n")
        PARTS[part]()


if __name__ == "__main__":
    main()
