"""A measured run as people read it: a page, a terminal, data, tables for a paper.  Pure."""

from __future__ import annotations

from collections.abc import Sequence

from wulf.base.records import Analysis, Audit, Launch, Manifest, NodeRecord
from wulf.base.records.diagnosed import Diagnosis
from wulf.page import page
from wulf.tools.measure.page import view
from wulf.tools.measure.page.terminal import render_text, rendered

__all__ = ["render_html", "render_text", "rendered"]


def render_html(
    manifest: Manifest,
    nodes: Sequence[NodeRecord],
    launches: Sequence[Launch],
    analysis: Analysis,
    audit: Audit | None = None,
    diagnosis: Diagnosis | None = None,
    performed: view.Performed | None = None,
) -> str:
    """Return the page of a run.

    Parameters
    ----------
    audit, diagnosis, performed
        Of its nodes, of its figures, and the pattern that it performed, where there are.
    """
    shown = view.build(manifest, nodes, launches, analysis, audit, diagnosis, performed)
    figures = [figure for _, figure in view.figures_of(shown)]
    pairs = {op.id: [detail.pair for detail in op.details] for op in shown.operations}
    return page.render("report.html.j2", shown, figures, {"run": shown.run_id, "pairs": pairs})
