"""Signing in with an API key, and every way of not doing so."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from broker_engine.security.plain import encode_plain
from broker_engine.wire.messages.api_versions import ApiVersionsRequest
from broker_engine.wire.messages.metadata import MetadataRequest
from broker_engine.wire.messages.sasl_authenticate import SaslAuthenticateRequest
from broker_engine.wire.messages.sasl_handshake import SaslHandshakeRequest
from tests.broker_engine.broker_process import BrokerProcess
from tests.broker_engine.handlers.calls import create, describe
from tests.broker_engine.handlers.conftest import Key
from tests.broker_engine.raw_client import RawClient


@pytest.fixture
def client(broker: BrokerProcess, keys: dict[str, Key]) -> Iterator[RawClient]:
    with RawClient(broker.address("clients")) as raw_client:
        yield raw_client


def test_a_key_acts_for_its_tenant(client: RawClient, keys: dict[str, Key], acme: RawClient, globex: RawClient) -> None:
    assert client.call(ApiVersionsRequest(client_software_name="a", client_software_version="1"), 3).error_code == 0
    reply = client.sign_in(keys["acme"].username, keys["acme"].secret)
    assert (reply.error_code, reply.error_message, reply.session_lifetime_ms) == (0, "", 0)
    assert describe(client, create(acme)).error_code == 0
    assert describe(client, create(globex)).error_code == 3


@pytest.mark.parametrize("secret", ["wrong", "", "x" * 2000])
def test_a_wrong_secret_is_refused_late_and_closed(client: RawClient, keys: dict[str, Key], secret: str) -> None:
    started = time.monotonic()
    reply = client.sign_in(keys["acme"].username, secret)
    assert reply.error_code == 58
    assert "Invalid username or password" in reply.error_message
    assert client.is_closed_by_peer()
    assert time.monotonic() - started >= 0.1


def test_an_unknown_user_gets_the_same_words(client: RawClient, broker: BrokerProcess, keys: dict[str, Key]) -> None:
    unknown = client.sign_in("nobody", keys["acme"].secret)
    with RawClient(broker.address("clients")) as other:
        wrong = other.sign_in(keys["acme"].username, "wrong")
    assert (unknown.error_code, unknown.error_message) == (wrong.error_code, wrong.error_message)


def test_internal_users_are_nobody_on_a_client_listener(client: RawClient, broker: BrokerProcess) -> None:
    assert client.sign_in("control-plane", broker.cluster_secret).error_code == 58


def test_an_unknown_mechanism_is_told_the_known_ones(client: RawClient) -> None:
    reply = client.call(SaslHandshakeRequest(mechanism="GSSAPI"), 1)
    assert (reply.error_code, list(reply.mechanisms)) == (33, ["PLAIN"])
    assert client.is_closed_by_peer()


def test_nothing_else_comes_before_the_handshake(client: RawClient) -> None:
    client.send_request(MetadataRequest(topics=None), 12)
    assert client.is_closed_by_peer()


def test_a_second_api_versions_before_the_handshake_is_closed(client: RawClient) -> None:
    assert client.call(ApiVersionsRequest(), 0).error_code == 0
    client.send_request(ApiVersionsRequest(), 0)
    assert client.is_closed_by_peer()


def test_a_request_between_handshake_and_token_is_told_so(client: RawClient) -> None:
    client.call(SaslHandshakeRequest(mechanism="PLAIN"), 1)
    response = client.call(ApiVersionsRequest(), 0)
    assert response.error_code == 34
    assert client.is_closed_by_peer()


def test_version_0_of_the_handshake_means_bare_tokens(client: RawClient, keys: dict[str, Key]) -> None:
    client.call(SaslHandshakeRequest(mechanism="PLAIN"), 0)
    client.send_frame(encode_plain(keys["acme"].username, keys["acme"].secret))
    assert client.receive_frame() == b""
    assert client.call(MetadataRequest(topics=[]), 12).cluster_id == "lkc-acme-1"


def test_both_requests_are_out_of_place_without_authentication(root: RawClient) -> None:
    assert root.call(SaslHandshakeRequest(mechanism="PLAIN"), 1).error_code == 34
    assert root.call(SaslAuthenticateRequest(auth_bytes=b"\0u\0p"), 2).error_code == 34
    assert root.call(MetadataRequest(topics=[]), 12).topics == []
