"""What the page tests share: the small corpus's texts, and how to read a page."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from streamlit.testing.v1 import AppTest
from streamlit.util import calc_hash

HOSTILE = (
    "# <script>alert(1)</script> **bold** $x^2$ [link](javascript:alert(2))\n\n"
    "hostile pelican <img src=x onerror=alert(3)> \x1b[31mred\x1b[0m \u202egnp.exe $y$ `code` :red[colour] & &lt;b&gt;\n"
)
TEXTS = {
    "retries.md": "# How retries work\n\nA request is sent again after a pause. The backoff doubles with each retry.\n",
    "timeouts.md": "# Timeouts and retries\n\nA timeout ends a request. A retry after a timeout is counted once.\n",
    "limits.md": "# Rate limits explained\n\nToo many requests are refused for a minute; wait before the next request.\n",
    "kettle.md": "# The office kettle\n\nFill the kettle with water. Never open it while it boils.\n",
    "tea.md": "# Making good tea\n\nBoil water, warm the pot, wait four minutes. Tea wants boiling water.\n",
    "backoff.py": "def backoff(attempt):\n    # wait longer after each retry\n    return min(2 ** attempt, 60)\n",
    "hostile.md": HOSTILE,
    "long.txt": "start " + "word " * 4000 + "needlework " + "word " * 4000 + "\n",
    **{
        f"notes/note-{n:02}.md": f"# Note number {n}\n\nretry note {n}: a request, {'again ' * (n % 5)}and a pause.\n"
        for n in range(20)
    },
}


def write_corpus(folder: Path) -> Path:
    """Index the small documents with the hashing encoder; the corpus folder."""
    import workbench as wb

    source = folder / "source"
    for name, text in TEXTS.items():
        path = source / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    wb.index([source], corpus=folder / "corpus", encoder="hashing", workers=0)
    return folder / "corpus"


def run(at: AppTest) -> AppTest:
    """Run the app again; a page never shows an exception."""
    at.run()
    assert not at.exception, at.exception[0].message
    return at


def go(at: AppTest, name: str) -> AppTest:
    """Switch to a page, which is a function: AppTest knows pages by the hash of their path in the address."""
    at._page_hash = calc_hash("" if name == "search" else name)
    return at


def page(open_app: Callable[..., AppTest], corpus: Path, name: str, **params: str) -> AppTest:
    """A page at an address."""
    at = open_app(corpus)
    at.query_params.update(params)
    go(at, name)
    return run(at)


def open_plan(at: AppTest) -> AppTest:
    """Open the bar's box of the plan."""
    at.session_state["wb.w.section.plan"] = True
    return run(at)


def draw_scores(at: AppTest, judged: Path) -> None:
    """On the Tune page take judgments by their path, press "Draw the scores" and wait until they are drawn."""
    at.text_input(key="wb.w.tune.path").set_value(str(judged))
    run(at)
    at.button(key="wb.w.tune.scores.run").click()
    run(at)
    at.session_state["wb.tune.scores"].wait(60)
    run(at)


def finished(at: AppTest, name: str = "tune") -> AppTest:
    """Wait for the work of a page, and run the page again."""
    job = at.session_state[f"wb.{name}.job"]
    job.wait(60)
    assert not job.running
    assert job.error is None, str(job.error)
    return run(at)


def document(open_app: Callable[..., AppTest], corpus: Path, **params: str) -> AppTest:
    """The Document page at an address."""
    return page(open_app, corpus, "document", **params)


def document_body(at: AppTest) -> str:
    """The rows of the Document page."""
    (found,) = (b for b in bodies(at) if 'role="document"' in b)
    return found


def bodies(at: AppTest) -> list[str]:
    """Every piece of HTML on the page, and the messages over it."""
    return [e.proto.body for e in at.get("html")] + [e.value.replace("\\", "") for e in at.toast]


def column(at: AppTest, mode: str) -> str:
    """The HTML of one column."""
    (found,) = (b for b in bodies(at) if f'aria-label="{mode.capitalize()} results"' in b)
    return found


def chunks(at: AppTest, mode: str) -> list[str]:
    """Chunk ids of a column, best first."""
    return re.findall(r'data-chunk="([^"]+)"', column(at, mode))


def paths(at: AppTest, mode: str) -> list[str]:
    """Citations of a column, best first."""
    return re.findall(r'data-wb-copy="([^"]+)"', column(at, mode))


def all_text(at: AppTest) -> str:
    """Everything that the page says, as one text."""
    parts: list[Any] = [
        *bodies(at),
        *(e.value for e in at.text),
        *(e.value for e in at.caption),
        *(e.value for e in at.subheader),
    ]
    return "\n".join(map(str, parts))
