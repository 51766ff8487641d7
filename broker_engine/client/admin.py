"""Admin calls. Where a call names several things the answer is a mapping with an outcome for each.

An outcome that is a KafkaError is returned, not raised: one topic's failure says nothing about the others.
`raise_errors` turns it into an exception for callers that asked for one thing. What fails as a whole (no connection,
not authorised at all) is raised. Nothing is sent twice but after NOT_CONTROLLER, when it was certainly not done.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar

from broker_engine.client.admin_model import (
    ClusterDescription,
    ConfigChange,
    ConfigEntry,
    ConfigResource,
    CreatedTopic,
    NewTopic,
    ResourceType,
)
from broker_engine.client.cluster_admin import ClusterAdmin
from broker_engine.client.config import BrokerAddress
from broker_engine.client.errors import KafkaError, error_for
from broker_engine.client.fetching import Isolation
from broker_engine.client.groups_admin import GroupsAdmin
from broker_engine.client.metadata import ClusterView, TopicView, cluster_view, view_of
from broker_engine.client.model import FoundOffset, Start, Timestamp, TopicPartition
from broker_engine.client.offsets import EARLIEST, LATEST, list_offsets
from broker_engine.client.tenants_admin import TenantsAdmin
from broker_engine.errors import ErrorCode
from broker_engine.wire.messages import create_partitions as create_partitions_api
from broker_engine.wire.messages import create_topics as create_topics_api
from broker_engine.wire.messages import delete_topics as delete_topics_api
from broker_engine.wire.messages import describe_configs as describe_configs_api
from broker_engine.wire.messages import incremental_alter_configs as alter_configs_api
from broker_engine.wire.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from broker_engine.wire.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse

K = TypeVar("K")
V = TypeVar("V")

Outcome = KafkaError | None
"""None: done."""


def raise_errors(outcomes: Mapping[K, V | KafkaError]) -> dict[K, V]:
    """The outcomes as they are, or the first error among them raised."""
    good: dict[K, V] = {}
    for key, outcome in outcomes.items():
        if isinstance(outcome, KafkaError):
            raise outcome
        good[key] = outcome
    return good


class Admin(TenantsAdmin, ClusterAdmin, GroupsAdmin):
    # Topics

    async def create_topics(
        self, topics: Iterable[NewTopic], *, validate_only: bool = False, timeout_ms: int | None = None
    ) -> dict[str, CreatedTopic | KafkaError]:
        wait_ms = self._timeout_ms(timeout_ms)
        request = create_topics_api.CreateTopicsRequest(
            topics=[_creatable(topic) for topic in topics], timeout_ms=wait_ms, validate_only=validate_only
        )
        answer = create_topics_api.CreateTopicsResponse
        response = await self._ask_controller(request, answer, lambda got: (one.error_code for one in got.topics))
        return {one.name: _created(one) for one in response.topics}

    async def delete_topics(self, names: Iterable[str], *, timeout_ms: int | None = None) -> dict[str, Outcome]:
        wanted = list(names)
        request = delete_topics_api.DeleteTopicsRequest(
            topic_names=wanted,
            topics=[delete_topics_api.DeleteTopicState(name=name) for name in wanted],
            timeout_ms=self._timeout_ms(timeout_ms),
        )
        answer = delete_topics_api.DeleteTopicsResponse
        response = await self._ask_controller(request, answer, lambda got: (one.error_code for one in got.responses))
        for name in wanted:
            self._client.metadata.forget(name)
        return {
            one.name or "": _outcome(one.error_code, one.error_message, f"topic {one.name!r}")
            for one in response.responses
        }

    async def create_partitions(
        self, totals: Mapping[str, int], *, validate_only: bool = False, timeout_ms: int | None = None
    ) -> dict[str, Outcome]:
        """Grow topics to that many partitions altogether."""
        request = create_partitions_api.CreatePartitionsRequest(
            topics=[
                create_partitions_api.CreatePartitionsTopic(name=name, count=count, assignments=None)
                for name, count in totals.items()
            ],
            timeout_ms=self._timeout_ms(timeout_ms),
            validate_only=validate_only,
        )
        answer = create_partitions_api.CreatePartitionsResponse
        response = await self._ask_controller(request, answer, lambda got: (one.error_code for one in got.results))
        for name in totals:
            self._client.metadata.mark_stale(name)
        return {
            one.name: _outcome(one.error_code, one.error_message, f"topic {one.name!r}") for one in response.results
        }

    async def list_topics(self) -> dict[str, TopicView]:
        """All that we may see, asked now."""
        return dict((await self._metadata(None)).topics)

    async def describe_topics(self, names: Iterable[str]) -> dict[str, TopicView | KafkaError]:
        """Asked now, of one broker; nothing is created and nothing waited for."""
        response = await self._client.ask_any(_metadata_request(names), MetadataResponse)
        now_ms = self._client.clock.monotonic_ms()
        return {
            topic.name or "": view_of(topic, now_ms)
            if topic.error_code == ErrorCode.NONE
            else error_for(topic.error_code, None, f"topic {topic.name!r}")
            for topic in response.topics
        }

    async def metadata_of(self, node: int, topics: Iterable[str] | None = None) -> ClusterView:
        """One broker's own view: of these topics, or of all. Topics that it does not know are left out."""
        if node not in self._client.metadata.brokers:
            await self._client.refresh_brokers()  # it may have come after us
        response = await self._client.ask(node, _metadata_request(topics), MetadataResponse)
        return cluster_view(response, self._client.clock.monotonic_ms())

    async def _metadata(self, topics: Iterable[str] | None) -> ClusterView:
        response = await self._client.ask_any(_metadata_request(topics), MetadataResponse)
        return cluster_view(response, self._client.clock.monotonic_ms())

    async def list_offsets(
        self, starts: Mapping[tuple[str, int], Start], *, isolation: Isolation = "read_uncommitted"
    ) -> dict[TopicPartition, FoundOffset]:
        """`"earliest"`, `"latest"` (the high watermark) or a Timestamp for each. Offset -1: no record is that young."""
        wanted = {TopicPartition(*target): _timestamp_ms(start) for target, start in starts.items()}
        return await list_offsets(self._client, wanted, isolation=isolation)

    async def describe_cluster(self) -> ClusterDescription:
        response = await self._client.ask_any(DescribeClusterRequest(), DescribeClusterResponse)
        if response.error_code != ErrorCode.NONE:
            raise error_for(response.error_code, response.error_message, "describe the cluster")
        brokers = {one.broker_id: BrokerAddress(one.host, one.port) for one in response.brokers}
        racks = {one.broker_id: one.rack for one in response.brokers}
        return ClusterDescription(response.cluster_id, response.controller_id, brokers, racks)

    # Configs

    async def describe_configs(
        self, resources: Iterable[ConfigResource], *, names: Sequence[str] | None = None
    ) -> dict[ConfigResource, dict[str, ConfigEntry] | KafkaError]:
        """Of each resource: all configs, or those named. A broker's are asked of that broker."""
        found: dict[ConfigResource, dict[str, ConfigEntry] | KafkaError] = {}
        for node, group in _by_node(resources).items():
            request = describe_configs_api.DescribeConfigsRequest(
                resources=[_described(resource, names) for resource in group]
            )
            response = await self._ask_node(node, request, describe_configs_api.DescribeConfigsResponse)
            found |= {_resource(one.resource_type, one.resource_name): _entries(one) for one in response.results}
        return found

    async def incremental_alter_configs(
        self, changes: Mapping[ConfigResource, Sequence[ConfigChange]], *, validate_only: bool = False
    ) -> dict[ConfigResource, Outcome]:
        done: dict[ConfigResource, Outcome] = {}
        for node, group in _by_node(changes).items():
            request = alter_configs_api.IncrementalAlterConfigsRequest(
                resources=[_altered(resource, changes[resource]) for resource in group], validate_only=validate_only
            )
            response = await self._ask_node(node, request, alter_configs_api.IncrementalAlterConfigsResponse)
            done |= {
                _resource(one.resource_type, one.resource_name): _outcome(
                    one.error_code, one.error_message, f"configs of {one.resource_name!r}"
                )
                for one in response.responses
            }
        return done


def _outcome(code: int, message: str | None, context: str) -> Outcome:
    return None if code == ErrorCode.NONE else error_for(code, message, context)


def _timestamp_ms(start: Start) -> int:
    if isinstance(start, Timestamp):
        return start.ms
    if isinstance(start, int):
        raise ValueError("an offset needs no look-up; give 'earliest', 'latest' or a Timestamp")
    return EARLIEST if start == "earliest" else LATEST


def _metadata_request(topics: Iterable[str] | None) -> MetadataRequest:
    names = None if topics is None else [MetadataRequestTopic(name=name) for name in topics]
    return MetadataRequest(topics=names, allow_auto_topic_creation=False)


def _creatable(topic: NewTopic) -> create_topics_api.CreatableTopic:
    return create_topics_api.CreatableTopic(
        name=topic.name,
        num_partitions=topic.partitions,
        replication_factor=topic.replication_factor,
        assignments=[
            create_topics_api.CreatableReplicaAssignment(partition_index=index, broker_ids=list(brokers))
            for index, brokers in topic.assignments.items()
        ],
        configs=[
            create_topics_api.CreatableTopicConfig(name=name, value=value) for name, value in topic.configs.items()
        ],
    )


def _created(one: create_topics_api.CreatableTopicResult) -> CreatedTopic | KafkaError:
    if one.error_code != ErrorCode.NONE:
        return error_for(one.error_code, one.error_message, f"topic {one.name!r}")
    configs = {config.name: config.value for config in one.configs or ()}
    return CreatedTopic(one.name, one.topic_id, one.num_partitions, one.replication_factor, configs)


def _by_node(resources: Iterable[ConfigResource]) -> dict[int | None, list[ConfigResource]]:
    groups: dict[int | None, list[ConfigResource]] = {}
    for resource in resources:
        is_broker = resource.type == ResourceType.BROKER and resource.name.isdigit()
        groups.setdefault(int(resource.name) if is_broker else None, []).append(resource)
    return groups


def _resource(type_number: int, name: str) -> ConfigResource:
    return ConfigResource(ResourceType(type_number), name)


def _described(resource: ConfigResource, names: Sequence[str] | None) -> describe_configs_api.DescribeConfigsResource:
    return describe_configs_api.DescribeConfigsResource(
        resource_type=resource.type,
        resource_name=resource.name,
        configuration_keys=None if names is None else list(names),
    )


def _entries(one: describe_configs_api.DescribeConfigsResult) -> dict[str, ConfigEntry] | KafkaError:
    if one.error_code != ErrorCode.NONE:
        return error_for(one.error_code, one.error_message, f"configs of {one.resource_name!r}")
    return {
        entry.name: ConfigEntry(
            entry.name, entry.value, entry.config_source, entry.read_only, entry.is_sensitive, entry.documentation
        )
        for entry in one.configs
    }


def _altered(resource: ConfigResource, changes: Sequence[ConfigChange]) -> alter_configs_api.AlterConfigsResource:
    return alter_configs_api.AlterConfigsResource(
        resource_type=resource.type,
        resource_name=resource.name,
        configs=[
            alter_configs_api.AlterableConfig(name=change.name, config_operation=change.operation, value=change.value)
            for change in changes
        ],
    )
