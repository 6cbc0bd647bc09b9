"""A model as a small table for notebooks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensortide.markup import Html, escape, strong, table
from tensortide.methods.registry import by_name

if TYPE_CHECKING:
    from tensortide.online.reading import ReadOnlyModel

_SHOWN = 8  # components


def model_html(model: ReadOnlyModel) -> Html:
    """Return what the model has seen, and the top labels of its strongest components."""
    words = f"{strong('OnlineCP')} {escape(by_name(model.method))}, rank {model.rank}"
    if model._model is None:
        return Html(f"<div>{words}, not fitted</div>")
    names = model._model.modes.names
    shape = " x ".join(f"{n:,} {escape(m)}" for m, n in zip(names, model.shape_, strict=True))
    words += f", {shape}, step {model.n_steps_}, {model.n_entries_:,} cells seen"
    found = model.components(top=3).to_pylist()
    rows = []
    for component in range(min(model.rank, _SHOWN)):
        mine = [r for r in found if r["component"] == component]
        labels = [", ".join(r["label"] for r in mine if r["mode"] == name) for name in names]
        rows.append((component + 1, f"{mine[0]['weight']:.4g}", *labels))
    more = model.rank - _SHOWN
    rest = f"<div>and {more} more components</div>" if more > 0 else ""
    return Html(f"<div>{words}{table(('', 'weight', *names), rows)}{rest}</div>")
