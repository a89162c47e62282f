"""A corpus that is open: its pinned generation, how it follows, what it holds. `service.Corpus` adds what it answers."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from workbench.corpus_engine import CorpusEngine
from workbench.errors import CorpusError, CorpusNotFound, PrincipalRequired, QueryError, UsageError
from workbench.ingest.rules import SettingsFile, load_rules
from workbench.records import Principal
from workbench.retrieve.cache import ResultCache
from workbench.settings import path_of
from workbench.store.masking import load_policy
from workbench.store.reader import open_generation
from workbench.store.visibility import Policy
from workbench.store.vocabulary import Vocabulary, load_vocabulary, save_vocabulary

if TYPE_CHECKING:
    import polars

    from workbench.desk.judging import Judging
    from workbench.evaluate.judgments import Judgments


class OpenCorpus:
    """The life of an open corpus; its arguments are those of `service.Corpus`."""

    def __init__(
        self,
        path: str | Path,
        principal: Principal | None = None,
        *,
        follow: bool = False,
        encoder: str | None = None,
        policy: Policy | None = None,
        served: bool = False,
    ) -> None:
        self.path = Path(path)
        if self.path.is_file():
            raise CorpusNotFound(f"There is no corpus at {path}, which is a file", "Name the folder that it is in")
        self._given = policy
        self._access = SettingsFile(self.path, lambda folder: (load_policy(folder), load_rules(folder)))
        self.principal = principal
        self.follow = follow
        self._encoder, self._served = encoder, served
        self._lock = threading.Lock()
        self._cache = ResultCache()
        self._words = SettingsFile(self.path, load_vocabulary)
        self._engine: CorpusEngine | None = self._open()
        # Asked here, so that a corpus with tenants or roles is refused at the door and not at the first search.
        self._pinned().records.scope(principal, None, ())

    @property
    def policy(self) -> Policy | None:
        """The policy of now: the one given, else that of `corpus.yaml`. Raises SettingError."""
        return self._access.now()[0] if self._given is None else self._given

    def _open(self) -> CorpusEngine:
        vocabulary, policy = self._words.now(), self.policy
        self._obeyed = self._access.now()
        generation = open_generation(self.path, policy, self._obeyed[1])
        if self._encoder is not None:
            from workbench.encode.load import identity_of

            generation.check_encoder(identity_of(self._encoder), "")
        engine = CorpusEngine(generation, self._encoder, policy, self.principal, served=self._served)
        return engine.speaking(vocabulary)

    # --- life ------------------------------------------------------------------------------------------------------

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the generation. Results that were made keep what they need."""
        self._cache.clear()
        self._engine = None

    def refresh(self) -> bool:
        """Move to the newest generation, and to the corpus's synonyms and stop words as they are now.

        Returns:
            Whether there was a newer generation.
        """
        with self._lock:
            engine = self._pinned()
            if engine.opened.is_current():
                self._engine = self._obeying(engine).speaking(self._words.now())
                return False
            self._engine = self._open()
            self._cache.clear()
            return True

    def _obeying(self, engine: CorpusEngine) -> CorpusEngine:
        """The engine under the policy and rules that `corpus.yaml` has now."""
        now = self._access.now()
        if now is self._obeyed:
            return engine
        policy = self.policy
        generation = engine.opened.under(policy, now[1])
        self._obeyed = now
        if generation.records.access_name == engine.opened.records.access_name:
            generation.close()
            return engine
        other = CorpusEngine(generation, self._encoder, policy, self.principal, served=self._served)
        other.records.scope(self.principal, None, ())
        self._cache.clear()
        return other.speaking(engine.vocabulary)

    @property
    def vocabulary(self) -> Vocabulary:
        """The synonyms and stop words that queries are read with."""
        return self.engine.vocabulary

    def set_vocabulary(self, value: Vocabulary) -> None:
        """Write the synonyms and stop words into the corpus's `corpus.yaml`, for everybody; this corpus uses them at once.

        Raises SettingError where the file there cannot be read, CorpusError where it cannot be written.
        """
        save_vocabulary(self.path, value)
        with self._lock:
            self._engine = self._pinned().speaking(self._words.now())

    @property
    def engine(self) -> CorpusEngine:
        """The pinned generation under the access of now, after following the pointer where `follow` is set."""
        if self.follow:
            self.refresh()
        elif self._access.now() is not self._obeyed:
            with self._lock:
                self._engine = self._obeying(self._pinned())
        return self._pinned()

    def _pinned(self) -> CorpusEngine:
        engine = self._engine
        if engine is None:
            raise CorpusError("This corpus is closed", "Open it again with workbench.open_corpus")
        return engine

    @property
    def generation(self) -> str:
        """Id of the pinned generation."""
        return self._pinned().generation

    def info(self) -> Mapping[str, Any]:
        """Generation id, counts, encoder, digest and bytes of what the principal may see."""
        engine = self.engine
        return engine.records.info(engine.records.scope(self.principal, None, ()))

    def jobs(self) -> polars.DataFrame:
        """Indexing runs, the newest first: queued, running, done or failed (`desk.inventory`). Raises CorpusError."""
        from workbench.desk.inventory import jobs_frame, visible_jobs

        return jobs_frame(visible_jobs(self.path, self.engine.records, self.principal, self.policy))

    def sources(self) -> polars.DataFrame:
        """What the documents that the principal may see came from: path, kind, documents, chunks, bytes, modified, copies."""
        from workbench.desk.inventory import sources_frame

        records = self.engine.records
        return sources_frame(records, records.scope(self.principal, None, ()))

    def remember(
        self,
        text: str,
        id: str | None = None,
        title: str = "",
        created_at: datetime | str | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> str:
        """Keep a memory in the collection `memory`, and search it from now on (`include_memory`); one with that id is replaced.

        It is a line of a JSONL file in the corpus's folder; where documents have tenants or roles, for those of the principal.

        Args:
            text: What to remember.
            id: Its id; None makes one.
            title: A title.
            created_at: Since when, ISO 8601 or a datetime; None is now.
            metadata: More fields, to filter by.

        Returns:
            The id.

        Raises:
            UsageError: There is nothing to keep, or it cannot be kept as JSON.
        """
        from workbench import memory

        made = memory.remember(self.path, text, self._keeper(), id, title, created_at, metadata)
        self.refresh()
        return made

    def forget(self, id: str) -> None:
        """Remove a memory that `remember` kept for this principal. Raises UsageError where there is none with that id."""
        from workbench import memory

        memory.forget(self.path, id, self._keeper())
        self.refresh()

    def memories(self) -> polars.DataFrame:
        """What the collection `memory` holds for the principal, the newest first: id, created_at, text, title, path."""
        from workbench import memory

        return memory.memories(self.engine.records, self.principal)

    def _keeper(self) -> Principal | None:
        """Whose memories are meant: nobody's in particular where the corpus keeps nobody's documents apart."""
        try:
            self.engine.records.scope(None, None, ())
        except PrincipalRequired:
            return self.principal
        return None

    def sql(self, query: str, values: Sequence[Any] | None = None) -> polars.DataFrame:
        """Rows of a statement over the corpus's tables, which GUIDE lists; the database is open for reading only.

        Args:
            query: SQL as DuckDB reads it.
            values: For the `?` in it.

        Raises:
            UsageError: Some documents are hidden from the principal, or parts of them masked: SQL would show them.
            QueryError: DuckDB cannot run it.
        """
        import duckdb
        import polars

        from workbench.store.duck import open_reading
        from workbench.store.generations import DATABASE

        engine = self.engine
        if engine.records.scope(self.principal, None, ()).visible is not None or engine.records.masks:
            raise UsageError(
                "SQL would show documents or parts of them that are hidden from you",
                f"The owner of the corpus can open {engine.opened.folder / DATABASE} with DuckDB, read-only",
            )
        connection = open_reading(engine.opened.folder / DATABASE)
        try:
            rows = connection.sql(query, params=values)
            return polars.DataFrame() if rows is None else polars.DataFrame(rows.to_arrow_table())
        except duckdb.Error as exc:
            raise QueryError(
                f"The SQL cannot be run: {str(exc).splitlines()[0]}", "Correct it; GUIDE lists the tables"
            ) from exc
        finally:
            connection.close()

    @property
    def judging(self) -> Judging:
        """Query sets and judgments as they stand in the generation of now (`desk.judgments`): take it anew each time."""
        from workbench.desk.judging import judging_of

        return judging_of(self.path, self.engine.records, self.principal, self.policy)

    def import_judgments(self, path: str | Path, name: str | None = None) -> str:
        """Add the queries and judgments of a file or folder to a query set of the corpus; the set's name.

        Args:
            path: A BEIR folder, TREC qrels, CSV or JSONL. A row with `start`, `end` and `quote` judges that passage: it is
                found again in other generations, and in other corpora of the same documents, however they are cut.
            name: The set; None is the file's or folder's name.

        Raises:
            JudgmentError: Lines cannot be read (the message names them); nothing is imported then.
        """
        from workbench.desk.exchange import import_judgments

        return import_judgments(self.judging, path_of(path), name).name

    def judgments(self, set: str, judges: Sequence[str] | None = None, *, documents: bool = False) -> Judgments:
        """A query set's judgments, to measure with: `Judging.judgments` says how. Raises JudgmentError."""
        return self.judging.judgments(set, judges, documents=documents)
