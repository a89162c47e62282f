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
from workbench.cli.options import FILE, Given, bounded, flag, option, takes
from workbench.errors import CorpusNotFound, UsageError, WorkbenchError
from workbench.plan import fields as plan_fields
from workbench.plan.plan import preset
from workbench.plan.presets import PRESETS
from workbench.records import Principal

if TYPE_CHECKING:
    from workbench.demo import Answered, Contender
    from workbench.store.reader import Generation

_PORT = partial(bounded, "--port", type=click.IntRange(1, 65535), default=8501)
_NO_BROWSER = flag("--no-browser", help="Do not open a browser.")


@click.command()
@takes(options.JSON)
def presets(o: Given) -> None:
    """List the presets with one line each."""
    made = [(p, dict(preset(p.name))) for p in PRESETS]
    if o.as_json:
        plain = [{n: plan_fields.plain(v) for n, v in values.items()} for _, values in made]
        output.print_json(
            [
                {"name": p.name, "summary": p.summary, "fields": values}
                for (p, _), values in zip(made, plain, strict=True)
            ]
        )
        return
    rows = [(p.name, p.summary, " ".join(f"{n}={plan_fields.show(v)}" for n, v in own.items())) for p, own in made]
    output.console().print(output.table(("preset", "what it is", "differs from the defaults in"), rows))


@click.command()
@takes(options.JSON)
def fields(o: Given) -> None:
    """List the plan's fields with default, bounds and help."""
    names = {f.name + (".<source>" if f.family else ""): f for f in plan_fields.FIELDS}
    if o.as_json:
        output.print_json(
            [
                {"field": name, "default": plan_fields.plain(f.default), "bounds": f.bounds, "help": f.help}
                for name, f in names.items()
            ]
        )
        return
    rows = [(name, plan_fields.show(f.default), f.bounds, f.help) for name, f in names.items()]
    output.console().print(output.table(("field", "default", "bounds", "help"), rows))


@click.command()
@takes(
    *options.ASKER[:-1],
    _PORT(help="Port to listen on."),
    bounded("--host", default="127.0.0.1", help="Address to listen on."),
    _NO_BROWSER,
)
def app(o: Given) -> None:
    """Open the workbench in the browser, on this machine only unless --host says otherwise.

    Everybody who reaches the page searches as --tenant and --role, unless people sign in (the setting oidc_secrets).
    """
    from workbench.ui.launch import run_app

    principal = Principal(o.tenant, o.roles) if o.tenant or o.roles else None
    run_app(o.folder, port=o.port, host=o.host, open_browser=not o.no_browser, principal=principal)


@click.command()
@takes(
    option(
        "--http", "address", metavar="[HOST:]PORT", help="Serve streamable HTTP there; HOST is 127.0.0.1 by default."
    ),
    option(
        "--tokens", type=FILE, help="With --http: a file of bearer tokens, each with the tenant and roles it asks for."
    ),
    *options.PLAN,
    *options.ASKER[:-1],
)
def mcp(o: Given) -> None:
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
    plan = o.plan(otherwise=str(settings.get("mcp_plan")))
    if o.address is not None:
        server.parse_address(o.address)
    if o.tokens is None:
        with o.open(follow=True) as opened:
            made = server.build_server(opened, plan)
            if o.address is None:
                server.run_stdio(made)
            else:
                server.run_http(made, o.address, _report)
        return
    if o.address is None:
        raise UsageError("--tokens belongs to --http", "Give --http PORT too; standard input serves who starts it")
    if o.principal is not None:
        raise UsageError(
            "--tokens names the principals", "Leave out --tenant and --role, and the settings of these names"
        )
    from workbench.corpus import open_corpus

    people = server.People(server.read_people(o.tokens), lambda who: open_corpus(o.corpus, who, follow=True))
    try:
        server.run_http(server.build_server(people, plan), o.address, _report)
    finally:
        people.close()


def _report(text: str) -> None:
    output.say(f"workbench: {text}", err=True)


@click.command()
@takes(
    option(
        "--folder", "place", type=options.ANY_PATH, help="Where the demo's files and corpus go (default: the cache)."
    ),
    flag("--no-app", help="Index, ask three questions in four modes, and stop."),
    flag("--check", "run_check", help="Print nDCG@10 of each mode on the judged questions, and stop."),
    option("--encoder", help="Encoder for a new corpus."),
    _PORT(help="Port of the app."),
    _NO_BROWSER,
    options.JSON,
)
def demo(o: Given) -> None:
    """Index the documentation and sources of the Python that runs this, and open the workbench on them."""
    from workbench import demo as tour
    from workbench.corpus import open_corpus

    with output.progress_bar(enabled=not o.as_json) as progress:
        built = tour.build(o.place, encoder=o.encoder, progress=progress)
    if not o.as_json:
        print_report(built.report, list_files=False)
    if not (o.no_app or o.run_check or o.as_json):
        from workbench.ui.launch import run_app

        run_app(built.corpus, port=o.port, open_browser=not o.no_browser)
        return
    answers: list[Answered] = []
    contenders: list[Contender] = []
    with open_corpus(built.corpus) as corpus:
        if o.run_check:
            with output.progress_bar(enabled=not o.as_json) as progress:
                contenders.extend(tour.check(corpus, progress))
        else:
            answers.extend(tour.ask(corpus))
    if o.as_json:
        report = {n: value for n, value in report_dict(built.report).items() if n != "files"}
        found: dict[str, Any] = {"corpus": str(built.corpus), "report": report}
        if o.run_check:
            names = ("name", "measures", "against_hybrid")
            rows = ((c.name, c.evaluation.frame().to_dicts(), c.against and c.against.verdict) for c in contenders)
            found["check"] = [dict(zip(names, row, strict=True)) for row in rows]
        else:
            found["answers"] = [asdict(a) for a in answers]
        output.print_json(found)
    elif o.run_check:
        _print_check(contenders)
    else:
        _print_answers(answers)
        output.line(f"Open it: workbench app --corpus {shlex.quote(str(built.corpus))}")


def _print_answers(answers: Sequence[Answered]) -> None:
    out = output.console()
    for question in dict.fromkeys(a.question for a in answers):
        rows = [
            (a.mode, "\n".join(a.citations) or "nothing", f"{a.milliseconds:.1f}")
            for a in answers
            if a.question == question
        ]
        out.print(output.table(("mode", "first results", "ms"), rows, question.text))
        out.print(Text(question.shows, style="dim"))
        out.print()


def _print_check(contenders: Sequence[Contender]) -> None:
    first = contenders[0].evaluation
    rows = [(c.name, *(c.evaluation.mean(m) for m in first.measures)) for c in contenders]
    out = output.console()
    out.print(output.table(("", *first.measures), rows, f"{len(first.query_ids)} judged questions"))
    for c in contenders:
        if c.against is not None:
            out.print(Text(f"{c.name} against hybrid, {first.measures[0]}: {c.against.verdict}"))


# --- doctor ---

PACKAGES = (
    "duckdb usearch sentence-transformers torch openvino tokenizers polars plotly streamlit numpy pyarrow google-re2 "
    "PyStemmer pypdfium2 ir_measures"
).split()


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the examination: `state` is ok, done (repaired), note or fault."""

    area: str
    name: str
    state: str
    said: str


@click.command()
@takes(
    flag("--verify", help="Read every byte of the corpus and compare it with its digests."),
    flag("--repair", help="Build again what can be built, and set aside what is damaged; nothing is removed."),
    flag("--no-model", help="Do not load the model."),
    options.CORPUS,
    options.JSON,
)
def doctor(o: Given) -> None:
    """Check versions, settings, model and runtime, and the health of the corpus. Exit code 1 when something is wrong."""
    path = o.folder
    findings = [
        *(_tried("repair", lambda: _repair(path)) if o.repair else []),
        *_examine_versions(),
        *_examine_settings(),
        *([] if o.no_model else _tried("model", _examine_model)),
        *_tried("corpus", lambda: _examine_corpus(path, o.verify or o.repair)),
        *_tried("desk", lambda: _examine_database(path)),
    ]
    if o.as_json:
        output.print_json([asdict(f) for f in findings])
    else:
        table = Table("", "", "", "", show_header=False, box=None)
        style = {"ok": "green", "done": "green", "note": "yellow", "fault": "red"}
        for f in findings:
            table.add_row(f.area, f.name, Text(f.state, style[f.state]), output.plain(f.said))
        output.console().print(table)
    raise SystemExit(1 if any(f.state == "fault" for f in findings) else 0)


def _tried(area: str, examine: Callable[[], list[Finding]]) -> list[Finding]:
    """The findings, or the error as one."""
    try:
        return examine()
    except WorkbenchError as exc:
        return [Finding(area, "", "note" if isinstance(exc, CorpusNotFound) else "fault", str(exc))]


def _examine_versions() -> list[Finding]:
    supported = sys.version_info >= (3, 11)
    found = [
        Finding("versions", "workbench", "ok", __version__),
        Finding("versions", "python", "ok" if supported else "fault", platform.python_version()),
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
            found.append(Finding("settings", setting.name, "ok", "set" if setting.secret else repr(value)))
    known = [setting.variable for setting in settings.SETTINGS] + [settings.FILE_VARIABLE]
    # Variables of the environment that look like settings and are none, as a slip of the fingers makes them.
    for name in sorted(os.environ):
        if name.startswith(settings.PREFIX) and name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            meant = f"; did you mean {near[0]}?" if near else ""
            found.append(Finding("settings", name, "note", f"does nothing: no setting has this name{meant}"))
    return found or [Finding("settings", "", "ok", "all at their defaults")]


def _examine_model() -> list[Finding]:
    from workbench.encode.load import load_encoder

    started = time.perf_counter()
    encoder = load_encoder()
    loaded = time.perf_counter() - started
    started = time.perf_counter()
    encoder.encode_query("How is the model doing today?")
    asked = (time.perf_counter() - started) * 1000
    identity = encoder.identity
    weights = f"sha256 {identity.digest[:16]}, {identity.dim} dimensions, {identity.max_tokens} tokens"
    runtime = f"{identity.runtime}; loaded in {loaded:.1f} s, first query {asked:.0f} ms"
    rows = (("name", identity.name), ("weights", weights), ("runtime", runtime))
    found = [Finding("model", name, "ok", text) for name, text in rows]
    return found + [Finding("model", "", "note", note) for note in encoder.notes]


def _examine_corpus(path: Path, verify: bool) -> list[Finding]:
    from workbench.store.reader import open_generation

    started = time.perf_counter()
    with open_generation(path) as generation:
        generation.open_all()
        opened = (time.perf_counter() - started) * 1000
        manifest = generation.manifest
        counts = ", ".join(f"{number:,} {name}" for name, number in manifest.counts.items())
        about = f"{manifest.generation} of {manifest.created}, opened in {opened:.0f} ms"
        found = [Finding("corpus", "generation", "ok", about), Finding("corpus", "counts", "ok", counts)]
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
        remedy = f"Run `workbench doctor --repair --corpus {shlex.quote(str(path))}`"
        return [Finding("desk", FILE, "fault", f"{reason}. {remedy}")]
    return [Finding("desk", FILE, "ok", "its structure is intact")] if (path / FILE).exists() else []


def _repair(path: Path) -> list[Finding]:
    from workbench.indexing.repair import repair
    from workbench.saved.database import repair_database

    found = [Finding("repair", "desk", "done", text) for text in repair_database(path)]
    done, left = repair(path)
    found += [Finding("repair", "corpus", "done", text) for text in done]
    found += [Finding("repair", "corpus", "fault", text) for text in left]
    return found or [Finding("repair", "", "ok", "nothing is damaged")]


def _encoder(generation: Generation, key: str, name: str) -> list[Finding]:
    from workbench.encode.load import identity_of

    generation.check_encoder(identity_of(name), key)
    return [Finding("corpus", "encoder", "ok", f"{name}: the weights at hand are those of the corpus")]
