"""Plans of an older snapshot, in the words of now.

A snapshot is read for years, and the presets' names may have come to mean something else since (`presets.EDITION`). Its rows
and digests stay as they were saved; the plans that it names are read as the plans that they were, so that searching again,
showing and comparing speak of the same thing.
"""

from __future__ import annotations

from dataclasses import replace

from workbench.errors import SnapshotError
from workbench.plan.plan import recorded_fields, recorded_text
from workbench.plan.presets import EDITION
from workbench.snapshot.model import PLANS, About, Content


def edition_of(about: About) -> int:
    """Under which edition of the presets a snapshot was made. Raises SnapshotError for what is no number."""
    said = about.packages.get(PLANS, "1")
    if not said.isascii() or not said.isdigit():
        raise SnapshotError("The snapshot's manifest.json names no edition of its plans", "Ask for the file again")
    return int(said)


def of_now(content: Content, about: About) -> Content:
    """The content with its plans' texts and fields as this version writes them."""
    edition = edition_of(about)
    if edition >= EDITION:
        return content
    searches = (
        replace(s, plan=recorded_text(s.plan, edition), settings=recorded_fields(s.settings, edition))
        for s in content.searches
    )
    evaluations = (replace(e, name=recorded_text(e.name, edition)) for e in content.evaluations)
    sweeps = (
        replace(s, baseline=recorded_text(s.baseline, edition), best=recorded_text(s.best, edition))
        for s in content.sweeps
    )
    tables = dict(content.tables)
    if "points" in tables:
        texts = tables["points"]["plan"].unique(maintain_order=True).to_list()
        told = {text: recorded_text(text, edition) for text in texts}
        tables["points"] = tables["points"].with_columns(tables["points"]["plan"].replace(told))
    return Content(tuple(searches), tuple(evaluations), tuple(sweeps), tables)
