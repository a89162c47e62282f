"""Options that several commands share, and `Given`: the record of options that a command gets."""

from __future__ import annotations

import functools
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import click

from workbench import settings
from workbench.errors import FilterError, JudgmentError, PlanError, UsageError
from workbench.plan.plan import Plan, assigned
from workbench.records import Principal
from workbench.retrieve.request import MODES, filter_text

if TYPE_CHECKING:
    from workbench.corpus import Corpus
    from workbench.judgments.qrels import Judgments

option, argument = click.option, click.argument
flag = functools.partial(click.option, is_flag=True)
several = functools.partial(click.option, multiple=True)
bounded = functools.partial(click.option, show_default=True)  # with a default that its help shows
FILE = click.Path(path_type=Path, exists=True, dir_okay=False)
ANY_PATH = click.Path(path_type=Path)


def _at_home(_: click.Context, __: click.Parameter, value: Path | None) -> Path | None:
    """The path with a leading `~` as the home folder: a shell leaves it as it is in `--corpus=~/x`."""
    return None if value is None else settings.path_of(value)


def _mapping(_: click.Context, __: click.Parameter, value: str | None) -> str | None:
    """A filter that is a JSON object, in the filter language."""
    if value is None or not value.lstrip().startswith("{"):
        return value
    try:
        return filter_text(json.loads(value))
    except ValueError as exc:
        raise FilterError(f"The filter is not a JSON object: {exc}", 'Write for example {"type": "note"}') from exc


def _store(_: click.Context, __: click.Parameter, value: str | None) -> None:
    """Make a store the setting `store` of this process and of those that it starts."""
    if value is not None:
        os.environ["WORKBENCH_STORE"] = value


def CORPUS(command: Any) -> Any:  # noqa: N802 - an option, or two of them
    """The corpus folder, and where its large parts are."""
    store = option(
        "--store",
        expose_value=False,
        callback=_store,
        help="Milvus server (http://host:19530) or milvus-lite file (x.db).",
    )
    folder = option(
        "--corpus", "-c", type=ANY_PATH, callback=_at_home, help="The corpus folder (default ./.workbench)."
    )
    return folder(store(command))


JSON = flag("--json", "as_json", help="Print JSON.")
ASKER = (
    option("--tenant", help="Tenant to search as."),
    several("--role", "roles", help="Role to search as; may be repeated."),
    CORPUS,
    JSON,
)
PLAN = (
    option("--plan", "plan_text", help="A plan's text form, such as 'default fusion.alpha=0.7'."),
    option("--preset", help="A preset's name; `workbench presets` lists them."),
    option("--plan-file", type=FILE, help="A plan as YAML."),
    several("--set", "changes", metavar="FIELD=VALUE", help="Change a plan field; may be repeated."),
)
PLANS = (
    several("--plan", "--preset", "plan_texts", help="A plan's text form or a preset's name; repeat it to compare."),
    several("--plan-file", "plan_files", type=FILE, help="A plan as YAML, after those of --plan; may be repeated."),
    several("--set", "changes", metavar="FIELD=VALUE", help="Change a field of every plan; may be repeated."),
)
KEYWORDS = option("--keywords", "-k", help="Exact words for grep; quoted ones are phrases.")
CONTEXT = option("--context-file", type=FILE, help="A file that you have open: names in it help the vector side.")
_MODE = functools.partial(bounded, "--mode", "-m", default="hybrid", help="Which sources answer.")
MODE, ANY_MODE = _MODE(type=click.Choice(MODES)), _MODE(type=click.Choice([*MODES, "semantic"]))
FILTER = option(
    "--filter",
    "-f",
    "filters",
    callback=_mapping,
    help="A condition on documents, such as \"type = 'note' and year >= 2024\", or a JSON object of fields and values.",
)
SPLIT = option("--split", help="Which qrels of a folder with several: qrels.SPLIT.tsv.")
JUDGES = several("--judge", "judges", help="Whose grades of a query set count; may be repeated.")
NO_KEYWORDS = flag("--no-keywords", help="Leave out the keywords that judgments have for grep.")
DROP_IDENTICAL = option(
    "--drop-identical-ids/--no-drop-identical-ids",
    "drop_identical_ids",
    default=None,
    help="Leave out of each query's results the document whose id is the query's. Default: where queries are documents.",
)


class Given(SimpleNamespace):
    """The options of one call by their names, and what several commands make of them."""

    @property
    def folder(self) -> Path:
        """The corpus folder: as given, else the setting `corpus`."""
        return Path(settings.get("corpus")) if self.corpus is None else Path(self.corpus)

    @property
    def principal(self) -> Principal | None:
        """Who asks: the options, else the settings, else the local owner (None)."""
        tenant = self.tenant or str(settings.get("tenant")) or None
        roles = self.roles or tuple(r.strip() for r in str(settings.get("roles")).split(",") if r.strip())
        return Principal(tenant, roles) if tenant or roles else None

    @property
    def context_text(self) -> str | None:
        """The text of the file that is open."""
        return self.context_file.read_text(encoding="utf-8", errors="replace") if self.context_file else None

    def pick(self, *names: str) -> dict[str, Any]:
        """Some of the options, to hand on by their names."""
        return {name: vars(self)[name] for name in names}

    def open(self, corpus: Path | None = None, *, follow: bool = False) -> Corpus:
        """The corpus (or another), open for who asks. Raises as `workbench.open_corpus` does."""
        from workbench.corpus import open_corpus

        return open_corpus(corpus or self.corpus, self.principal, follow=follow)

    def plan(self, otherwise: str = "default") -> Plan:
        """The plan. Raises PlanError: more than one is named, or one or a change cannot be read."""
        if sum(map(bool, (self.plan_text, self.preset, self.plan_file))) > 1:
            raise PlanError(
                "More than one of --plan, --preset and --plan-file is given", "Give one, and change it with --set"
            )
        if self.plan_file is not None:
            return changed(_plan_of(self.plan_file), self.changes)
        return changed(Plan.parse(self.plan_text or self.preset or otherwise), self.changes)

    def plans(self, *otherwise: str) -> tuple[Plan, ...]:
        """The plans that are run beside each other: texts and names, then files. Raises PlanError."""
        texts = self.plan_texts or (() if self.plan_files else otherwise)
        return tuple(changed(p, self.changes) for p in (*map(Plan.parse, texts), *map(_plan_of, self.plan_files)))

    def judged(self, source: str | Path, split: str | None, judges: Sequence[str] = ()) -> Judgments:
        """Judgments from a file or folder that is there, else from the query set of that name."""
        from workbench.judgments.qrels import load_judgments

        loaded = None
        if not Path(source).exists():
            with self.open() as opened:
                if str(source) in opened.judging.sets.names():
                    loaded = opened.judgments(str(source), judges or None)
        if judges and loaded is None:
            raise UsageError(
                f"{source} is not a query set, and does not say who judged",
                "Leave out --judge, or import it: workbench judge import",
            )
        loaded = loaded or load_judgments(source, split=split)
        loaded = loaded.dropping(self.drop_identical_ids)
        return loaded.without_keywords() if vars(self).get("no_keywords") else loaded


def takes(*parameters: Callable[[Any], Any]) -> Callable[[Callable[[Given], Any]], Callable[..., Any]]:
    """Arguments and options of a command, handed to it as one record."""

    def decorated(function: Callable[[Given], Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def call(**options: Any) -> Any:
            return function(Given(**options))

        for parameter in reversed(parameters):
            parameter(call)
        return call

    return decorated


def _plan_of(file: Path) -> Plan:
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as exc:
        raise PlanError(
            f"The plan file {file} cannot be read: {exc}", "Save it as UTF-8 text, or name another"
        ) from exc
    return Plan.from_yaml(text)


def changed(plan: Plan, changes: Iterable[str]) -> Plan:
    """A plan with changes such as `fusion.alpha=0.7`. Raises PlanError."""
    values = {}
    for change in changes:
        name, equals, value = assigned(change.strip())
        if not equals:
            raise PlanError(f"--set {change} is not FIELD=VALUE", "Write for example --set fusion.alpha=0.7")
        values[name.strip()] = value.strip()
    return plan.replace(values)


def read_queries(opened: Corpus, source: str, split: str | None) -> Judgments:
    """Queries to run: of a set, of judgments, or of a file of queries; qrels where the source has them, else empty ones."""
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
    topics = {q.query_id: q.topic for q in found}
    return Judgments(topics, {i: graded.get(i, {}) for i in topics}, path.stem)


# --- files that commands write ---


class Name(click.types.StringParamType):
    """A name of something that the corpus keeps: never a file, also where one is called the same."""


class OutputFile(click.Path):
    """What a command writes: refused before any work is done where it could not be written after it, or is an input
    (`Writing`).

    Args:
        also: What else is written, beside or in it.
        folder: It may be a folder.
        replaces: The name of the option whose file it may replace.
    """

    def __init__(
        self, also: Callable[[Path], Sequence[Path]] = lambda _: (), folder: bool = False, replaces: str = ""
    ) -> None:
        super().__init__(path_type=Path, dir_okay=folder, writable=True)
        self.also, self.folder, self.replaces = also, folder, replaces

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        path = Path(os.fsdecode(super().convert(value, param, ctx)))
        if not self.folder and not path.parent.is_dir():
            self.fail(f"There is no folder {str(path.parent)!r}. Make it first, or choose another place.", param, ctx)
        if not self.folder and not path.exists() and not os.access(path.parent, os.W_OK):
            self.fail(f"Nothing can be written in {str(path.parent)!r}. Choose another place.", param, ctx)
        return path


class Writing(click.Command):
    """A command that writes a file: it refuses to write over what it reads, before it does anything."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run it. Raises UsageError where an output is an input, is read in an input folder, or belongs to the corpus."""
        types: dict[str, Any] = {p.name: p.type for p in self.params if p.name is not None}
        for name, kind in types.items():
            if not isinstance(kind, OutputFile) or ctx.params.get(name) is None:
                continue
            others = {n: v for n, v in ctx.params.items() if n not in (name, kind.replaces)}
            corpus = [settings.path_of(others.pop("corpus") or settings.get("corpus"))] if "corpus" in others else []
            inputs = [*_files(v for n, v in others.items() if not isinstance(types.get(n), Name)), *corpus]
            target = Path(ctx.params[name])
            for written in (target, *kind.also(target)):
                if any(_is(written, read) for read in inputs):
                    raise UsageError(
                        f"{written} is an input of this command, and would be overwritten", "Write to another file"
                    )
        return super().invoke(ctx)


def _files(values: Iterable[Any]) -> Iterator[Path]:
    """The files and folders that arguments name, and what is read along with them: queries beside qrels."""
    from workbench.judgments.formats import read_along

    for value in values:
        if isinstance(value, tuple):
            yield from _files(value)
        elif isinstance(value, (str, Path)) and str(value):
            yield from (Path(value), *read_along(Path(value)))


def _is(written: Path, read: Path) -> bool:
    """Whether writing one would change the other: a file, or the file that is there of a corpus."""
    try:
        if (read / "generations").is_dir():
            return written.is_file() and read.resolve() in written.resolve().parents
        return os.path.samefile(written, read) and not written.is_dir()
    except (OSError, ValueError):  # one of them is not there, or no path
        return False
