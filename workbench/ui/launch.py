"""Start the app's server in this process: what `workbench app` calls.

The settings that matter are set here and win over any `.streamlit` folder of the current folder: nothing is reported to
anybody, the server listens on this machine only, pages name no stack traces, and requests under another host name are
refused where the address is a local one.
"""

from __future__ import annotations

import ctypes
import ipaddress
import os
import socket
import tomllib
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from workbench import settings
from workbench.charts.layout import BLUE, SKY
from workbench.errors import SettingError, UsageError
from workbench.records import Principal

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD, _M_ARENA_MAX = -1, -3, -8  # of malloc.h
SCRIPT = Path(__file__).with_name("app.py")


def server_options(port: int, host: str, open_browser: bool) -> dict[str, Any]:
    options: dict[str, Any] = {
        "server.address": host,
        "server.port": port,
        "server.headless": not open_browser,
        "server.fileWatcherType": "none",
        "server.runOnSave": False,
        # After each run Streamlit would collect garbage of all ages: .1 s with a model in memory, twice a move of a slider.
        # Python's own collection keeps the memory flat (`bench.load`).
        "runner.postScriptGC": False,
        # A closed page's session keeps its results, some MB, until then; what it showed is in its address.
        "server.disconnectedSessionTTL": 30,
        "browser.gatherUsageStats": False,
        "client.toolbarMode": "minimal",
        "client.showErrorDetails": "none",
        "client.showErrorLinks": False,  # they would take what went wrong to a search engine
        "client.showSidebarNavigation": True,
        "global.developmentMode": False,
        # Controls get their value both ways (see ui.controls), and a warning on each page would say so.
        "global.disableWidgetStateDuplicationWarning": True,
        "theme.light.primaryColor": BLUE,
        "theme.dark.primaryColor": SKY,
    }
    hosts = ["localhost", "127.0.0.1", "[::1]"]
    if named := str(settings.get("oidc_secrets")):
        path = Path(named).expanduser()
        back = urlsplit(str(read_auth(path)["redirect_uri"])).hostname  # where the provider sends people back to
        hosts += [back] if back and back not in hosts else []
        options["secrets.files"] = [str(path.absolute())]
    return options | ({"server.allowedHosts": hosts} if is_local(host) else {})


def read_auth(path: Path) -> Mapping[str, Any]:
    """The `[auth]` table of a secrets file, checked before the server starts: a fault must not leave the door open.

    Raises:
        SettingError: The file cannot be read or lacks what signing in needs, or Authlib is not installed.
    """
    try:
        auth = tomllib.loads(path.read_text(encoding="utf-8")).get("auth", {})
    except (OSError, ValueError) as exc:
        unreadable = f"The file of the setting oidc_secrets cannot be read: {exc}"
        raise SettingError(unreadable, "Fix it or the setting") from exc
    if not isinstance(auth, dict):
        auth = {}
    lacking = [n for n in ("redirect_uri", "cookie_secret") if not auth.get(n)]
    providers = [auth] if "" in providers_of(auth) else [auth[n] for n in providers_of(auth)]
    for provider in providers:
        lacking += [n for n in ("client_id", "client_secret", "server_metadata_url") if not provider.get(n)]
    if lacking or not providers:
        missing = ", ".join(dict.fromkeys(lacking)) or "a provider with client_id"
        raise SettingError(f"The [auth] table of {path} lacks {missing}", "See the guide, Signing in")
    if find_spec("authlib") is None:
        raise SettingError("Signing in needs Authlib", "pip install 'hybrid-retrieval-workbench[auth]'")
    return auth


def providers_of(auth: Mapping[str, Any]) -> tuple[str, ...]:
    """Names of an `[auth]` table's providers, sorted; "" is the one without a name."""
    named = sorted(n for n, v in auth.items() if isinstance(v, Mapping) and "client_id" in v)
    return (("",) if "client_id" in auth else ()) + tuple(named)


def is_local(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def run_app(
    corpus: Path,
    port: int = 8501,
    host: str = "127.0.0.1",
    open_browser: bool = True,
    principal: Principal | None = None,
) -> None:
    """Run the app until it is stopped (Ctrl+C). The corpus may be made later, the pages say how.

    Raises:
        UsageError: The port cannot be used, or a principal is given where people sign in.
        SettingError: People shall sign in, and the provider's file is not complete.
    """
    check_port(host, port)
    os.environ["WORKBENCH_CORPUS"] = str(Path(corpus).absolute())
    give_memory_back()
    look_as(principal)
    import streamlit as st

    from workbench.ui import routes

    app = st.App(SCRIPT, routes=routes.routes())
    app.run(config=server_options(port, host, open_browser))


def give_memory_back() -> None:
    """Have glibc return what pages free to the system; on other systems nothing.

    Streamlit runs every page in a thread of its own. glibc gives threads up to eight heaps a processor, and raises the size from
    which a block is mapped (and unmapped) by itself up to 32 MB: what results free stays behind as holes.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):
        return
    mallopt(_M_ARENA_MAX, 2)
    mallopt(_M_MMAP_THRESHOLD, 256 << 10)
    mallopt(_M_TRIM_THRESHOLD, 1 << 20)


def look_as(principal: Principal | None) -> None:
    """Make a principal the one that this process's pages look as. Raises UsageError where people sign in."""
    if principal is None:
        return
    if str(settings.get("oidc_secrets")):
        raise UsageError(
            "People sign in here, and their accounts say who they are", "Leave out --tenant and --role, or oidc_secrets"
        )
    os.environ["WORKBENCH_TENANT"] = principal.tenant or ""
    os.environ["WORKBENCH_ROLES"] = ",".join(principal.roles)


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
