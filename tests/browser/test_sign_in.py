"""Signing in with a provider: claims are who somebody is, and nothing in the page or its address changes that."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from visiting import expect, prepared, settled

pytestmark = [pytest.mark.browser, pytest.mark.slow]

ACCOUNTS: dict[str, dict[str, Any]] = {
    "ann": {"tenant": "acme", "realm_access": {"roles": ["support"]}, "email": "ann@acme.test"},
    "bob": {"tenant": "acme", "realm_access": {"roles": []}, "email": "bob@acme.test"},
    "zoe": {"tenant": "zeta", "realm_access": {"roles": ["support", "librarian"]}, "email": "zoe@zeta.test"},
    "nobody": {"email": "nobody@nowhere.test"},
    "old": {"tenant": "acme", "realm_access": {"roles": ["support"]}, "iat": 1_600_000_000},
}
FORGED = {
    "principal": "zeta", "tenant": "zeta", "roles": "support", "as": "support", "user": "zoe", "account": "zoe",
    "plan": "default principal=optional", "filters": "tenant = 'zeta'",
}  # fmt: skip


@dataclass(frozen=True)
class Place:
    """The app's address, and the provider."""

    url: str
    provider: Any


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A corpus of two tenants; one of acme's documents is for support only."""
    import workbench as wb

    folder = tmp_path_factory.mktemp("shared")
    for tenant, roles, name in (("acme", (), "open"), ("acme", ("support",), "guarded"), ("zeta", (), "secret")):
        source = folder / f"{tenant}-{name}"
        source.mkdir()
        (source / f"{tenant}-{name}.md").write_text(f"# {name} of {tenant}\n\nA pelican of {tenant}, {name}.\n")
        wb.index([source], corpus=folder / "corpus", encoder="hashing", workers=0, tenant=tenant, roles=roles)
    return folder / "corpus"


@pytest.fixture(scope="module")
def place(shared: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """The app with a provider to sign in with."""
    pytest.importorskip("authlib", reason="needs authlib: pip install 'hybrid-retrieval-workbench[auth]'")
    from provider import CLIENT, Provider
    from serving import free_port, serving

    provider, port, elsewhere = Provider(ACCOUNTS), free_port(), tmp_path_factory.mktemp("elsewhere")
    secrets = elsewhere / "sign-in.toml"
    secrets.write_text(
        f'[auth]\nredirect_uri = "http://127.0.0.1:{port}/oauth2callback"\ncookie_secret = "{"x" * 40}"\n'
        f'client_id = "{CLIENT}"\nclient_secret = "hush"\n'
        f'server_metadata_url = "{provider.url}/.well-known/openid-configuration"\n'
    )
    variables = {
        "WORKBENCH_OIDC_SECRETS": str(secrets),
        "WORKBENCH_OIDC_TENANT_CLAIM": "tenant",
        "WORKBENCH_OIDC_ROLES_CLAIM": "realm_access.roles",
        "WORKBENCH_APP_INDEXING_ROLE": "librarian",
        # Who the app's owner is must not count for anybody who signs in.
        "WORKBENCH_TENANT": "zeta",
        "WORKBENCH_ROLES": "support",
    }
    with serving(shared, elsewhere, variables, port) as url:
        yield Place(url, provider)
    provider.close()


def everything(page: Any) -> str:
    """Every word that the page holds, shown or not."""
    settled(page)
    return str(page.locator("body").text_content())


def sign_in(page: Any, place: Place, account: str) -> None:
    page.goto(place.url)
    page.get_by_role("button", name="Log in").click()
    expect(page.get_by_role("heading", name="Who are you?")).to_be_visible()
    page.get_by_role("link", name=account, exact=True).click()
    page.wait_for_url(f"{place.url}/**")


def found(page: Any, place: Place, **params: str) -> str:
    """What a search for the bird shows, in every column."""
    page.goto(f"{place.url}/?{urlencode({'q': 'pelican', **params})}")
    expect(page.get_by_role("region", name="Hybrid results")).to_be_visible()
    return everything(page)


def test_who_has_not_signed_in_sees_a_button_and_nothing_else(page: Any, place: Place) -> None:
    params = urlencode({"q": "pelican", "path": "acme-open.md", "id": "x", "target": "acme-open.md", **FORGED})
    for path in ("", "explain", "document", "corpus", "forged cookie"):
        if path == "forged cookie":
            claims = '{"is_logged_in":true,"tenant":"acme","realm_access":{"roles":["support"]},"iat":9999999999}'
            page.context.add_cookies([{"name": "_streamlit_user", "value": claims, "url": place.url}])
            path = ""
        page.goto(f"{place.url}/{path}?{params}")
        expect(page.get_by_role("button", name="Log in")).to_be_visible()
        said = everything(page)
        assert "pelican" not in said
        assert "acme" not in said
        for name in ("Search", "Explain", "Document", "Corpus", "Judge", "Guide"):
            assert page.get_by_role("link", name=name, exact=True).count() == 0
        menu = page.locator("[data-testid=stMainMenu] button, [data-testid=stMainMenuButton]")  # light or dark
        assert page.get_by_role("button").count() - menu.count() == 1, page.get_by_role("button").all_inner_texts()


def test_claims_say_what_somebody_sees(page: Any, place: Place, browser: Any) -> None:
    sees = {
        "ann": ({"acme-open.md", "acme-guarded.md"}, {"zeta-secret.md"}),
        "bob": ({"acme-open.md"}, {"acme-guarded.md", "zeta-secret.md"}),
        "zoe": ({"zeta-secret.md"}, {"acme-open.md", "acme-guarded.md"}),
    }
    for account, (shown, hidden) in sees.items():
        context = browser.new_context()
        own = prepared(context)
        sign_in(own, place, account)
        said = found(own, place)
        assert all(name in said for name in shown)
        assert not any(name in said for name in hidden)
        assert f"{account}@" in said
        for name in hidden:
            own.goto(f"{place.url}/document?{urlencode({'path': name})}")
            expect(own.get_by_role("alert")).to_be_visible()
            assert "pelican" not in everything(own)
        context.close()


def test_a_forged_address_changes_nothing(page: Any, place: Place) -> None:
    sign_in(page, place, "bob")
    plain = found(page, place, plan="default", filters="tenant = 'acme'")
    assert "acme-open.md" in plain
    assert "zeta" not in found(page, place, **{n: v for n, v in FORGED.items() if n != "filters"}).replace(
        "tenant = 'zeta'", ""
    )
    page.goto(f"{place.url}/?{urlencode({'q': 'pelican', **FORGED})}")
    settled(page)
    assert page.locator("article").count() == 0
    for name, value in (("as", "support"), ("roles", "support"), ("principal", "acme")):
        assert "acme-guarded.md" not in found(page, place, **{name: value})


def test_a_missing_tenant_and_an_old_token_close_the_door(browser: Any, place: Place) -> None:
    for account, words in (("nobody", "says no tenant"), ("old", "hours ago")):
        context = browser.new_context()
        page = prepared(context)
        sign_in(page, place, account)
        expect(page.get_by_role("alert")).to_contain_text(words)
        page.goto(f"{place.url}/?q=pelican")
        expect(page.get_by_role("alert")).to_contain_text(words)
        assert "acme" not in everything(page)
        context.close()


def test_a_token_with_another_key_is_no_token(page: Any, place: Place) -> None:
    """Signed by somebody else, its claims are worth nothing."""
    from joserfc.jwk import RSAKey

    provider = place.provider
    provider.signing = RSAKey.generate_key(2048, {"kid": "tests"})
    try:
        page.goto(place.url)
        page.get_by_role("button", name="Log in").click()
        page.get_by_role("link", name="ann", exact=True).click()
        page.goto(f"{place.url}/?q=pelican")
        expect(page.get_by_role("button", name="Log in")).to_be_visible()
        assert "pelican" not in everything(page)
    finally:
        provider.signing = provider.key


def test_logging_out_ends_it(page: Any, place: Place) -> None:
    """The button is there again once the cookie is gone, and the search is not: whoever leaves at that moment is out."""
    sign_in(page, place, "ann")
    found(page, place)
    page.get_by_role("button", name="Log out").click()
    expect(page.get_by_role("button", name="Log in")).to_be_visible()
    assert not [c for c in page.context.cookies() if c["name"].startswith("_streamlit_user") and c["value"]]
    page.goto(f"{place.url}/?q=pelican")
    expect(page.get_by_role("button", name="Log in")).to_be_visible()
    assert "acme" not in everything(page)


def test_who_is_not_logged_out_yet_is_not_told_so(page: Any, place: Place) -> None:
    """Where the browser never arrives where the cookie is taken away, the page offers no way in and shows no result."""
    sign_in(page, place, "ann")
    found(page, place)
    page.route("**/auth/logout", lambda route: route.fulfill(status=204))
    page.get_by_role("button", name="Log out").click()
    expect(page.get_by_text("Logging out.")).to_be_visible()
    assert page.get_by_role("button", name="Log in").count() == 0
    assert "acme-open" not in everything(page)
