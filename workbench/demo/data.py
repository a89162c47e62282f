"""Where the project's own data is: the sample corpus and the judged questions of the demo.

In a checkout it is the folder `data` beside the package; an installed copy carries it inside the package as `_data`.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from workbench.errors import WorkbenchError

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


def demo_judgments() -> Judgments:
    """The judged questions of the demo, for `Corpus.evaluate`. Raises WorkbenchError."""
    from workbench.evaluate.judgments import load_judgments

    return load_judgments(demo_judgments_folder(), name="demo")
