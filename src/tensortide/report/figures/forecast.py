"""Series and how they are expected to go on: on the page, in notebooks, and as a picture."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tensortide.drawing import Spec, layout, line, plain, style
from tensortide.online.forecast_series import Continued, Series, continued
from tensortide.palette import GREY, place_ticks, plotting, save_picture
from tensortide.report.figures.panels import label_text
from tensortide.wording import counted, short

if TYPE_CHECKING:
    from tensortide.online.reading import ReadOnlyModel

STEPS = 14  # that a picture looks ahead if nobody says how many
_DIGITS = 6


def forecast_figure(model: ReadOnlyModel, steps: int = STEPS, mode: str | None = None) -> Spec:
    """Draw the largest series: dots as reported, solid as learned, dashed as forecast."""
    found = continued(model._require_outlook(), steps, mode)
    known, ahead = ([label_text(one) for one in some] for some in (found.known, found.ahead))
    data = []
    for k, series in enumerate(found.series):
        colour, _ = style(k)
        name = short(series.name, 40) or "all"
        dots = line(known, plain(series.observed, _DIGITS), f"{name}, reported", colour)
        dots |= {"mode": "markers", "marker": {"color": colour, "size": 5, "opacity": 0.55}}
        learned = line(known, plain(series.fitted, _DIGITS), name, colour, width=1)
        joined = [series.fitted[-1], *series.ahead]
        coming = line([known[-1], *ahead], plain(joined, _DIGITS), f"{name}, forecast", colour)
        coming["line"] |= {"dash": "dash", "width": 3}
        for trace in (dots, learned, coming):
            trace |= {"legendgroup": name, "showlegend": trace is learned}
        data += [dots, learned, coming] if np.isfinite(series.observed).any() else [learned, coming]
    frame = layout(model.value, found.mode, top=30, bottom=44, height=380)
    frame["yaxis"] |= {"rangemode": "normal"}
    frame["shapes"] = [{
        "type": "rect", "xref": "x", "yref": "paper", "x0": known[-1], "x1": ahead[-1],
        "y0": 0, "y1": 1, "fillcolor": GREY, "opacity": 0.15, "line": {"width": 0},
        "layer": "below",
    }]  # fmt: skip
    frame["annotations"] = [{
        "x": ahead[-1], "y": 1, "xref": "x", "yref": "paper", "text": "forecast",
        "showarrow": False, "xanchor": "right", "yanchor": "top",
    }]  # fmt: skip
    return {"data": data, "layout": frame}


def draw_forecast(
    model: ReadOnlyModel, steps: int, mode: str | None, file: Path, title: str
) -> None:
    """Write the picture of the largest series, by the ending of the file's name."""
    found = continued(model._require_outlook(), steps, mode)
    pyplot = plotting()
    rows = -(-len(found.series) // 2)
    columns = min(len(found.series), 2)
    figure, axes = pyplot.subplots(
        rows, columns, figsize=(5.5 * columns, 0.6 + 2.7 * rows), sharex=True, squeeze=False,
        layout="constrained",
    )  # fmt: skip
    for axis in axes[:, 0]:
        axis.set_ylabel(model.value)
    for k, axis in enumerate(axes.flat):
        if k < len(found.series):
            _panel(axis, found, found.series[k], style(k)[0])
        else:
            axis.set_visible(False)
    handles, labels = axes.flat[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, fontsize=9)
    last = label_text(found.known[-1])
    figure.suptitle(f"{title}: {counted(steps, 'step')} after {last}", fontsize=11)
    save_picture(figure, file)


def _panel(axis: Any, found: Continued, series: Series, colour: str) -> None:
    known, ahead = list(found.known), list(found.ahead)
    if np.isfinite(series.observed).any():
        axis.plot(known, series.observed, ".", color=colour, alpha=0.5, label="reported")
    axis.plot(known, series.fitted, color=colour, linewidth=1.2, label="learned by the model")
    axis.plot(
        [known[-1], *ahead], [series.fitted[-1], *series.ahead], "--", color=colour, linewidth=2.2,
        label="forecast",
    )  # fmt: skip
    axis.axvspan(known[-1], ahead[-1], color=GREY, alpha=0.15, linewidth=0)
    axis.set_title(short(series.name, 50), fontsize=10, loc="left")
    axis.grid(alpha=0.3)
    place_ticks(axis, [*known, *ahead])
    # shared axes would hide labels of a panel above another one, or above none
    axis.tick_params("x", labelbottom=True, labelsize=9)
