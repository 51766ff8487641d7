"""What the listener configs mean, and which doors stay shut."""

from __future__ import annotations

import pytest

from broker_engine.config import BrokerConfig, ConfigError, SecurityProtocol
from broker_engine.server.listeners import ListenerSpec, make_specs


def specs(listeners: str, **settings: str) -> dict[str, ListenerSpec]:
    values = {"listeners": listeners, **{name.replace("__", "."): value for name, value in settings.items()}}
    return {spec.name: spec for spec in make_specs(BrokerConfig.load({}, values))}


def test_a_bare_listener_is_root_on_loopback_without_authentication() -> None:
    spec = specs("127.0.0.1:9")["default"]
    assert (spec.tenant, spec.protocol, spec.is_internal) == ("", SecurityProtocol.PLAINTEXT, False)


def test_a_listener_may_be_bound_to_a_tenant() -> None:
    assert specs("demo=127.0.0.1:9", listener__name__demo__tenant="demo")["demo"].tenant == "demo"


def test_the_internal_listener_always_authenticates() -> None:
    spec = specs("internal=127.0.0.1:9")["internal"]
    assert spec.is_internal
    assert spec.protocol.has_sasl


def test_the_own_entry_of_the_quorum_is_the_controller_listener() -> None:
    settings = {"listeners": "127.0.0.1:9", "node.id": "2", "controller.quorum.voters": "2@127.0.0.1:8"}
    controller = make_specs(BrokerConfig.load({}, settings))[-1]
    assert controller.is_controller
    assert controller.protocol.has_sasl
    assert controller.endpoint.port == 8


def test_a_node_that_only_votes_has_no_door_for_clients() -> None:
    settings = {"node.id": "2", "controller.quorum.voters": "2@127.0.0.1:8", "process.roles": "controller"}
    only = make_specs(BrokerConfig.load({}, {"listeners": "127.0.0.1:9", **settings}))
    assert [spec.is_controller for spec in only] == [True]


@pytest.mark.parametrize(
    ("listeners", "settings", "message"),
    [
        ("0.0.0.0:9", {}, "would let anybody in"),
        (":9", {}, "would let anybody in"),
        ("a=10.0.0.1:9", {"listener.security.protocol.map": "a:SASL_PLAINTEXT"}, "in the clear"),
        ("a=127.0.0.1:9", {"listener.security.protocol.map": "a:SASL_SSL"}, "ssl.certificate.file"),
        ("a=127.0.0.1:9", {"listener.name.b.tenant": "demo"}, "no --listen b="),
        ("a=127.0.0.1:9", {"advertised.listeners": "b=host:1"}, "no --listen b="),
        ("controller=127.0.0.1:9", {}, "choose another name"),
        ("127.0.0.1:9", {"controller.quorum.voters": "7@127.0.0.1:8"}, "does not name this node"),
        ("127.0.0.1:9", {"controller.quorum.voters": "1@10.0.0.1:8"}, "in the clear"),
        ("127.0.0.1:9", {"controller.quorum.voters": "1@127.0.0.1:8,1@127.0.0.1:7"}, "stands twice"),
        ("127.0.0.1:9", {"controller.quorum.voters": "nonsense"}, "not ID@HOST:PORT"),
    ],
)
def test_one_line_says_what_is_wrong(listeners: str, settings: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigError, match=message) as caught:
        make_specs(BrokerConfig.load({}, {"listeners": listeners, **settings}))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("protocol", ["PLAINTEXT", "SSL"])
def test_production_has_no_listener_without_authentication_on_loopback_either(protocol: str) -> None:
    values = {"listeners": "a=127.0.0.1:9", "listener.security.protocol.map": f"a:{protocol}"}
    values |= {"ssl.certificate.file": "c", "ssl.key.file": "k"}
    with pytest.raises(ConfigError, match=r"set listener\.security\.protocol\.map=a:SASL_SSL"):
        make_specs(BrokerConfig.load({}, values, "production"))
    values["listener.security.protocol.map"] = "a:SASL_PLAINTEXT"
    assert make_specs(BrokerConfig.load({}, values, "production"))[0].protocol.has_sasl
