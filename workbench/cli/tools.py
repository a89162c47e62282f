"""`workbench presets`, `fields`, `app`, `mcp`, `demo` and `doctor`."""

from __future__ import annotations

import difflib
import importlib.metadata
import os
import platform
import shlex
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.table import Table
from rich.text import Text

from workbench import __version__, settings
from workbench.cli import options, output
from workbench.cli.index import print_report, report_dict
from workbench.errors import CorpusNotFound, UsageError, WorkbenchError
from workbench.plan import fields as plan_fields
from workbench.plan.plan import preset
from workbench.plan.presets import PRESETS
from workbench.records import Principal

if TYPE_CHECKING:
    from workbench.demo import Answered, Contender
    from workbench.store.reader import Generation


@click.command()
@options.JSON
def presets(as_json: bool) -> None:
    """List the presets with one line each."""
    if as_json:
        output.print_json(
            [
                {"name": p.name, "summary": p.summary, "fields": {n: plan_fields.plain(v) for n, v in preset(p.name)}}
                for p in PRESETS
            ]
        )
        return
    table = Table("preset", "what it is", "differs from the defaults in", header_style="bold")
    for entry in PRESETS:
        changed = " ".join(f"{n}={plan_fields.show(v)}" for n, v in preset(entry.name))
        table.add_row(entry.name, entry.summary, changed)
    output.console().print(table)


@click.command()
@options.JSON
def fields(as_json: bool) -> None:
    """List the plan's fields with default, bounds and help."""
    if as_json:
        output.print_json(
            [
                {"field": _field_name(f), "default": plan_fields.plain(f.default), "bounds": f.bounds, "help": f.help}
                for f in plan_fields.FIELDS
            ]
        )
        return
    table = Table("field", "default", "bounds", "help", header_style="bold")
    for field in plan_fields.FIELDS:
        table.add_row(_field_name(field), plan_fields.show(field.default), field.bounds, field.help)
    output.console().print(table)


def _field_name(field: plan_fields.Field) -> str:
    return field.name + (".<source>" if field.family else "")


@click.command()
@options.takes_asker
@click.option("--port", type=click.IntRange(1, 65535), default=8501, show_default=True, help="Port to listen on.")
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option("--no-browser", is_flag=True, help="Do not open a browser.")
def app(asker: options.Asker, port: int, host: str, no_browser: bool) -> None:
    """Open the workbench in the browser, on this machine only unless --host says otherwise.

    Everybody who reaches the page searches as --tenant and --role, unless people sign in (the setting oidc_secrets).
    """
    from workbench.ui.launch import run_app

    run_app(
        Path(settings.get("corpus")) if asker.corpus is None else asker.corpus,
        port=port,
        host=host,
        open_browser=not no_browser,
        principal=Principal(asker.tenant, asker.roles) if asker.tenant or asker.roles else None,
    )


@click.command()
@click.option(
    "--http", "address", metavar="[HOST:]PORT", help="Serve streamable HTTP there; HOST is 127.0.0.1 by default."
)
@click.option(
    "--tokens", type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="With --http: a file of bearer tokens, each with the tenant and roles it asks for.",
)  # fmt: skip
@options.takes_plan
@options.takes_asker
def mcp(address: str | None, tokens: Path | None, plan: options.OnePlan, asker: options.Asker) -> None:
    """Serve the corpus to agents and editors (MCP), over standard input and output unless --http is given.

    The principal (--tenant, --role) and what may be read are fixed here: no call can change them. The plan is that of the
    setting `mcp_plan` unless another is given.
    """
    try:
        from workbench.mcp import server
    except ModuleNotFoundError as exc:
        if (exc.name or "").partition(".")[0] not in ("mcp", "mcp_types"):
            raise
        raise UsageError(
            "The package mcp is not installed", "Install it with pip install 'hybrid-retrieval-workbench[mcp]'"
        ) from exc
    chosen = plan.read(otherwise=str(settings.get("mcp_plan")))
    if address is not None:
        server.parse_address(address)
    if tokens is not None:
        if address is None:
            raise UsageError("--tokens belongs to --http", "Give --http PORT too; standard input serves who starts it")
        if asker.principal is not None:
            raise UsageError(
                "--tokens names the principals", "Leave out --tenant and --role, and the settings of these names"
            )
        from workbench.corpus import open_corpus
        from workbench.mcp.server import People, read_people

        people = People(read_people(tokens), lambda who: open_corpus(asker.corpus, who, follow=True))
        try:
            server.run_http(server.build_server(people, chosen), address, _said)
        finally:
            people.close()
        return
    with asker.open(follow=True) as opened:
        made = server.build_server(opened, chosen)
        if address is None:
            server.run_stdio(made)
        else:
            server.run_http(made, address, _said)


def _said(text: str) -> None:
    output.say(f"workbench: {text}", err=True)


@click.command()
@click.option(
    "--folder", type=click.Path(path_type=Path), help="Where the demo's files and corpus go (default: the cache)."
)
@click.option("--no-app", is_flag=True, help="Index, ask three questions in four modes, and stop.")
@click.option(
    "--check", "run_check", is_flag=True, help="Print nDCG@10 of each mode on the judged questions, and stop."
)
@click.option("--encoder", help="Encoder for a new corpus.")
@click.option("--port", type=click.IntRange(1, 65535), default=8501, show_default=True, help="Port of the app.")
@click.option("--no-browser", is_flag=True, help="Do not open a browser.")
@options.JSON
def demo(
    folder: Path | None, no_app: bool, run_check: bool, encoder: str | None, port: int, no_browser: bool, as_json: bool
) -> None:
    """Index the documentation and sources of the Python that runs this, and open the workbench on them."""
    from workbench import demo as tour
    from workbench.corpus import open_corpus

    data: dict[str, Any] = {}
    with output.progress_bar(enabled=not as_json) as progress:
        built = tour.build(folder, encoder=encoder, progress=progress)
    data |= {"corpus": str(built.corpus), "report": report_dict(built.report)}
    if not as_json:
        print_report(built.report, list_files=False)
    if no_app or run_check or as_json:
        with open_corpus(built.corpus) as corpus:
            if run_check:
                with output.progress_bar(enabled=not as_json) as progress:
                    contenders = tour.check(corpus, progress)
                data["check"] = [_contender(c) for c in contenders]
            else:
                answers = tour.ask(corpus)
                data["answers"] = [asdict(a) for a in answers]
        if as_json:
            data["report"].pop("files")
            output.print_json(data)
        elif run_check:
            _print_check(contenders)
        else:
            _print_answers(answers)
            output.console().print(f"Open it: workbench app --corpus {shlex.quote(str(built.corpus))}", soft_wrap=True)
        return
    from workbench.ui.launch import run_app

    run_app(built.corpus, port=port, open_browser=not no_browser)


def _contender(contender: Contender) -> dict[str, Any]:
    verdict = contender.against.verdict if contender.against is not None else None
    return {"name": contender.name, "measures": contender.evaluation.frame().to_dicts(), "against_hybrid": verdict}


def _print_answers(answers: Sequence[Answered]) -> None:
    out = output.console()
    for question in dict.fromkeys(a.question for a in answers):
        table = Table(
            "mode", "first results", "ms", header_style="bold", title=Text(question.text), title_justify="left"
        )
        for answer in answers:
            if answer.question == question:
                cited = "\n".join(answer.citations) or "nothing"
                table.add_row(answer.mode, output.plain(cited), f"{answer.milliseconds:.1f}")
        out.print(table)
        out.print(Text(question.shows, style="dim"))
        out.print()


def _print_check(contenders: Sequence[Contender]) -> None:
    out = output.console()
    first = contenders[0].evaluation
    table = Table(
        "", *first.measures, header_style="bold", title=f"{len(first.query_ids)} judged questions", title_justify="left"
    )
    for contender in contenders:
        table.add_row(contender.name, *(f"{contender.evaluation.mean(m):.4f}" for m in first.measures))
    out.print(table)
    for contender in contenders:
        if contender.against is not None:
            out.print(Text(f"{contender.name} against hybrid, {first.measures[0]}: {contender.against.verdict}"))


PACKAGES = (
    "duckdb", "usearch", "sentence-transformers", "torch", "openvino", "tokenizers", "polars", "plotly", "streamlit", "numpy",
    "pyarrow", "google-re2", "PyStemmer", "pypdfium2", "ir_measures",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the examination: `state` is ok, done (repaired), note or fault."""

    area: str
    name: str
    state: str
    said: str


@click.command()
@click.option("--verify", is_flag=True, help="Read every byte of the corpus and compare it with its digests.")
@click.option(
    "--repair", is_flag=True, help="Build again what can be built, and set aside what is damaged; nothing is removed."
)
@click.option("--no-model", is_flag=True, help="Do not load the model.")
@options.CORPUS
@options.JSON
@click.pass_context
def doctor(ctx: click.Context, verify: bool, repair: bool, no_model: bool, corpus: Path | None, as_json: bool) -> None:
    """Check versions, settings, model and runtime, and the health of the corpus. Exit code 1 when something is wrong."""
    path = Path(settings.get("corpus")) if corpus is None else corpus
    findings = [
        *(_tried("repair", lambda: _repair(path)) if repair else []),
        *_examine_versions(),
        *_examine_settings(),
        *([] if no_model else _tried("model", _examine_model)),
        *_tried("corpus", lambda: _examine_corpus(path, verify or repair)),
        *_tried("desk", lambda: _examine_database(path)),
    ]
    if as_json:
        output.print_json([asdict(f) for f in findings])
    else:
        table = Table("", "", "", "", header_style="bold", show_header=False, box=None)
        style = {"ok": "green", "done": "green", "note": "yellow", "fault": "red"}
        for f in findings:
            table.add_row(f.area, f.name, Text(f.state, style[f.state]), output.plain(f.said))
        output.console().print(table)
    ctx.exit(1 if any(f.state == "fault" for f in findings) else 0)


def _tried(area: str, examine: Callable[[], list[Finding]]) -> list[Finding]:
    """The findings, or the error as one."""
    try:
        return examine()
    except CorpusNotFound as exc:
        return [Finding(area, "", "note", str(exc))]
    except WorkbenchError as exc:
        return [Finding(area, "", "fault", str(exc))]


def _examine_versions() -> list[Finding]:
    found = [
        Finding("versions", "workbench", "ok", __version__),
        Finding("versions", "python", "ok" if sys.version_info >= (3, 11) else "fault", platform.python_version()),
    ]
    for name in PACKAGES:
        try:
            found.append(Finding("versions", name, "ok", importlib.metadata.version(name)))
        except importlib.metadata.PackageNotFoundError:
            found.append(Finding("versions", name, "fault", f"not installed: pip install {name}"))
    return found


def _examine_settings() -> list[Finding]:
    found = []
    for setting in settings.SETTINGS:
        try:
            value = settings.get(setting.name)
        except WorkbenchError as exc:
            found.append(Finding("settings", setting.name, "fault", str(exc)))
            continue
        if value != setting.default:
            shown = "set" if setting.secret else repr(value)
            found.append(Finding("settings", setting.name, "ok", shown))
    found += [Finding("settings", name, "note", said) for name, said in _without_effect()]
    return found or [Finding("settings", "", "ok", "all at their defaults")]


def _without_effect() -> list[tuple[str, str]]:
    """Variables of the environment that look like settings and are none, as a slip of the fingers makes them."""
    known = [setting.variable for setting in settings.SETTINGS] + [settings.FILE_VARIABLE]
    made = []
    for name in sorted(os.environ):
        if name.startswith(settings.PREFIX) and name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            made.append(
                (name, "does nothing: no setting has this name" + (f"; did you mean {near[0]}?" if near else ""))
            )
    return made


def _examine_model() -> list[Finding]:
    from workbench.encode.load import load_encoder

    started = time.perf_counter()
    encoder = load_encoder()
    loaded = time.perf_counter() - started
    started = time.perf_counter()
    encoder.encode_query("How is the model doing today?")
    asked = (time.perf_counter() - started) * 1000
    identity = encoder.identity
    found = [
        Finding("model", "name", "ok", identity.name),
        Finding(
            "model",
            "weights",
            "ok",
            f"sha256 {identity.digest[:16]}, {identity.dim} dimensions, {identity.max_tokens} tokens",
        ),
        Finding("model", "runtime", "ok", f"{identity.runtime}; loaded in {loaded:.1f} s, first query {asked:.0f} ms"),
    ]
    return found + [Finding("model", "", "note", note) for note in encoder.notes]


def _examine_corpus(path: Path, verify: bool) -> list[Finding]:
    from workbench.store.reader import open_generation

    started = time.perf_counter()
    with open_generation(path) as generation:
        generation.open_all()
        opened = (time.perf_counter() - started) * 1000
        manifest = generation.manifest
        counts = ", ".join(f"{number:,} {name}" for name, number in manifest.counts.items())
        found = [
            Finding(
                "corpus", "generation", "ok", f"{manifest.generation} of {manifest.created}, opened in {opened:.0f} ms"
            ),
            Finding("corpus", "counts", "ok", counts),
        ]
        for key, identity in generation.encoders.items():
            found += _tried("corpus", partial(_encoder, generation, key, identity.name))
        if verify:
            generation.verify()
            found.append(Finding("corpus", "digests", "ok", f"{len(manifest.parts)} parts are as they were written"))
    return found


def _examine_database(path: Path) -> list[Finding]:
    from workbench.saved.database import FILE, check_database

    reason = check_database(path)
    if reason:
        return [
            Finding(
                "desk", FILE, "fault", f"{reason}. Run `workbench doctor --repair --corpus {shlex.quote(str(path))}`"
            )
        ]
    return [Finding("desk", FILE, "ok", "its structure is intact")] if (path / FILE).exists() else []


def _repair(path: Path) -> list[Finding]:
    from workbench.indexing.repair import repair
    from workbench.saved.database import repair_database

    found = [Finding("repair", "desk", "done", line) for line in repair_database(path)]
    done, left = repair(path)
    found += [Finding("repair", "corpus", "done", line) for line in done]
    found += [Finding("repair", "corpus", "fault", line) for line in left]
    return found or [Finding("repair", "", "ok", "nothing is damaged")]


def _encoder(generation: Generation, key: str, name: str) -> list[Finding]:
    from workbench.encode.load import identity_of

    generation.check_encoder(identity_of(name), key)
    return [Finding("corpus", "encoder", "ok", f"{name}: the weights at hand are those of the corpus")]
