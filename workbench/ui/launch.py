"""Start the app's server in this process: what `workbench app` calls.

The settings that matter are set here and win over any `.streamlit` folder of the current folder: nothing is reported to
anybody, the server listens on this machine only, pages name no stack traces, and requests under another host name are
refused where the address is a local one.
"""

from __future__ import annotations

import ipaddress
import os
import socket
from pathlib import Path
from typing import Any

from workbench.charts.palette import BLUE, SKY
from workbench.errors import UsageError

SCRIPT = Path(__file__).with_name("app.py")


def server_options(port: int, host: str, open_browser: bool) -> dict[str, Any]:
    """Streamlit's options for a server of one machine's person."""
    options: dict[str, Any] = {
        "server.address": host,
        "server.port": port,
        "server.headless": not open_browser,
        "server.fileWatcherType": "none",
        "server.runOnSave": False,
        "browser.gatherUsageStats": False,
        "client.toolbarMode": "minimal",
        "client.showErrorDetails": "none",
        "client.showSidebarNavigation": True,
        "global.developmentMode": False,
        "theme.light.primaryColor": BLUE,
        "theme.dark.primaryColor": SKY,
    }
    if is_local(host):
        options["server.allowedHosts"] = ["localhost", "127.0.0.1", "[::1]"]
    return options


def is_local(host: str) -> bool:
    """True for an address that only this machine can reach."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def run_app(corpus: Path, port: int = 8501, host: str = "127.0.0.1", open_browser: bool = True) -> None:
    """Run the app until it is stopped (Ctrl+C).

    Args:
        corpus: The corpus folder; it may be made later, the pages say how.
        port: From 1 to 65535.
        host: The address to listen on.
        open_browser: Open the page in the person's browser.

    Raises:
        UsageError: The port cannot be used.
    """
    check_port(host, port)
    os.environ["WORKBENCH_CORPUS"] = str(Path(corpus).absolute())
    import streamlit as st

    st.App(SCRIPT).run(config=server_options(port, host, open_browser))


def check_port(host: str, port: int) -> None:
    """Say that a port is taken before Streamlit does in its own way. Raises UsageError."""
    if not 1 <= port <= 65535:
        raise UsageError(f"The port is {port}", "Pass --port with a number from 1 to 65535")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as exc:
            raise UsageError(
                f"The app cannot listen on {host}:{port}: {exc.strerror or exc}", "Pass another --port or --host"
            ) from exc
