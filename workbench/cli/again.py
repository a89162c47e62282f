"""`workbench index --dry-run` and `--watch`."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rich.text import Text

from workbench import settings
from workbench.cli import options, output
from workbench.errors import WorkbenchError

if TYPE_CHECKING:
    from workbench.indexing.preview import IndexPreview


def print_preview(found: IndexPreview, *, list_files: bool, as_json: bool) -> None:
    """What a run would do: the counts, what would be read or go, and why files would be left out."""
    from workbench.indexing.preview import Action

    if as_json:
        data = dataclasses.asdict(found)
        data["copies"] = found.copies
        data["counts"] = {action.value: found.count(action) for action in Action}
        options.print_json(data)
        return
    out = output.console()
    counts = ", ".join(f"{found.count(action):,} {action.value}" for action in Action)
    out.print(f"{output.counted(len(found.files), 'file')}: {counts}", soft_wrap=True)
    size = f"{found.read_bytes / 1e6:,.1f} MB" if found.read_bytes >= 1e5 else f"{found.read_bytes:,} bytes"
    out.print(f"{size} would be read. Nothing was changed; leave out --dry-run to index.")
    if found.copies:
        one = found.copies == 1
        out.print(
            f"{found.copies:,} {'file holds' if one else 'files hold'} the same bytes as another and would be indexed once"
        )
    shown = (Action.NEW, Action.CHANGED, Action.REMOVED, Action.FAILED) if not list_files else tuple(Action)
    most = len(found.files) if list_files else 20
    for action in shown:
        files = [file for file in found.files if file.action is action]
        for file in files[:most]:
            why = f": {file.reason}" if file.reason else f": a copy of {file.copy_of}" if file.copy_of else ""
            out.print(Text(output.one_line(f"  {action.value} {file.path}{why}")), soft_wrap=True)
        if len(files) > most:
            out.print(Text(f"  {action.value}: {len(files) - most:,} more; --list shows them", style="dim"))
    if not list_files:
        skipped = Counter(file.reason for file in found.files if file.action is Action.SKIPPED)
        for reason, number in sorted(skipped.items(), key=lambda item: (-item[1], item[0])):
            out.print(Text(output.plain(f"  skipped {number:,}: {reason}"), style="dim"))


def index_again(
    paths: Sequence[Path], corpus: Path | None, first: Callable[[], object], once: Callable[[], object]
) -> None:
    """Index, then after each burst of changes until Ctrl-C. A later run that fails is said, and the next change tries again."""
    from workbench.indexing import watch

    def run() -> None:
        try:
            once()
        except WorkbenchError as exc:
            output.say(f"workbench: {exc}", err=True)

    def begin() -> None:
        first()
        output.say("Watching for changes; Ctrl-C ends it.", err=True)

    try:
        watch(paths, Path(settings.get("corpus") if corpus is None else corpus), run, lambda: False, begin)
    except KeyboardInterrupt:
        output.say("workbench: Stopped watching.", err=True)
