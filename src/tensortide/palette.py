"""Colours and lines, one of each for a method, and what figures for paper have in common.

Okabe and Ito's palette, which people with any colour vision can tell apart; methods that share
a colour differ by line.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tensortide.atomic import writing
from tensortide.errors import TensortideError

BLUE, ORANGE, GREEN, RED = "#0072B2", "#E69F00", "#009E73", "#D55E00"
PURPLE, SKY, BLACK, GREY = "#CC79A7", "#56B4E9", "#000000", "#7F7F7F"
COLOURS = (BLUE, ORANGE, GREEN, PURPLE, RED, SKY, GREY, BLACK)
DASHES = ("solid", "dash", "dot", "dashdot")
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
#: What needs no model is thin and black, and told apart by its marks.
RIVALS = {"last value": "o", "fibre mean": "s", "additive effects": "^", "seasonal naive": "x"}
VARIANT = (0, (5, 1, 1, 1))  # the same method with other parameters


def line_style(method: str, *, variant: bool = False) -> dict[str, Any]:
    """Return how a method's line is drawn."""
    colour, line = STYLES[method]
    return {"color": colour, "linestyle": VARIANT if variant else line, "linewidth": 1.6}


def rival_style(rival: str, n_steps: int) -> dict[str, Any]:
    """Return how a rival's line is drawn, with a dozen marks however many steps there are."""
    return {"color": BLACK, "linewidth": 0.8, "linestyle": (0, (4, 3)), "marker": RIVALS[rival],
            "markersize": 4, "markerfacecolor": "white", "markeredgewidth": 0.8,
            "markevery": max(n_steps // 12, 1), "alpha": 0.7, "zorder": 1.5}  # fmt: skip


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


def cut_off(axis: Any, low: float, high: float, note: str, *, above: bool) -> None:
    """Draw a part of the range only, and say at its edge what lies outside."""
    axis.set_ylim(low, high)
    axis.text(0.99, 0.97 if above else 0.03, note, fontsize=8, ha="right",
              va="top" if above else "baseline", transform=axis.transAxes,
              bbox={"facecolor": "white", "edgecolor": "none", "pad": 1.5})  # fmt: skip


def are_dates(labels: Sequence[Any]) -> bool:
    """Tell whether all labels are dates or times."""
    return all(isinstance(label, dt.date) for label in labels)  # a datetime is a date, too


def place_ticks(axis: Any, labels: Sequence[Any]) -> None:
    """Write dates out, few enough not to run into each other, and no halves of whole numbers."""
    from matplotlib import dates, ticker

    if not are_dates(labels):
        axis.xaxis.set_major_locator(ticker.MaxNLocator(integer=True))
        return
    untyped: Any = dates
    span = max(labels) - min(labels)
    places = untyped.AutoDateLocator(minticks=3, maxticks=5)
    axis.tick_params(axis="x", labelsize="small")
    form = "%Y-%m-%d"
    if isinstance(labels[0], dt.datetime) and span < dt.timedelta(days=3):
        form = "%m-%d %H:%M"
    elif span < dt.timedelta(days=5):
        places = untyped.DayLocator()
    axis.xaxis.set_major_locator(places)
    axis.xaxis.set_major_formatter(untyped.DateFormatter(form))


def save_picture(figure: Any, *files: Path) -> None:
    """Write a figure by the endings of names, each file whole or not at all; then close it."""
    try:
        for file in files:
            kind = file.suffix[1:].lower()
            undated = {"Date": None} if kind == "svg" else None  # the same figure, the same file
            with writing(file) as out:
                figure.savefig(out, format=kind, dpi=120, metadata=undated)
    finally:
        plotting().close(figure)
