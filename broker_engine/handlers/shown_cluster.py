"""What answers show of the cluster: who is the controller, whose replicas are offline."""

from __future__ import annotations

from collections.abc import Iterable

from broker_engine.handlers.api import Call
from broker_engine.metadata.image import BrokerImage, MetadataImage, PartitionImage
from broker_engine.metadata.parts import EndpointImage


def controller_id(call: Call) -> int:
    """The controller where clients can reach it as a broker, else this one: every broker passes requests on to it."""
    leader_id, _epoch = call.broker.known_leader
    broker = None if leader_id is None else call.broker.image.brokers.get(leader_id)
    return call.broker.node_id if broker is None or broker.is_fenced else broker.id


def reachable_brokers(call: Call, *, with_fenced: bool = False) -> Iterable[tuple[BrokerImage, EndpointImage]]:
    """Each with the address that leads back to the same kind of listener."""
    for broker in call.broker.image.brokers.values():
        for endpoint in broker.endpoints:
            if endpoint.name == call.session.listener.name and (with_fenced or not broker.is_fenced):
                yield broker, endpoint


def offline_replicas(image: MetadataImage, partition: PartitionImage) -> list[int]:
    """Those on brokers that are fenced or unknown."""
    brokers = image.brokers
    return [member for member in partition.replicas if member not in brokers or brokers[member].is_fenced]
