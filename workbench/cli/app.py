"""`workbench app`."""

from __future__ import annotations

from pathlib import Path

import click

from workbench import settings
from workbench.cli import options
from workbench.records import Principal


@click.command()
@options.takes_asker
@click.option("--port", type=click.IntRange(1, 65535), default=8501, show_default=True, help="Port to listen on.")
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option("--no-browser", is_flag=True, help="Do not open a browser.")
def app(asker: options.Asker, port: int, host: str, no_browser: bool) -> None:
    """Open the workbench in the browser, on this machine only unless --host says otherwise.

    Everybody who reaches the page looks as --tenant and --role, unless people sign in (the setting oidc_secrets).
    """
    from workbench.ui.launch import run_app

    run_app(
        Path(settings.get("corpus")) if asker.corpus is None else asker.corpus,
        port=port,
        host=host,
        open_browser=not no_browser,
        principal=Principal(asker.tenant, asker.roles) if asker.tenant or asker.roles else None,
    )
