"""`workbench doctor`: is everything here that is needed, and is the corpus whole?"""

from __future__ import annotations

import difflib
import importlib.metadata
import os
import platform
import shlex
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.table import Table
from rich.text import Text

from workbench import __version__, settings
from workbench.cli import options, output
from workbench.errors import CorpusNotFound, WorkbenchError

if TYPE_CHECKING:
    from workbench.store.reader import Generation

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
@options.corpus_option
@options.json_option
@click.pass_context
def doctor(ctx: click.Context, verify: bool, repair: bool, no_model: bool, corpus: Path | None, as_json: bool) -> None:
    """Check versions, settings, model and runtime, and the health of the corpus. Exit code 1 when something is wrong."""
    path = Path(settings.get("corpus")) if corpus is None else corpus
    findings = [
        *(_tried("repair", lambda: _repair(path)) if repair else []),
        *_versions(),
        *_settings(),
        *([] if no_model else _tried("model", _model)),
        *_tried("corpus", lambda: _corpus(path, verify or repair)),
        *_tried("desk", lambda: _desk(path)),
    ]
    if as_json:
        options.print_json([asdict(f) for f in findings])
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


def _versions() -> list[Finding]:
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


def _settings() -> list[Finding]:
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


def _model() -> list[Finding]:
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


def _corpus(path: Path, verify: bool) -> list[Finding]:
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


def _desk(path: Path) -> list[Finding]:
    from workbench.saved.database import FILE, check_database

    reason = check_database(path)
    if reason:
        return [
            Finding(
                "desk", FILE, "fault", f"{reason}. Run `workbench doctor --repair --corpus {shlex.quote(str(path))}`"
            )
        ]
    return [Finding("desk", FILE, "ok", "its structure is whole")] if (path / FILE).exists() else []


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
