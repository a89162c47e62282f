"""Options that several commands share, declared once.

A command does not spell them out: `takes_asker`, `takes_plan` and `takes_plans` gather their options into one record each,
which the command gets as its argument `asker`, `plan` or `plans`.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from workbench import settings
from workbench.errors import PlanError, UsageError
from workbench.plan.plan import Plan, assigned
from workbench.records import Principal

if TYPE_CHECKING:
    from workbench.corpus import Corpus

_UNSEEN = re.compile("[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")

F = TypeVar("F", bound=Callable[..., Any])


def corpus_option(function: F) -> F:
    """`--corpus`."""
    return click.option(
        "--corpus",
        "-c",
        type=click.Path(path_type=Path),
        callback=_at_home,
        help="The corpus folder (default ./.workbench).",
    )(function)


def _at_home(_: click.Context, __: click.Parameter, value: Path | None) -> Path | None:
    """The path with a leading `~` as the home folder: a shell leaves it as it is in `--corpus=~/x`."""
    return None if value is None else settings.path_of(value)


def json_option(function: F) -> F:
    """`--json`."""
    return click.option("--json", "as_json", is_flag=True, help="Print JSON.")(function)


def drop_identical_option(function: F) -> F:
    """`--drop-identical-ids`."""
    return click.option(
        "--drop-identical-ids/--no-drop-identical-ids",
        "drop_identical_ids",
        default=None,
        help="Leave out of each query's results the document whose id is the query's. Default: where queries are documents.",
    )(function)


class Name(click.types.StringParamType):
    """A name of something that the corpus keeps: never a file, also where one is called the same."""


class OutputFile(click.Path):
    """What a command writes: refused before any work is done where it could not be written after it, or is an input
    (`Writing`).

    Args:
        also: The other files that come with it.
        folder: It may be a folder, and is made.
        replaces: The input that it may be: the command reads that first, and says when it replaces it.
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
        tenant, roles: As given.
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
        """The plan.

        Args:
            otherwise: What stands where none is named, in text form.

        Raises:
            PlanError: More than one is named, or one or a change cannot be read.
        """
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
    function = corpus_option(_gathering(function, "asker", Asker))
    function = click.option("--role", "roles", multiple=True, help="A role of who asks; may be repeated.")(function)
    return click.option("--tenant", help="The tenant of who asks.")(function)


def takes_plan(function: F) -> F:
    """`--plan`, `--preset`, `--plan-file` and `--set`, handed to the command as `plan`."""
    function = click.option(
        "--set", "changes", multiple=True, metavar="FIELD=VALUE", help="Change a plan field; may be repeated."
    )(_gathering(function, "plan", OnePlan))
    function = click.option(
        "--plan-file", type=click.Path(path_type=Path, exists=True, dir_okay=False), help="A plan as YAML."
    )(function)
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
        type=click.Path(path_type=Path, exists=True, dir_okay=False),
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


def print_json(data: Any) -> None:
    """JSON with sorted-as-given keys, readable, in UTF-8; control characters and halves of surrogate pairs are escaped."""
    text = json.dumps(data, ensure_ascii=False, indent=2, allow_nan=False)
    click.echo(_UNSEEN.sub(lambda match: f"\\u{ord(match[0]):04x}", text))
