"""What one indexing run was asked for, what it found out so far, and what it will report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from workbench.indexing.embedding import Abort
from workbench.indexing.previous import FileKey, Previous
from workbench.indexing.reading import Cutting, Task
from workbench.indexing.roots import Root
from workbench.ingest.rules import CorpusRules, FileRules
from workbench.records import EncoderIdentity, ProgressCallback
from workbench.reports import FileReport


@dataclass(frozen=True, slots=True)
class Options:
    """What a run was asked for; see `index`. `exactly`: the encoders were given as a list."""

    flags: FileRules
    encoders: tuple[str, ...] = ()
    exactly: bool = False
    one_chunk_per_document: bool = False
    hidden: bool = False
    gitignore: bool = True
    workers: int | None = None

    @classmethod
    def of(
        cls,
        collections: Sequence[str],
        encoder: str | Sequence[str] | None,
        tenant: str | None,
        roles: Sequence[str],
        sensitivity: str | None,
        type: str | None,
        **how: Any,
    ) -> Options:
        """Options from the arguments of `index` and `preview`; `how` are fields of this class."""
        flags = FileRules(tuple(collections), tenant, tuple(roles), sensitivity or "normal", type or "")
        named = (encoder,) if isinstance(encoder, str) else tuple(encoder or ())
        return cls(flags, named, exactly=bool(named) and not isinstance(encoder, str), **how)


@dataclass(slots=True)
class Run:
    """The state of one run: filled step by step, read by the report.

    Attributes:
        encoders: Name and identity; the first is the corpus's own, and its tokenizer cuts.
        anew: Every file is read again, because an encoder is new.
        fewer: The corpus loses an encoder.
        roots: All roots of the corpus from now on.
        dropped: Files of the generation before whose documents are not carried over.
        reports: What became of each file.
        kept: Files that this run met unchanged, as they would be read.
        rows: Rows of the table `files` for files that were read or left out.
        read: Files that gave documents.
    """

    corpus: Path
    options: Options
    tell: ProgressCallback
    abort: Abort
    previous: Previous
    rules: CorpusRules
    encoders: tuple[tuple[str, EncoderIdentity], ...]
    started: float
    anew: bool = False
    fewer: bool = False
    cutting: Cutting = field(init=False)
    roots: dict[str, Root] = field(default_factory=dict)
    reports: list[tuple[FileKey, FileReport]] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    dropped: set[FileKey] = field(default_factory=set)
    kept: dict[FileKey, Task] = field(default_factory=dict)
    rows: list[tuple[object, ...]] = field(default_factory=list)
    read: int = 0
    embedding_seconds: float = 0.0
