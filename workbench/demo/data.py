"""Where the project's own data is: the sample corpus and the judged questions of the demo.

In a checkout it is the folder `data` beside the package; an installed copy carries it inside the package as `_data`.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from workbench.errors import UsageError, WorkbenchError

if TYPE_CHECKING:
    from workbench.evaluate.judgments import Judgments


def data_folder() -> Path:
    """The folder with `sample` and `demo`, in a checkout and when installed.

    Raises:
        WorkbenchError: The installation lacks it.
    """
    package = Path(__file__).resolve().parent.parent
    for folder in (package / "_data", package.parent / "data"):
        if (folder / "demo" / "queries.jsonl").is_file():
            return folder
    raise WorkbenchError("The workbench's own data is missing", "Install the package again")


def sample_folder() -> Path:
    """The sample: `files/` to index, `corpus.yaml` with its rules, queries and judgments. Raises WorkbenchError."""
    return data_folder() / "sample"


def demo_judgments_folder() -> Path:
    """Queries and judgments of the demo, in the BEIR form. Raises WorkbenchError."""
    return data_folder() / "demo"


def demo_judgments(files: str | Path | None = None) -> Judgments:
    """The judged questions of the demo, for `Corpus.evaluate`.

    Args:
        files: A folder that `demo_files` wrote: then only the questions that its files answer, all of their relevant files
            being there. None is every question.

    Raises:
        WorkbenchError: The installation lacks the questions.
        UsageError: The folder answers none of them.
    """
    from workbench.evaluate.judgments import load_judgments

    judgments = load_judgments(demo_judgments_folder(), name="demo")
    if files is None:
        return judgments
    folder = Path(files)
    there = {key for key in judgments.document_keys if (folder / key).is_file()}
    answered = [
        query_id
        for query_id in judgments.query_ids
        if all(key in there for key, grade in judgments.qrels[query_id].items() if grade > 0)
    ]
    if not answered:
        raise UsageError(f"{folder} answers no question of the demo", "Give the folder that demo_files returned")
    return judgments.subset(answered)
