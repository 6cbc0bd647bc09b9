"""One colour and line per method, the same in every figure.

Okabe and Ito's palette, which people with any colour vision can tell apart; methods that share
a colour differ by line.
"""

from __future__ import annotations

from typing import Any

from tensortide.errors import TensortideError

BLUE, ORANGE, GREEN, RED = "#0072B2", "#E69F00", "#009E73", "#D55E00"
PURPLE, SKY, BLACK, GREY = "#CC79A7", "#56B4E9", "#000000", "#7F7F7F"
STYLES: dict[str, tuple[str, str]] = {
    "gocpt": (BLUE, "-"),
    "gocpte": (ORANGE, "-"),
    "cpc_als": (GREEN, "-"),
    "em_als": (RED, "-"),
    "em_als_decay": (RED, "--"),
    "online_cpd": (PURPLE, "-"),
    "mast": (SKY, "-"),
    "cp_stream": (BLACK, "--"),
    "rlst": (GREY, "-"),
    "sdt": (GREY, ":"),
    "online_sgd": (BLACK, ":"),
    "olstec": (GREEN, "--"),
}
VARIANT = (0, (5, 1, 1, 1))  # the same method with other parameters


def line_style(method: str, *, variant: bool = False) -> dict[str, Any]:
    """Return how a method's line is drawn."""
    colour, line = STYLES[method]
    return {"color": colour, "linestyle": VARIANT if variant else line, "linewidth": 1.6}


def plotting() -> Any:
    """Return matplotlib's pyplot for files; without matplotlib, say how to get it."""
    try:
        import matplotlib

        matplotlib.use("Agg")
        from matplotlib import pyplot
    except ImportError:
        raise TensortideError(
            "figures need matplotlib; install it with: python -m pip install matplotlib."
        ) from None
    return pyplot
