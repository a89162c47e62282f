"""The server that `workbench app` starts: this machine only, and nothing reported."""

from __future__ import annotations

import socket
import subprocess
import sys

import pytest

from workbench import settings
from workbench.errors import UsageError
from workbench.records import Principal
from workbench.ui import app as house
from workbench.ui import launch
from workbench.ui.launch import SCRIPT


def test_the_server_is_local_and_reports_nothing() -> None:
    """These options win over any `.streamlit` folder of the current folder."""
    options = launch.server_options(8600, "127.0.0.1", open_browser=False)
    assert options["server.address"] == "127.0.0.1"
    assert options["browser.gatherUsageStats"] is False
    assert options["client.showErrorDetails"] == "none"
    assert options["client.showErrorLinks"] is False
    assert options["server.headless"] is True
    assert "evil.example" not in options["server.allowedHosts"]


@pytest.mark.parametrize(
    ("host", "local"), [("127.0.0.1", True), ("::1", True), ("localhost", True), ("0.0.0.0", False), ("nas", False)]
)
def test_a_local_address_is_known(host: str, local: bool) -> None:
    """Only a local server refuses other host names: a shared one must answer to its own."""
    assert launch.is_local(host) is local
    assert ("server.allowedHosts" in launch.server_options(1, host, False)) is local


def test_every_option_is_one_that_streamlit_knows() -> None:
    """A misspelt option would be refused only when the app starts."""
    from streamlit import config

    known = config._config_options_template
    assert set(launch.server_options(8600, "127.0.0.1", False)) <= set(known)


def test_a_taken_port_is_a_sentence() -> None:
    """The error says what to do."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(UsageError, match=r"cannot listen on 127\.0\.0\.1") as caught:
            launch.check_port("127.0.0.1", taken.getsockname()[1])
    assert "--port" in caught.value.remedy


def test_an_impossible_port_is_a_sentence() -> None:
    """From 1 to 65535."""
    with pytest.raises(UsageError, match="The port is 0"):
        launch.check_port("127.0.0.1", 0)


def test_every_page_of_the_app_is_named() -> None:
    """The names are those of the router."""
    assert all((SCRIPT.parent / "views" / f"{path or 'search'}.py").is_file() for path in house.PAGES)


@pytest.mark.slow
def test_the_script_runs_by_itself() -> None:
    """A process that takes the script for its main module, as spawned ones do after a page ran, gets through it."""
    done = subprocess.run([sys.executable, str(SCRIPT)], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr[-2000:]


def test_the_app_looks_as_whom_it_was_started_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """`--tenant` and `--role` are the settings of this process; where people sign in they are refused."""
    for name in ("WORKBENCH_TENANT", "WORKBENCH_ROLES"):
        monkeypatch.setenv(name, "")
    launch.look_as(None)
    assert settings.get("tenant") == ""
    launch.look_as(Principal("acme", ("support", "admin")))
    assert (settings.get("tenant"), settings.get("roles")) == ("acme", "admin,support")
    monkeypatch.setenv("WORKBENCH_OIDC_SECRETS", "/somewhere")
    with pytest.raises(UsageError, match="sign in"):
        launch.look_as(Principal("acme"))
