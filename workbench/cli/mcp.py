"""`workbench mcp`."""

from __future__ import annotations

import click

from workbench.cli import options
from workbench.errors import UsageError


@click.command()
@click.option(
    "--http", "address", metavar="[HOST:]PORT", help="Serve streamable HTTP there; HOST is 127.0.0.1 by default."
)
@options.takes_plan
@options.takes_asker
def mcp(
    address: str | None,
    plan: options.OnePlan,
    asker: options.Asker,
) -> None:
    """Serve the corpus to agents and editors (MCP), over standard input and output unless --http is given.

    Who asks (--tenant, --role) and what may be read are fixed here: no call can change them. The plan is `passages` unless
    another is given.
    """
    try:
        from workbench.mcp import server
    except ModuleNotFoundError as exc:
        if (exc.name or "").partition(".")[0] not in ("mcp", "mcp_types"):
            raise
        raise UsageError(
            "The package mcp is not installed", "Install it with pip install 'hybrid-retrieval-workbench[mcp]'"
        ) from exc
    chosen = plan.read(otherwise=server.DEFAULT_PLAN)
    if address is not None:
        server.parse_address(address)
    with asker.open(follow=True) as opened:
        made = server.build_server(opened, chosen)
        if address is None:
            server.run_stdio(made)
        else:
            server.run_http(made, address, lambda said: click.echo(f"workbench: {said}", err=True))
