"""Claims as a principal, the provider's file, and the server that `workbench app` starts."""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import hypothesis
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench import settings
from workbench.errors import SettingError, UsageError
from workbench.records import Principal
from workbench.ui import auth, launch, resources, runs
from workbench.ui.auth import claim, read_claims, roles_in
from workbench.ui.components import indexing
from workbench.ui.launch import SCRIPT

NOW = 1_800_000_000.0


AUTH = """
[auth]
redirect_uri = "http://127.0.0.1:8501/oauth2callback"
cookie_secret = "0123456789012345678901234567890123456789"
client_id = "workbench"
client_secret = "hush"
server_metadata_url = "https://login.example/.well-known/openid-configuration"
"""


def claims(**more: Any) -> dict[str, Any]:
    who = {"is_logged_in": True, "iss": "https://id.example", "sub": "ann", "iat": NOW - 60}
    return {**who, "tenant": "acme", "roles": ["support"], **more}


@pytest.fixture(autouse=True)
def named_claims(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORKBENCH_OIDC_TENANT_CLAIM", "tenant")


def test_claims_are_a_principal() -> None:
    """Tenant and roles come from the claims that the settings name, and from nothing else in the token."""
    assert read_claims(claims(principal="zeta", role="admin"), NOW) == Principal("acme", ("support",))
    nested = {"https://acme.test/roles": ["a"], "realm_access": {"roles": ["b"]}}
    assert claim(nested, "https://acme.test/roles") == ["a"]
    assert claim(nested, "realm_access.roles") == ["b"]
    assert claim(nested, "realm_access.roles.deeper") is None
    assert claim(nested, "nothing") is None


OLD = (None, "yesterday", True, NOW - 13 * 3600, NOW + 3600)
REFUSED = [
    *(({"tenant": tenant}, "says no tenant") for tenant in (None, "", "  ", 7, ["acme"], {"name": "acme"}, True)),
    *(({"iat": issued}, "Log in again") for issued in OLD),
    *(({claim: value}, "issuer and subject") for claim in ("iss", "sub") for value in (None, "", " ", 7)),
]


@pytest.mark.parametrize(("changes", "said"), REFUSED)
def test_claims_that_say_no_tenant_person_or_hour_close_the_door(changes: dict[str, Any], said: str) -> None:
    """A tenant is not made from what is no text; roles of another day do not count; names are not verified."""
    with pytest.raises(SettingError, match=said):
        read_claims(claims(**changes), NOW)


@pytest.mark.parametrize(
    ("value", "roles"),
    [
        (["b", "a", "a", " "], ("a", "b")), ("a, b c", ("a", "b", "c")), (None, ()), (7, ()), ({"a": 1}, ()),
        (["a", 7, None, ["b"]], ("a",)), ("", ()),
    ],
)  # fmt: skip
def test_roles_are_texts_of_a_list_or_of_one_text(value: Any, roles: tuple[str, ...]) -> None:
    """Anything else holds none: a role is never made from what is no text."""
    assert roles_in(value) == roles


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda x: st.lists(x) | st.dictionaries(st.text(max_size=5), x),
)


@pytest.mark.slow
@hypothesis.settings(max_examples=20, suppress_health_check=[hypothesis.HealthCheck.too_slow], deadline=None)
@given(st.dictionaries(st.sampled_from(["iat", "tenant", "roles", "iss", "sub"]), JSON))
def test_whatever_a_token_holds_is_read_or_refused(token: dict[str, Any]) -> None:
    with suppress(SettingError):
        assert read_claims(token, NOW).tenant == str(token["tenant"]).strip()


# --- the provider's file ------------------------------------------------------------------------------------------------
def write(folder: Path, text: str, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = folder / "sign-in.toml"
    path.write_text(text)
    monkeypatch.setenv("WORKBENCH_OIDC_SECRETS", str(path))
    return path


def test_the_server_reads_the_file_and_answers_to_its_own_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path, AUTH.replace("127.0.0.1:8501", "search.acme.test"), monkeypatch)
    options = launch.server_options(8501, "127.0.0.1", open_browser=False)
    assert options["secrets.files"] == [str(path)]
    assert options["server.allowedHosts"][-1] == "search.acme.test"
    assert "server.allowedHosts" not in launch.server_options(8501, "0.0.0.0", open_browser=False)


LACKING = ("redirect_uri", "cookie_secret", "client_id", "client_secret", "server_metadata_url")
FILES = {
    **{name: "\n".join(line for line in AUTH.splitlines() if not line.startswith(name)) for name in LACKING},
    **{text: text for text in ("", "auth = 3", "[other]\nx = 1", "not toml [")},
}


@pytest.mark.parametrize("lacking", FILES)
def test_a_file_that_lacks_something_starts_no_server(
    lacking: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server without a door would be open: it is not started, and the sentence names what is missing."""
    path = write(tmp_path, FILES[lacking], monkeypatch)
    with pytest.raises(SettingError) as raised:
        launch.server_options(8501, "127.0.0.1", open_browser=False)
    assert lacking in str(raised.value) or lacking not in LACKING
    path.unlink()
    with pytest.raises(SettingError, match="cannot be read"):
        launch.server_options(8501, "127.0.0.1", open_browser=False)


@pytest.fixture
def signed_in(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """A function that signs somebody in."""

    class User(dict[str, Any]):
        is_logged_in = True

        def to_dict(self) -> dict[str, Any]:
            return dict(self)

    def enter(**more: Any) -> None:
        user = User(claims(**{"iat": time.time(), "roles": ["indexer"], **more}))
        monkeypatch.setattr(auth.st, "user", user, raising=False)

    monkeypatch.setenv("WORKBENCH_APP_INDEXING_ROLE", "indexer")
    return enter


def test_a_person_is_subject_and_issuer(signed_in: Callable[..., None]) -> None:
    seen = set()
    for sub, iss in (("1", "https://a"), ("2", "https://a"), ("1", "https://b")):
        signed_in(sub=sub, iss=iss, email="boss@acme.example", name="Boss")
        assert auth.name() == "boss@acme.example"
        seen.add((resources.person(), resources.searches().owner))
    assert len(seen) == 3


def test_who_may_index_does_so_for_their_tenant_below_its_folders(
    signed_in: Callable[..., None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "acme").mkdir()
    (tmp_path / "birch").mkdir()
    (tmp_path / "acme" / "out").symlink_to(tmp_path / "birch")
    monkeypatch.setenv("WORKBENCH_APP_INDEXING_ROOTS", f"acme={tmp_path}/acme{os.pathsep}birch={tmp_path}/birch")
    corpus = tmp_path / "corpus"
    signed_in()
    below = auth.indexing_roots()
    assert below == (str(tmp_path / "acme"),)
    assert runs.check_paths(str(tmp_path / "acme"), corpus, below) == (str(tmp_path / "acme"),)
    said = set()
    for path in ("birch", "acme/out", "acme/../birch", "none", "acmeother"):
        with pytest.raises(UsageError) as raised:
            runs.check_paths(str(tmp_path / path), corpus, below)
        said.add(raised.value.message.replace(str(tmp_path / path), "X"))
    assert said == {"X is not below a folder that you may index"}
    signed_in(tenant="cedar")
    assert auth.indexing_roots() == ()
    run = runs.Status(runs.RUNNING, runs.Request(("/x",), tenant="acme"))
    assert indexing._own(run, Principal("acme", ("indexer",)))
    assert not indexing._own(run, Principal("birch", ("indexer",)))


def test_the_run_checks_its_paths_again(tmp_path: Path) -> None:
    """A link that was swapped in since they were typed leads nowhere."""
    (tmp_path / "run").mkdir()
    (tmp_path / "mine").symlink_to(tmp_path)
    asked = runs.Request((str(tmp_path / "mine"),), below=(str(tmp_path / "mine"),))
    runs.write(tmp_path / "run", runs.Status(runs.STARTING, asked))
    ended = runs.execute(tmp_path / "run", tmp_path / "corpus")
    assert (ended.state, ended.reason) == (runs.FAILED, "A path is not below a folder that may be indexed")
    assert not (tmp_path / "corpus").exists()


def test_the_server_is_local_and_reports_nothing() -> None:
    options = launch.server_options(8600, "127.0.0.1", open_browser=False)
    assert options["server.address"] == "127.0.0.1"
    assert options["browser.gatherUsageStats"] is False
    assert options["client.showErrorDetails"] == "none"
    assert options["client.showErrorLinks"] is False
    assert options["server.headless"] is True
    assert "evil.example" not in options["server.allowedHosts"]
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(UsageError, match=r"cannot listen on 127\.0\.0\.1") as caught:
            launch.check_port("127.0.0.1", taken.getsockname()[1])
    assert "--port" in caught.value.remedy


@pytest.mark.parametrize(
    ("host", "local"), [("127.0.0.1", True), ("::1", True), ("localhost", True), ("0.0.0.0", False), ("nas", False)]
)
def test_a_local_address_is_known(host: str, local: bool) -> None:
    """Only a local server refuses other host names: a shared one must answer to its own."""
    assert launch.is_local(host) is local
    assert ("server.allowedHosts" in launch.server_options(1, host, False)) is local


@pytest.mark.slow
def test_the_script_runs_by_itself() -> None:
    done = subprocess.run([sys.executable, str(SCRIPT)], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr[-2000:]


def test_the_app_looks_as_whom_it_was_started_for(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("WORKBENCH_TENANT", "WORKBENCH_ROLES"):
        monkeypatch.setenv(name, "")
    launch.look_as(None)
    assert settings.get("tenant") == ""
    launch.look_as(Principal("acme", ("support", "admin")))
    assert (settings.get("tenant"), settings.get("roles")) == ("acme", "admin,support")
    monkeypatch.setenv("WORKBENCH_OIDC_SECRETS", "/somewhere")
    with pytest.raises(UsageError, match="sign in"):
        launch.look_as(Principal("acme"))
