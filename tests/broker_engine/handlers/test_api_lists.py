"""Which listener speaks which APIs: what nodes say to each other is never offered to anybody else."""

from __future__ import annotations

from broker_engine.config import BrokerConfig
from broker_engine.handlers import CLIENT_APIS, FORWARDED_APIS, NODE_APIS, PRIVATE_APIS, SIGN_IN_APIS, apis_of
from broker_engine.handlers.api import Scope
from broker_engine.server.listeners import make_specs
from broker_engine.wire import registry

FETCH = 1
SETTINGS = {
    "listeners": "default=127.0.0.1:1,internal=127.0.0.1:2",
    "controller.quorum.voters": "1@127.0.0.1:3,2@127.0.0.1:4",
}
SPECS = {spec.name: spec for spec in make_specs(BrokerConfig.load(SETTINGS))}


def test_every_api_that_is_handled_is_known_by_its_key() -> None:
    for api in (*CLIENT_APIS, *PRIVATE_APIS, *NODE_APIS):
        assert registry.find(api.key) is api.spec, api.spec.name


def test_what_is_between_brokers_is_on_the_controllers_listener_only() -> None:
    for api in (*CLIENT_APIS, *PRIVATE_APIS):
        assert not api.spec.is_between_brokers
        assert api.scope is not Scope.BROKERS
    assert {api.key for api in NODE_APIS} & set(apis_of(SPECS["internal"])) <= {FETCH, *_shared()}


def test_the_controllers_listener_has_nothing_for_clients() -> None:
    keys = set(apis_of(SPECS["controller"])) - {api.key for api in SIGN_IN_APIS}
    assert {apis_of(SPECS["controller"])[key].scope for key in keys - _shared()} == {Scope.BROKERS}


def test_an_envelope_holds_what_changes_the_cluster() -> None:
    names = {api.spec.name for api in FORWARDED_APIS.values()}
    assert {"CreateTopics", "DeleteTopics", "AlterConfigs", "AlterTenants", "ElectLeaders"} <= names
    assert not names & {"Produce", "Fetch", "Metadata", "Envelope"}


def _shared() -> set[int]:
    """Asked by clients and by nodes alike: how the quorum is, and who votes."""
    return {api.key for api in NODE_APIS} & {api.key for api in CLIENT_APIS} - {FETCH}
