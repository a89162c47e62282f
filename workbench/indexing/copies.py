"""Settling which files are copies of others, once everything is read: a file with the same bytes is indexed once.

A copy whose primary has gone takes its place with the vectors that are there. Only where its title is another one, made from
its file's name, is its text embedded under that title: the run reads the file again if it met it unchanged, else (it was not
asked for, or only removes) the next run that meets it does.
"""

from __future__ import annotations

from workbench.indexing.stage import stage_files
from workbench.indexing.state import Run
from workbench.store.grouping import Promoted, leave_out_copies, settle_copies
from workbench.store.staging import Staging


def settle(run: Run, staging: Staging) -> None:
    """Decide on primaries and copies of the next generation; what is a copy is not embedded."""
    told: set[tuple[str, str]] = set()

    def decide() -> list[Promoted]:
        staging.add("dropped", *sorted(run.dropped - told))
        told.update(run.dropped)
        staging.flush()
        return settle_copies(staging, run.previous.database)

    promoted = decide()
    again = sorted({p.file for p in promoted if p.retitled} & run.kept.keys())
    if again:
        run.dropped.update(again)
        run.reports = [(key, report) for key, report in run.reports if key not in again]
        stage_files(run, staging, [run.kept[key] for key in again])
        promoted = decide()
    staging.add("retried", *sorted({p.file for p in promoted if p.retitled}))
    leave_out_copies(staging)
