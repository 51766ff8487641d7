from __future__ import annotations

import pytest

from broker_engine.names import ROOT
from broker_engine.security.accounts import Account, Accounts
from broker_engine.security.plain import PlainMessage
from broker_engine.security.principal import Principal, anonymous, on_behalf_of
from broker_engine.security.scram import make_verifier

SECRET = "cluster-secret-cluster-secret-cl"
KEYS = {"key-1": Account("demo", "key-1", make_verifier("pw", b"s" * 16))}
ACCOUNTS = Accounts(SECRET, KEYS.get, {"demo"}.__contains__)


def sign_in(
    username: str, password: str, authorization_id: str | None = None, *, internal: bool = False, tenant: str = ROOT
) -> Principal | None:
    claim = PlainMessage(authorization_id, username, password)
    return ACCOUNTS.password_job(claim, is_internal_listener=internal, listener_tenant=tenant).run()


def test_an_api_key_signs_in_as_its_tenants_principal() -> None:
    assert sign_in("key-1", "pw") == Principal("demo", "key-1")
    assert sign_in("key-1", "pw", tenant="demo") == Principal("demo", "key-1")


@pytest.mark.parametrize(
    ("username", "password", "authorization_id", "tenant"),
    [
        ("key-1", "wrong", None, ROOT),
        ("key-2", "pw", None, ROOT),
        ("key-1", "pw", "demo:key-1", ROOT),
        ("key-1", "pw", "root", ROOT),
        ("key-1", "pw", None, "other"),
        ("gateway", SECRET, None, ROOT),
        ("control-plane", SECRET, None, ROOT),
        ("gateway", SECRET, "demo:key-1", ROOT),
    ],
)
def test_client_listeners_refuse(username: str, password: str, authorization_id: str | None, tenant: str) -> None:
    assert sign_in(username, password, authorization_id, tenant=tenant) is None


@pytest.mark.parametrize(
    ("username", "password", "authorization_id"),
    [
        ("key-1", "pw", None),
        ("gateway", "wrong", None),
        ("gateway", SECRET, "demo"),
        ("gateway", SECRET, "demo:"),
        ("gateway", SECRET, ":key-1"),
        ("gateway", SECRET, "absent:key-1"),
        ("gateway", SECRET, "Demo:key-1"),
        ("control-plane", SECRET, "demo:key-1"),
    ],
)
def test_internal_listeners_refuse(username: str, password: str, authorization_id: str | None) -> None:
    assert sign_in(username, password, authorization_id, internal=True) is None


def test_the_control_plane_is_root_with_the_private_apis() -> None:
    principal = sign_in("control-plane", SECRET, internal=True)
    assert principal is not None
    assert principal.is_root
    assert principal.may_use_private_apis


def test_the_gateway_alone_has_no_rights() -> None:
    principal = sign_in("gateway", SECRET, internal=True)
    assert principal is not None
    assert principal.is_bare_gateway
    assert not principal.is_root
    assert not principal.may_use_private_apis


def test_the_gateway_acts_for_its_caller_and_only_with_the_callers_rights() -> None:
    principal = sign_in("gateway", SECRET, "demo:user-7", internal=True)
    assert principal == Principal("demo", "user-7", on_behalf_by="gateway")
    assert not principal.is_root
    assert not principal.may_use_private_apis


def test_a_caller_who_calls_itself_control_plane_gets_nothing_by_it() -> None:
    principal = on_behalf_of("demo:control-plane")
    assert principal is not None
    assert not principal.may_use_private_apis


def test_an_unknown_user_costs_the_same_work() -> None:
    known = ACCOUNTS.password_job(PlainMessage(None, "key-1", "x"), is_internal_listener=False)
    unknown = ACCOUNTS.password_job(PlainMessage(None, "nobody", "x"), is_internal_listener=False)
    assert unknown.verifier.iterations == known.verifier.iterations
    assert unknown.verifier.mechanism == known.verifier.mechanism
    again = ACCOUNTS.password_job(PlainMessage(None, "nobody", "y"), is_internal_listener=False)
    assert again.verifier.salt == unknown.verifier.salt


def test_an_anonymous_root_client_has_the_admin_apis_but_not_the_private_ones() -> None:
    principal = anonymous(ROOT)
    assert principal.is_root
    assert not principal.may_use_private_apis
    assert principal.text == "User:ANONYMOUS"
