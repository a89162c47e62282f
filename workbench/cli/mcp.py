"""`workbench mcp`."""

from __future__ import annotations

from pathlib import Path

import click

from workbench import settings
from workbench.cli import options, output
from workbench.errors import UsageError


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

    Who asks (--tenant, --role) and what may be read are fixed here: no call can change them. The plan is that of the
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
            raise UsageError("--tokens says who asks", "Leave out --tenant and --role, and the settings of these names")
        from workbench.corpus import open_corpus
        from workbench.mcp.people import People, read_people

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
