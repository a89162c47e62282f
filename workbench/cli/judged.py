"""What the command line takes for judgments or queries: a file, a folder, or a query set of the corpus by its name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from workbench.cli.options import Asker
    from workbench.corpus import Corpus
    from workbench.judgments.qrels import Judgments


def read_judgments(source: str | Path, split: str | None, asker: Asker, judges: Sequence[str] = ()) -> Judgments:
    """Judgments from a file or folder that is there, else from the query set of that name.

    Args:
        source: File, folder or set.
        split: Of a folder with several.
        asker: Who asks, and the corpus where the set is.
        judges: Whose grades of a set count; none named means every person's.

    Raises:
        JudgmentError: There is neither, or it has no judgments.
        UsageError: Judges are named, and it is no query set.
    """
    from workbench.errors import UsageError
    from workbench.judgments.qrels import load_judgments

    if not Path(source).exists():
        with asker.open() as opened:
            if str(source) in opened.judging.sets.names():
                return opened.judgments(str(source), judges or None)
    if judges:
        raise UsageError(
            f"{source} is no query set, and does not say who judged",
            "Leave out --judge, or import it: workbench judge import",
        )
    return load_judgments(source, split=split)


def read_queries(opened: Corpus, source: str, split: str | None) -> Judgments:
    """Queries to run: of a set, of judgments, or of a file of queries; qrels where the source has them, else empty ones.

    Raises:
        JudgmentError: There is no such set or file, or it cannot be read.
    """
    from workbench.errors import JudgmentError
    from workbench.judgments.exchange import holds_judgments
    from workbench.judgments.exchange import read_queries as queries_of
    from workbench.judgments.judging import with_own_ids
    from workbench.judgments.qrels import Judgments, load_judgments

    path = Path(source)
    graded: Mapping[str, Mapping[str, int]] = {}
    if not path.exists():
        found = opened.judging.queries(source)
        try:
            graded = with_own_ids(opened.judging, opened.judging.judgments(source, documents=True)).qrels
        except JudgmentError:
            pass  # a set that nobody has judged yet
    elif path.is_dir() or holds_judgments(path):
        return load_judgments(path, split=split)
    else:
        found = queries_of(path)
    return Judgments(
        {q.query_id: q.topic for q in found}, {q.query_id: graded.get(q.query_id, {}) for q in found}, path.stem
    )
