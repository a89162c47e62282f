"""The judged collections on this machine: folders in the BEIR form, under the setting `measure_data`."""

from __future__ import annotations

from pathlib import Path

from workbench import settings

_PARTS = ("corpus.jsonl", "queries.jsonl", "qrels.tsv")


def judged_collections(folder: str | Path | None = None) -> dict[str, Path]:
    """Every judged collection in a folder, by name: one with corpus.jsonl, queries.jsonl and qrels.tsv in it.

    `workbench.index` indexes such a folder, and `load_judgments` reads its queries and judgments.

    Args:
        folder: A folder of collections; None: `collections` in the folder of the setting `measure_data`.

    Returns:
        Name -> folder, sorted by name; empty where there are none, or the setting is not set.
    """
    if folder is None:
        setting = str(settings.get("measure_data"))
        if not setting:
            return {}
        folder = Path(setting) / "collections"
    place = Path(folder)
    found = sorted(place.iterdir(), key=lambda path: path.name) if place.is_dir() else []
    return {path.name: path for path in found if not missing_parts(path)}


def missing_parts(folder: Path) -> tuple[str, ...]:
    """The files that a folder lacks to be a judged collection in the BEIR form."""
    return tuple(part for part in _PARTS if not (folder / part).is_file())
