"""The Snapshots page, and the addresses beside the app."""

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import streamlit as st
from app_for_tests import all_text, bodies, go, run
from corpus_files import write_files
from starlette.requests import Request
from streamlit.testing.v1 import AppTest

import workbench as wb
from workbench.errors import SnapshotError
from workbench.snapshot.page import policy
from workbench.snapshot.snapshot import Library
from workbench.store.access.redaction import load_policy
from workbench.ui import jobs, routes
from workbench.ui.components.snapshot_view import texts_html
from workbench.ui.routes import allowed, kept, today

PAGE = "snapshots"
K = "wb.w.snapshots."


def open_page(open_app: Callable[..., AppTest], corpus: Path, **params: str) -> AppTest:
    at = open_app(corpus, **params)
    return run(go(at, PAGE))


@pytest.mark.slow
def test_the_search_is_saved_listed_verified_and_removed(open_app: Callable[..., AppTest], own_corpus: Path) -> None:
    at = open_page(open_app, own_corpus, q="retry", columns="keyword,hybrid", plan="rrf fusion.k=7")
    at.text_input(key=K + "note").set_value("kept <b>for</b> later")
    at.button(key=K + "save").click()
    run(at)
    (path,) = (own_corpus / "snapshots").iterdir()
    made = wb.Snapshot.load(path)
    assert [s.mode for s in made.searches] == ["keyword", "hybrid"]
    assert made.searches[1].plan == "rrf fusion.k=7"
    assert made.title == "kept <b>for</b> later"
    text = "".join(bodies(at))
    assert f'href="/s/{made.id}"' in text
    assert re.search(f'data-wb-copy="[^"]*/s/{made.id}"', text)
    assert at.radio(key=f"{K}one.{made.id}").value == made.id
    assert ['aria-label="Keyword results"' in text, 'aria-label="Hybrid results"' in text] == [True, True]
    assert 'data-wb-do="grade"' not in text
    at.button(key=K + "verify").click()
    run(at)
    assert "Verified: every digest holds" in all_text(at)
    at.button(key=K + "remove.sure").click()
    run(at)
    assert not list((own_corpus / "snapshots").iterdir())
    assert f"Removed {made.id}" in all_text(at)


@pytest.mark.slow
def test_a_model_that_a_snapshot_names_is_loaded_when_the_button_says_so(
    open_app: Callable[..., AppTest], own_corpus: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with wb.open_corpus(own_corpus) as opened:
        Library(own_corpus).keep(opened.search("retry", plan="rerank.model=/no/such/model").snapshot())
    at = open_page(open_app, own_corpus)
    assert "/no/such/model, which only verifying loads" in all_text(at)
    assert at.button(key=K + "verify").label == "Verify"
    at.button(key=K + "verify").click()
    run(at)
    assert "its plan loads /no/such/model" in all_text(at)
    monkeypatch.setenv("WORKBENCH_ALLOWED_MODELS", "/no/such/model")
    run(at)
    assert at.button(key=K + "verify").label == "Load its models and verify"
    at.button(key=K + "verify").click()
    run(at)
    assert "Verified: every digest holds" in all_text(at)


@pytest.mark.slow
def test_two_kept_snapshots_are_compared(open_app: Callable[..., AppTest], own_corpus: Path) -> None:
    with wb.open_corpus(own_corpus) as opened:
        first = opened.search("retry pause", plan="rrf").snapshot("one")
        second = opened.search("retry pause", plan="rrf fusion.k=5").snapshot("two")
    for made in (first, second):
        Library(own_corpus).keep(made)
    at = open_page(open_app, own_corpus)
    at.multiselect(key=K + "compare").set_value([first.id, second.id])
    run(at)
    assert "fusion.k: A 60, B 5." in all_text(at)
    assert "hybrid: “retry pause” in B: " in all_text(at)
    assert len(at.get("plotly_chart")) == 3


def test_snapshots_of_one_title_are_options_apart(open_app: Callable[..., AppTest], own_corpus: Path) -> None:
    """Streamlit knows an option by its label, and marks another of the same as the chosen one."""
    with wb.open_corpus(own_corpus) as opened:
        for plan in ("default", "rrf"):
            Library(own_corpus).keep(opened.search("kettle", plan=plan).snapshot("tea"))
    at = open_page(open_app, own_corpus)
    assert at.radio[0].options == ["tea", "tea (2)"]


def test_texts_that_changed_are_shown_word_by_word(tmp_path: Path) -> None:
    made = []
    for text in ("kettle <b>boils</b> water", "kettle cools water"):
        write_files(tmp_path / "files", {"tea.md": f"# Tea\n\n{text}\n"})
        wb.index([tmp_path / "files"], corpus=tmp_path / "corpus", encoder="hashing", workers=0)
        with wb.open_corpus(tmp_path / "corpus") as opened:
            made.append(opened.search("kettle").snapshot())
    shown = texts_html(made[0].diff(made[1]), 0)
    assert "<del>&lt;b&gt;boils&lt;/b&gt;</del>" in shown
    assert "<ins>cools</ins>" in shown
    assert texts_html(made[0].diff(made[0]), 0) == ""


# --- addresses -----------------------------------------------------------------------------------------------------------


def ask(id: str, host: str = "127.0.0.1:8501", cookie: str = "") -> Any:
    """The answer of the route to one request."""
    headers = [(b"host", host.encode()), *([(b"cookie", cookie.encode())] if cookie else [])]
    scope = {"type": "http", "method": "GET", "path": f"/s/{id}", "headers": headers, "path_params": {"id": id}}
    return routes.serve(Request(scope))


def test_how_far_work_is_has_an_address_that_only_its_page_knows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(st, "session_state", {})
    drawn: list[str] = []
    monkeypatch.setattr(st, "html", lambda text, **_: drawn.append(text))
    jobs.follow("sweep", lambda: jobs.Report("plan <2> of 4", 0.5, True))
    (token,) = re.findall(r'data-wb-progress="([^"]+)"', drawn[0])
    assert "plan &lt;2&gt; of 4" in drawn[0]

    def asked(token: str, host: str = "localhost:8501") -> Any:
        headers = [(b"host", host.encode())]
        scope = {"type": "http", "method": "GET", "path": f"/p/{token}", "headers": headers}
        return routes.progress(Request({**scope, "path_params": {"token": token}}))

    assert json.loads(asked(token).body) == {"words": "plan <2> of 4", "share": 0.5, "running": True}
    assert asked("sweep").status_code == 404
    monkeypatch.setattr(routes, "host_allowed", lambda host: False)
    assert asked(token).status_code == 403


@pytest.fixture
def shelf(sample_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> wb.Snapshot:
    """A snapshot of acme's on the shelf of a corpus that the app is opened on."""
    monkeypatch.setenv("WORKBENCH_CORPUS", str(tmp_path))
    who = wb.Principal("acme", ("admin", "support"))
    shutil.copytree(sample_path, tmp_path, dirs_exist_ok=True)
    with wb.open_corpus(tmp_path, who) as corpus:
        made = corpus.search("runbook retry", plan="default vector.threshold=off limit=30").snapshot("of acme")
    Library(tmp_path).keep(made)
    return made


def test_a_kept_snapshot_has_an_address_with_its_own_policy(
    shelf: wb.Snapshot, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WORKBENCH_TENANT", "acme")
    monkeypatch.setenv("WORKBENCH_ROLES", "admin,support")
    answer = ask(shelf.id)
    assert answer.status_code == 200
    assert answer.headers["content-security-policy"] == policy()
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert "no-store" in answer.headers["cache-control"]
    assert answer.body == shelf.parts["index.html"]
    from streamlit import config

    config.set_option("server.allowedHosts", ["localhost", "127.0.0.1", "[::1]"])
    try:
        assert ask(shelf.id, "evil.example").status_code == 403
        assert ask(shelf.id, "evil.example:8501").status_code == 403
        assert ask(shelf.id, "[::1]:8501").status_code == 200
    finally:
        config.set_option("server.allowedHosts", [])


def test_who_sees_less_or_nothing_gets_less_or_nothing(
    shelf: wb.Snapshot, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert any(h.path.startswith("runbooks/") for h in shelf.hits())
    monkeypatch.setenv("WORKBENCH_TENANT", "acme")
    text = ask(shelf.id).body.decode()
    assert "runbooks/" not in text
    assert "may not see were left out" in text
    monkeypatch.setenv("WORKBENCH_TENANT", "birch")
    theirs, none = ask(shelf.id), ask("0" * 16)
    assert (theirs.status_code, theirs.body) == (none.status_code, none.body) == (404, none.body)
    monkeypatch.delenv("WORKBENCH_TENANT")
    assert ask(shelf.id).body == none.body
    assert len(kept(wb.open_corpus(tmp_path, wb.Principal("acme")))) == 1
    assert kept(wb.open_corpus(tmp_path, wb.Principal("birch", ("admin",)))) == []
    with pytest.raises(SnapshotError):
        allowed(shelf, wb.Principal("birch", ("admin",)), None)


@pytest.mark.slow
def test_a_snapshot_shows_others_what_they_may_see_today(
    make_corpus: Callable[..., wb.Corpus], monkeypatch: pytest.MonkeyPatch
) -> None:
    made_of = make_corpus(
        {"wages.md": "# Wages\n\nAnn earns zebrafish.\n", "open.md": "# Open\n\nzebrafish\n"}, tenant="acme"
    )
    boss, staff = wb.Principal("acme", ("boss",)), wb.Principal("acme", ("staff",))
    with wb.open_corpus(made_of.path, boss) as corpus:
        made = corpus.search("zebrafish", mode="keyword").snapshot("audit")
    Library(made_of.path).keep(made)

    def seen(who: wb.Principal) -> set[str]:
        with wb.open_corpus(made_of.path, who) as corpus:
            (listed,) = kept(corpus)
            page = routes.page_of(corpus, made.id)
            paths = {h.path for h in listed.snapshot.hits()}
            assert all((path in page) == (path in paths) for path in ("wages.md", "open.md"))
            return paths

    assert seen(boss) == seen(staff) == {"wages.md", "open.md"}
    (made_of.path / "corpus.yaml").write_text("rules:\n- path: wages.md\n  roles: [admin]\n")
    assert seen(boss) == seen(staff) == {"open.md"}
    assert {h.path for h in allowed(made, staff, None).hits()} == set()
    (made_of.path / "corpus.yaml").unlink()
    wb.remove(["wages.md"], corpus=made_of.path)
    assert seen(staff) == {"open.md"}
    assert seen(boss) == {"wages.md", "open.md"}


@pytest.mark.parametrize("id", ["../../etc/passwd", "", "x" * 16, "%00", "0" * 15])
def test_an_address_of_another_form_is_nothing(shelf: wb.Snapshot, id: str) -> None:
    assert ask(id).status_code == 404


def test_where_people_sign_in_nobody_else_is_served(
    shelf: wb.Snapshot, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    import json
    import time

    from streamlit.web.server.starlette import starlette_app_utils as utils

    monkeypatch.setenv("WORKBENCH_OIDC_SECRETS", str(tmp_path / "secrets.toml"))
    monkeypatch.setenv("WORKBENCH_OIDC_TENANT_CLAIM", "tenant")
    monkeypatch.setenv("WORKBENCH_TENANT", "acme")
    monkeypatch.setenv("WORKBENCH_ROLES", "admin,support")
    monkeypatch.setattr("streamlit.web.server.server_util.get_cookie_secret", lambda: "s" * 32)
    assert ask(shelf.id).status_code == 403
    claims = {"is_logged_in": True, "tenant": "acme", "roles": ["admin", "support"], "iat": time.time()}
    claims |= {"iss": "https://id.example", "sub": "1"}

    def cookie(values: dict[str, Any], key: str) -> str:
        signed = utils.create_signed_value(key, "_streamlit_user", json.dumps(values))
        return f"_streamlit_user={signed.decode('latin-1')}"

    assert ask(shelf.id, cookie=cookie(claims, "s" * 32)).status_code == 200
    assert ask(shelf.id, cookie=cookie(claims, "x" * 32)).status_code == 403
    assert ask(shelf.id, cookie=cookie({**claims, "tenant": "birch"}, "s" * 32)).status_code == 404
    assert ask(shelf.id, cookie=cookie({**claims, "is_logged_in": False}, "s" * 32)).status_code == 403
    assert ask(shelf.id, cookie=cookie({**claims, "iat": 0}, "s" * 32)).status_code == 403
    assert ask(shelf.id, cookie=cookie({**claims, "iss": ""}, "s" * 32)).status_code == 403


def test_masks_hold_in_a_snapshot_of_somebody_who_sees_more(
    sample_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WORKBENCH_CORPUS", str(tmp_path))
    shutil.copytree(sample_path, tmp_path, dirs_exist_ok=True)
    (tmp_path / "corpus.yaml").write_text("policy:\n  mask: ['(?i)backoff']\n  cleared: [admin]\n")
    policy = load_policy(tmp_path)
    with wb.open_corpus(sample_path, wb.Principal("acme", ("admin",)), policy=policy) as corpus:
        made = corpus.search("retries backoff", plan="default vector.threshold=off").snapshot("as admin")
    assert any("backoff" in h.text for h in made.hits())
    Library(tmp_path).keep(made)
    monkeypatch.setenv("WORKBENCH_TENANT", "acme")
    assert "replaced by citations" in ask(made.id).body.decode()
    with wb.open_corpus(tmp_path, wb.Principal("acme")) as corpus:
        shown = allowed(made, corpus.principal, policy, today(corpus)).hits()
    assert shown
    assert all(h.text == "" for h in shown)
    monkeypatch.setenv("WORKBENCH_ROLES", "admin")
    assert "replaced by citations" not in ask(made.id).body.decode()
    (tmp_path / "corpus.yaml").write_text("policy:\n  mask: ['(?i)backoff']\n  cleared: [nobody]\n")
    assert "replaced by citations" in ask(made.id).body.decode()
