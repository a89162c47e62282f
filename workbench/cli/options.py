"""Options that several commands share, declared once.

A command does not spell them out: `takes_asker`, `takes_plan` and `takes_plans` gather their options into one record each,
which the command gets as its argument `asker`, `plan` or `plans`.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from workbench import settings
from workbench.errors import FilterError, PlanError, UsageError
from workbench.plan.plan import Plan, assigned
from workbench.records import Principal
from workbench.retrieve.request import MODES, filter_text

if TYPE_CHECKING:
    from workbench.corpus import Corpus
    from workbench.judgments.qrels import Judgments


F = TypeVar("F", bound=Callable[..., Any])


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


_FILE = click.Path(path_type=Path, exists=True, dir_okay=False)
_MODE_HELP = "Which sources answer."
CORPUS = click.option(
    "--corpus", "-c", type=click.Path(path_type=Path), callback=_at_home,
    help="The corpus folder (default ./.workbench).",
)  # fmt: skip
JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
KEYWORDS = click.option("--keywords", "-k", help="Exact words for grep; quoted ones are phrases.")
CONTEXT = click.option(
    "--context-file", type=_FILE, help="A file that you have open: names in it help the vector side."
)
MODE = click.option("--mode", "-m", type=click.Choice(MODES), default="hybrid", show_default=True, help=_MODE_HELP)
ANY_MODE = click.option(
    "--mode", "-m", type=click.Choice([*MODES, "semantic"]), default="hybrid", show_default=True, help=_MODE_HELP
)
FILTER = click.option(
    "--filter", "-f", "filters", callback=_mapping,
    help="A condition on documents, such as \"type = 'note' and year >= 2024\", or a JSON object of fields and values.",
)  # fmt: skip
SPLIT = click.option("--split", help="Which qrels of a folder with several: qrels.SPLIT.tsv.")
JUDGES = click.option("--judge", "judges", multiple=True, help="Whose grades of a query set count; may be repeated.")
NO_KEYWORDS = click.option("--no-keywords", is_flag=True, help="Leave out the keywords that judgments have for grep.")
DROP_IDENTICAL = click.option(
    "--drop-identical-ids/--no-drop-identical-ids", "drop_identical_ids", default=None,
    help="Leave out of each query's results the document whose id is the query's. Default: where queries are documents.",
)  # fmt: skip


class Name(click.types.StringParamType):
    """A name of something that the corpus keeps: never a file, also where one is called the same."""


class OutputFile(click.Path):
    """What a command writes: refused before any work is done where it could not be written after it, or is an input
    (`Writing`).
    """

    def __init__(
        self, also: Callable[[Path], Sequence[Path]] = lambda _: (), folder: bool = False, replaces: str = ""
    ) -> None:
        super().__init__(path_type=Path, dir_okay=folder, writable=True)
        self.also, self.folder, self.replaces = also, folder, replaces

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The path, whose folder is there."""
        path = Path(os.fsdecode(super().convert(value, param, ctx)))
        folder = path.parent
        if self.folder:
            return path
        if not folder.is_dir():
            self.fail(f"There is no folder {str(folder)!r}. Make it first, or choose another place.", param, ctx)
        if not path.exists() and not os.access(folder, os.W_OK):
            self.fail(f"Nothing can be written in {str(folder)!r}. Choose another place.", param, ctx)
        return path


class Writing(click.Command):
    """A command that writes a file: it refuses to write over what it reads, before it does anything."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run it. Raises UsageError where an output is an input, is read in an input folder, or belongs to the corpus."""
        types: dict[str, Any] = {p.name: p.type for p in self.params if p.name is not None}
        for name, kind in types.items():
            if not isinstance(kind, OutputFile) or ctx.params.get(name) is None:
                continue
            given = {
                other: value for other, value in ctx.params.items()
                if other not in (name, kind.replaces) and not isinstance(types.get(other), Name)
            }  # fmt: skip
            corpus = [settings.path_of(given.pop("corpus") or settings.get("corpus"))] if "corpus" in given else []
            inputs = [*_files(given.values()), *corpus]
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
            path = Path(value)
            yield path
            yield from read_along(path)


def _is(written: Path, read: Path) -> bool:
    """Whether writing one would change the other: a file, or the file that is there of a corpus."""
    try:
        if (read / "generations").is_dir():
            return written.is_file() and read.resolve() in written.resolve().parents
        return os.path.samefile(written, read) and not written.is_dir()
    except (OSError, ValueError):  # one of them is not there, or no path
        return False


@dataclass(frozen=True, slots=True)
class Asker:
    """Whom a command runs for, and on which corpus.

    Attributes:
        corpus: The folder as given; None is the setting `corpus`.
    """

    corpus: Path | None
    tenant: str | None
    roles: tuple[str, ...]

    @property
    def principal(self) -> Principal | None:
        """Who asks: the options, else the settings, else the local owner (None)."""
        tenant = self.tenant or str(settings.get("tenant")) or None
        roles = self.roles or tuple(r.strip() for r in str(settings.get("roles")).split(",") if r.strip())
        return Principal(tenant, roles) if tenant or roles else None

    def open(self, *, follow: bool = False) -> Corpus:
        """The corpus, open for who asks; closed by `with`. Raises as `workbench.open_corpus` does."""
        from workbench.corpus import open_corpus

        return open_corpus(self.corpus, self.principal, follow=follow)


@dataclass(frozen=True, slots=True)
class OnePlan:
    """One plan, as the options ask for it: at most one of text, preset and file, and changes to it."""

    plan_text: str | None
    preset: str | None
    plan_file: Path | None
    changes: tuple[str, ...]

    @property
    def given(self) -> bool:
        """Whether a plan was named; changes alone name none."""
        return bool(self.plan_text or self.preset or self.plan_file)

    def read(self, otherwise: str = "default") -> Plan:
        """The plan. Raises PlanError: more than one is named, or one or a change cannot be read."""
        if len([x for x in (self.plan_text, self.preset, self.plan_file) if x]) > 1:
            raise PlanError(
                "More than one of --plan, --preset and --plan-file is given", "Give one, and change it with --set"
            )
        if self.plan_file is not None:
            plan = Plan.from_yaml(_read_text(self.plan_file))
        else:
            plan = Plan.parse(self.plan_text or self.preset or otherwise)
        values = {}
        for change in self.changes:
            name, equals, value = assigned(change.strip())
            if not equals:
                raise PlanError(f"--set {change} is not FIELD=VALUE", "Write for example --set fusion.alpha=0.7")
            values[name.strip()] = value.strip()
        return plan.replace(values)


@dataclass(frozen=True, slots=True)
class ManyPlans:
    """Plans that are run beside each other: texts or names first, then files, and changes to each."""

    plans: tuple[str, ...]
    plan_files: tuple[Path, ...]
    changes: tuple[str, ...]

    @property
    def given(self) -> bool:
        """Whether any plan was named."""
        return bool(self.plans or self.plan_files)

    def read(self) -> tuple[Plan, ...]:
        """The plans, in order; `default` where there are none. Raises PlanError."""
        texts = self.plans or (() if self.plan_files else ("default",))
        named = [OnePlan(text, None, None, self.changes) for text in texts]
        named += [OnePlan(None, None, file, self.changes) for file in self.plan_files]
        return tuple(one.read() for one in named)


def _read_text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as exc:
        raise PlanError(
            f"The plan file {file} cannot be read: {exc}", "Save it as UTF-8 text, or name another"
        ) from exc


def takes_asker(function: F) -> F:
    """`--tenant`, `--role` and `--corpus`, handed to the command as `asker`."""
    function = CORPUS(_gathering(function, "asker", Asker))
    function = click.option("--role", "roles", multiple=True, help="Role to search as; may be repeated.")(function)
    return click.option("--tenant", help="Tenant to search as.")(function)


def takes_plan(function: F) -> F:
    """`--plan`, `--preset`, `--plan-file` and `--set`, handed to the command as `plan`."""
    function = click.option(
        "--set", "changes", multiple=True, metavar="FIELD=VALUE", help="Change a plan field; may be repeated."
    )(_gathering(function, "plan", OnePlan))
    function = click.option("--plan-file", type=_FILE, help="A plan as YAML.")(function)
    function = click.option("--preset", help="A preset's name; `workbench presets` lists them.")(function)
    return click.option("--plan", "plan_text", help="A plan's text form, such as 'default fusion.alpha=0.7'.")(function)


def takes_plans(function: F) -> F:
    """`--plan` (or `--preset`), `--plan-file` and `--set`, each for several plans, handed to the command as `plans`."""
    function = click.option(
        "--set", "changes", multiple=True, metavar="FIELD=VALUE", help="Change a field of every plan; may be repeated."
    )(_gathering(function, "plans", ManyPlans))
    function = click.option(
        "--plan-file",
        "plan_files",
        multiple=True,
        type=_FILE,
        help="A plan as YAML, after those of --plan; may be repeated.",
    )(function)
    return click.option(
        "--plan",
        "--preset",
        "plans",
        multiple=True,
        help="A plan's text form or a preset's name; repeat it to compare.",
    )(function)


def _gathering(function: F, name: str, kind: Callable[..., Any]) -> F:
    """The command with one argument, a record, in the place of the options that are the record's fields."""
    fields = tuple(field.name for field in dataclasses.fields(kind))  # type: ignore[arg-type]  # it is a dataclass

    @functools.wraps(function)
    def gathered(*args: Any, **options: Any) -> Any:
        made = kind(**{field: options.pop(field) for field in fields})
        return function(*args, **{**options, name: made})

    return gathered  # type: ignore[return-value]  # a decorator of click commands keeps their type, not their signature


# --- judgments and queries: a file, a folder, or a query set of the corpus by its name ---


def read_judgments(source: str | Path, split: str | None, asker: Asker, judges: Sequence[str] = ()) -> Judgments:
    """Judgments from a file or folder that is there, else from the query set of that name.

    Raises:
        JudgmentError: There is neither, or it has no judgments.
        UsageError: Judges are named, and it is not a query set.
    """
    from workbench.errors import UsageError
    from workbench.judgments.qrels import load_judgments

    if not Path(source).exists():
        with asker.open() as opened:
            if str(source) in opened.judging.sets.names():
                return opened.judgments(str(source), judges or None)
    if judges:
        raise UsageError(
            f"{source} is not a query set, and does not say who judged",
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
