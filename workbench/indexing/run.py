"""The indexing run: walk, read, cut, embed, write, swap.

1. The writer's lock is taken and what a killed run left is removed.
2. The files are walked; each is compared with what the corpus knows of it: the bytes' sha256, and a *recipe*, a digest of all
   else that shapes its documents (version of the readers, rules, budget, tokenizer, chunking, salt of its root). Equal: it is
   carried over and neither read nor embedded.
3. The others are read and cut, and stream into a staging file.
4. Texts without a vector are embedded into a journal. Vectors are found again by the hash of their text, so a moved file or an
   edit elsewhere in a document embeds nothing that was embedded before.
5. The next generation is built beside the old one and published by one rename. If nothing changed there is none.

What a generation holds is what the last run over each folder found: a file that has vanished, is excluded now or no longer
parses leaves the corpus, and the report says so. A file or folder that the system does not let be read (its rights, a network
drive that is away) has not vanished: what was indexed of it stays, and the report says so.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from workbench.errors import SettingError, UsageError
from workbench.indexing.compare import compare, find_files
from workbench.indexing.embedding import Abort
from workbench.indexing.encoders import choose_encoders, settle_encoders
from workbench.indexing.previous import Previous
from workbench.indexing.roots import must_be_storable, targets
from workbench.indexing.session import ignore_progress, locked, never
from workbench.indexing.stage import stage_files
from workbench.indexing.state import Options, Run
from workbench.indexing.writing import report_of, write
from workbench.ingest.rules import FileRules, load_rules
from workbench.records import ProgressCallback
from workbench.reports import IndexReport
from workbench.saved.jobs import recording
from workbench.store.generations import Layout, private
from workbench.store.staging import Staging


def index(
    paths: Sequence[str | Path],
    corpus: str | Path,
    *,
    collections: Sequence[str] = ("docs",),
    progress: ProgressCallback | None = None,
    abort: Abort | None = None,
    encoder: str | Sequence[str] | None = None,
    tenant: str | None = None,
    roles: Sequence[str] = (),
    sensitivity: str | None = None,
    type: str | None = None,
    one_chunk_per_document: bool = False,
    hidden: bool = False,
    gitignore: bool = True,
    workers: int | None = None,
    wait: bool = False,
) -> IndexReport:
    """Index files and folders into a corpus.

    Args:
        paths: Folders (each a root; what vanished in it is removed) and files.
        corpus: The corpus folder; made where it does not exist.
        collections: Named parts of the corpus that the documents go to; rules in `corpus.yaml` may say otherwise.
        progress: Called with a Progress now and then: steps `walk`, `compare`, `read`, `embed`, `tables`, `text`, `vectors`,
            `graph`, `words`, `publish`. From `vectors` to `words` the work is done at the same time, and
            told in this order.
        abort: Asked often; True stops the run. Any other exception, KeyboardInterrupt too, does the same.
        encoder: The encoder's name, or several: each record then has a vector of each, the first is the corpus's own and
            its tokenizer cuts. None: those that the corpus has, or for a new corpus the setting `encoder`. A list is
            exactly what the corpus has from now on; one name, if it is the corpus's own, keeps the others. A new one makes
            the run read all folders again and embeds for that one; vectors of one that is left out go.
        tenant, roles, sensitivity: Who may see the documents; roles empty: everyone of the tenant.
        type: Their type; None leaves it to the readers.
        one_chunk_per_document: New collections get one chunk a document, without context.
        hidden: Take hidden files.
        gitignore: Honour `.gitignore`.
        workers: Helper processes that read; None decides by the number of files, 0 reads in this process.
        wait: Wait while another process is indexing.

    Returns:
        The report; its files are those below `paths`.

    Raises:
        UsageError: A path does not exist, or a setting cannot be.
        CorpusLocked: Another process is writing, and `wait` is False.
        IndexingStopped: `abort` said so.
        EncoderError: The encoder cannot be loaded or run.
        CorpusDamaged: The old generation cannot be read.
    """
    options = Options.of(
        collections, encoder, tenant, roles, sensitivity, type,
        one_chunk_per_document=one_chunk_per_document, hidden=hidden, gitignore=gitignore, workers=workers,
    )  # fmt: skip
    asked = targets(paths)
    folder = _corpus_folder(Path(corpus))
    return locked(
        recording(folder, "index", asked, collections, _access_before(folder, asked, options.flags)),
        folder,
        progress or ignore_progress,
        abort or never,
        wait,
        lambda p, t, a: _index(folder, asked, options, p, t, a),
        asked,
    )


def _access_before(corpus: Path, asked: Sequence[str], flags: FileRules) -> dict[str, set[str]]:
    """Who may know of a run before it has begun: whoever all rules that may be meant allow, wherever the root will be."""
    with suppress(SettingError):  # which the run itself will raise
        rules = load_rules(corpus)
        parts = {
            path: [*path.strip(os.sep).split(os.sep), "file"][: -1 if os.path.isfile(path) else None] for path in asked
        }
        return {
            path: {rules.for_file("/".join(names[n:]), flags).access for n in range(len(names))}
            for path, names in parts.items()
        }
    return {}


_OURS = ("current", "writer.lock", "generations", "corpus.yaml", "desk.sqlite", "damaged", "snapshots")


def _corpus_folder(folder: Path) -> Path:
    """The corpus's folder, made where it does not exist. Raises UsageError for a place that is something else."""
    must_be_storable(os.path.realpath(folder))
    try:
        folder.mkdir(parents=True, exist_ok=True)
        names = os.listdir(folder)
    except OSError as exc:
        reason = (exc.strerror or type(exc).__name__).lower()
        raise UsageError(f"The corpus {folder} cannot be made or read: {reason}", "Choose another --corpus") from exc
    if names and not any(name in names for name in _OURS):
        raise UsageError(
            f"{folder} holds other files and is not a corpus", "Choose an empty or new folder for --corpus"
        )
    private(folder)
    return folder


# --- index -----------------------------------------------------------------------------------------------------------


def _index(
    corpus: Path, asked: tuple[str, ...], options: Options, previous: Previous, tell: ProgressCallback, abort: Abort
) -> IndexReport:
    started = time.monotonic()
    encoders = choose_encoders(options, previous)
    run = Run(corpus, options, tell, abort, previous, load_rules(corpus), encoders, started)
    also = settle_encoders(run, asked)
    found = find_files(run, asked, also)
    tasks = compare(run, found, (*asked, *also))
    staged = Layout(corpus).building
    staged.mkdir()
    staging = Staging(staged / "staging.duckdb")
    try:
        stage_files(run, staging, tasks)
        if previous.older:
            run.warnings.append("An earlier version wrote this corpus: all but its vectors was made again")
        elif previous.sound and not previous.words_alike:
            run.warnings.append("The words of every text were split again, because the rules for words have changed")
        elif previous.sound and not (run.read or run.anew or run.fewer or previous.pin is None or _lost_documents(run)):
            held = previous.pin.manifest
            counts = held.counts["documents"], held.counts["records"]
            return report_of(run, held.generation, 0, counts[1] * len(encoders), counts)
        return write(run, staging)
    finally:
        staging.close()


def _lost_documents(run: Run) -> bool:
    """Whether documents of the old generation are to go."""
    files = run.previous.files
    return any(files[key].documents or files[key].copies for key in run.dropped)
