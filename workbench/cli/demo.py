"""`workbench demo`: a real corpus that every machine has, three questions in four modes, a check, and the app."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.table import Table
from rich.text import Text

from workbench.cli import options, output
from workbench.cli.index import print_report, report_dict

if TYPE_CHECKING:
    from workbench.demo import Answered, Contender


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
@options.json_option
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
            options.print_json(data)
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
