"""The command line: `workbench COMMAND`.

Exit codes: 0 done, 1 nothing found (or a check that failed), 2 a usage or input error. Errors are one sentence on standard
error with the remedy. What a command prints as data can be had as JSON with `--json`. Commands are loaded when they are
called, so that `workbench --help` starts at once.
"""

from __future__ import annotations

import importlib
import sys
from typing import Any

import click

from workbench import __version__
from workbench.errors import WorkbenchError

COMMANDS: dict[str, tuple[str, str, str]] = {
    "index": ("workbench.cli.index", "index", "Index files and folders into a corpus."),
    "remove": ("workbench.cli.index", "remove", "Remove files and folders from a corpus."),
    "move": ("workbench.cli.index", "move", "Move documents to another collection of a corpus."),
    "rollback": ("workbench.cli.index", "rollback", "Save states of a corpus, and restore one."),
    "info": ("workbench.cli.index", "info", "What a corpus holds."),
    "search": ("workbench.cli.search", "search", "Search by grep, keyword, vector or hybrid."),
    "explain": ("workbench.cli.search", "explain", "Explain where a document ranks in a search, and why."),
    "compare": ("workbench.cli.search", "compare", "Run queries under several plans, side by side."),
    "grep": ("workbench.cli.search", "grep", "Find lines by fixed text or regular expression."),
    "read": ("workbench.cli.search", "read", "Print a document's text."),
    "examples": ("workbench.cli.search", "examples", "Find code examples with a line on what each is."),
    "presets": ("workbench.cli.tools", "presets", "List the presets."),
    "fields": ("workbench.cli.tools", "fields", "List the plan's fields with default, bounds and help."),
    "judge": ("workbench.cli.judge", "judge", "Query sets and judgments: list, import, export, make, agreement."),
    "run": ("workbench.cli.evaluate", "run", "Write what a plan answers to many queries as a TREC run."),
    "eval": ("workbench.cli.evaluate", "evaluate", "Measure plans on judged queries."),
    "tune": ("workbench.cli.evaluate", "tune", "Try many plans on judged queries and save the best one."),
    "threshold": ("workbench.cli.evaluate", "threshold", "Find thresholds: what each costs on judged queries."),
    "check": ("workbench.cli.evaluate", "check", "Fail when a plan got worse on judged queries."),
    "snapshot": ("workbench.cli.snapshot", "snapshot", "Keep results as files: save, show, verify, diff, export."),
    "app": ("workbench.cli.tools", "app", "Open the workbench in the browser."),
    "mcp": ("workbench.cli.tools", "mcp", "Serve the corpus to agents and editors over MCP."),
    "demo": ("workbench.cli.tools", "demo", "Index Python's own documentation and open the workbench on it."),
    "doctor": ("workbench.cli.tools", "doctor", "Check versions, model, runtime and corpus; repair a damaged one."),
}


class LazyGroup(click.Group):
    """A group whose commands are imported when they are asked for, and whose errors are one sentence."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The commands, in the order of the table."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import and return a command, or None."""
        entry = COMMANDS.get(cmd_name)
        if entry is None:
            return None
        command: click.Command = getattr(importlib.import_module(entry[0]), entry[1])
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, entry[2]) for name, entry in COMMANDS.items()])

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command; a WorkbenchError becomes one sentence and exit code 2."""
        try:
            return super().invoke(ctx)
        except WorkbenchError as exc:
            _say(str(exc))
            ctx.exit(2)
        except BrokenPipeError:
            # The reader of a pipe (`| head`) went away: nothing is wrong.
            sys.stderr.close()
            ctx.exit(0)
        except OSError as exc:
            if exc.filename is None:
                raise
            # A file that cannot be read or written is the user's to mend; a trace of calls would not help with it.
            _say(f"{exc.filename}: {exc.strerror}. Check the path, its rights and the disk.")
            ctx.exit(2)


def _say(fault: str) -> None:
    from workbench.cli import output

    output.say(f"workbench: {fault}", err=True)


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(__version__, prog_name="workbench")
def main() -> None:
    """Explore hybrid retrieval over your own files.

    \b
    workbench index ~/my-notes       index a folder
    workbench search "how do ..."    search it
    workbench app                    explore it in the browser
    """


if __name__ == "__main__":
    main()
