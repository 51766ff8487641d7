"""Our own engine behind the seam: the client's admin calls, as `control-plane` on the internal listener.

The control plane is root there, so a tenant's topic has its physical name `tenant/name`; that name never leaves this
module, not even in an error's text. The client belongs to the bridge's loop: methods hand their work over to it.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import TypeVar

from django.core.exceptions import ImproperlyConfigured

from broker_engine import client as engine
from broker_engine.client import Admin, Client, ClientConfig, ErrorCode, KafkaError, PlainCredentials
from broker_engine.client.credentials import ScramMechanism, ScramVerifier
from control_plane.engine.bridge import bridge
from control_plane.engine.highwater_cluster import THROTTLED_REPLICAS, HighwaterCluster
from control_plane.engine.highwater_groups import HighwaterGroups
from control_plane.engine.interface import (
    Credential,
    CredentialView,
    EngineRefused,
    EngineUnavailable,
    Inventory,
    PartitionView,
    TenantView,
    TopicName,
    TopicSpec,
    TopicView,
    Verifier,
)
from control_plane.environment import Environment

log = logging.getLogger(__name__)

T = TypeVar("T")

USER = "control-plane"
REQUEST_TIMEOUT_MS = 10_000
CONFIGS_PER_REQUEST = 200
LOOK_AGAIN_S = 0.02
LOOK_AGAIN_S_MAX = 0.25
GRACE_S = 1.0  # so that a step's own time-out answers before the bridge's
ABSENT = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID)


class HighwaterEngine:
    def __init__(self, environment: Environment) -> None:
        self._environment = environment
        self._lock = asyncio.Lock()
        self._client: Client | None = None

    @property
    def kind(self) -> str:
        return "highwater"

    @property
    def cluster(self) -> HighwaterCluster:
        return HighwaterCluster(self._run)

    @property
    def groups(self) -> HighwaterGroups:
        return HighwaterGroups(self._run)

    def create_topic(self, name: TopicName, spec: TopicSpec, *, timeout_s: float) -> bool:
        async def create(admin: Admin) -> bool:
            outcomes = await admin.create_topics([_new_topic(name, spec)], timeout_ms=int(timeout_s * 1000))
            outcome = outcomes[physical(name)]
            if isinstance(outcome, KafkaError) and outcome.code == ErrorCode.TOPIC_ALREADY_EXISTS:
                return False
            if _lacks_brokers(outcome) and spec.replication_factor is None:
                # The default factor fits the cluster as configured: brokers that are down now will be back.
                raise EngineUnavailable("fewer brokers are up than the default replication factor needs")
            _check(outcome)
            return True

        return self._run(create, timeout_s, name)

    def delete_topic(self, name: TopicName, *, timeout_s: float) -> None:
        async def delete(admin: Admin) -> None:
            outcomes = await admin.delete_topics([physical(name)], timeout_ms=int(timeout_s * 1000))
            _check(outcomes[physical(name)], fine=ABSENT)

        self._run(delete, timeout_s, name)

    def add_partitions(self, name: TopicName, total: int, *, timeout_s: float) -> None:
        async def add(admin: Admin) -> None:
            _check((await admin.create_partitions({physical(name): total}))[physical(name)])

        self._run(add, timeout_s, name)

    def alter_configs(
        self, name: TopicName, *, put: Mapping[str, str], remove: Iterable[str], timeout_s: float
    ) -> None:
        resource = engine.ConfigResource.topic(physical(name))
        changes = [engine.ConfigChange(key, value) for key, value in put.items()]
        changes += [engine.ConfigChange(key, None, engine.ConfigOperation.DELETE) for key in remove]

        async def alter(admin: Admin) -> None:
            _check((await admin.incremental_alter_configs({resource: changes}))[resource])

        self._run(alter, timeout_s, name)

    def describe_topic(self, name: TopicName, *, timeout_s: float) -> TopicView | None:
        async def describe(admin: Admin) -> TopicView | None:
            found = await _topic(admin, name)
            views = [] if found is None else await _with_configs(admin, {name: found})
            return views[0] if views else None

        return self._run(describe, timeout_s, name)

    def describe_topics(self, *, timeout_s: float) -> list[TopicView]:
        async def describe(admin: Admin) -> list[TopicView]:
            named = {_logical(name): view for name, view in (await admin.list_topics()).items() if "/" in name}
            return await _with_configs(admin, named)

        return self._run(describe, timeout_s)

    def describe_partitions(self, name: TopicName, *, timeout_s: float) -> list[PartitionView] | None:
        async def describe(admin: Admin) -> list[PartitionView] | None:
            found = await _topic(admin, name)
            if found is None:
                return None
            targets = [(physical(name), index) for index in sorted(found.partitions)]
            starts = await admin.list_offsets(dict.fromkeys(targets, "earliest"))
            ends = await admin.list_offsets(dict.fromkeys(targets, "latest"))
            return [_partition_view(found.partitions[index], starts, ends, topic) for topic, index in targets]

        return self._run(describe, timeout_s, name)

    def wait_until_shown(self, name: TopicName, partitions: int, *, timeout_s: float) -> bool:
        async def wait(admin: Admin) -> bool:
            try:
                async with asyncio.timeout(timeout_s):
                    await _poll(lambda: _is_shown(admin, physical(name), partitions))
            except TimeoutError:
                return False
            return True

        return self._run(wait, timeout_s, name)

    def inventory(self, *, timeout_s: float) -> Inventory:
        async def describe(admin: Admin) -> Inventory:
            found = await admin.describe_tenants()
            tenants = {
                one.tenant_id: TenantView(one.tenant_id, one.cluster_id, json.loads(one.policy_json))
                for one in found.tenants.values()
            }
            return Inventory(tenants, {one.username: _credential_view(one) for one in found.credentials.values()})

        return self._run(describe, timeout_s)

    def push_tenants(self, tenants: Iterable[TenantView], *, timeout_s: float) -> None:
        wanted = [engine.Tenant(one.tenant, one.cluster_id, json.dumps(one.policy, sort_keys=True)) for one in tenants]

        async def push(admin: Admin) -> None:
            _check_all(await admin.alter_tenants(wanted))

        self._run(push, timeout_s)

    def push_credentials(self, credentials: Iterable[Credential], *, timeout_s: float) -> None:
        self._alter_credentials([_engine_credential(one) for one in credentials], timeout_s)

    def remove_credentials(self, usernames: Iterable[str], *, timeout_s: float) -> None:
        self._alter_credentials([engine.Credential(username, deleted=True) for username in usernames], timeout_s)

    def _alter_credentials(self, credentials: list[engine.Credential], timeout_s: float) -> None:
        async def alter(admin: Admin) -> None:
            _check_all(await admin.alter_credentials(credentials), fine=(ErrorCode.RESOURCE_NOT_FOUND,))

        self._run(alter, timeout_s)

    def _run(self, work: Callable[[Admin], Awaitable[T]], timeout_s: float, name: TopicName | None = None) -> T:
        async def on_the_loop() -> T:
            try:
                return await work(Admin(await self._started_client()))
            except engine.AuthenticationFailed:
                await self._drop_client()  # the cluster may have a new secret: read it again next time
                raise

        try:
            return bridge.run(on_the_loop(), timeout_s + GRACE_S)
        except KafkaError as error:
            raise _translated(error, name) from error

    async def _started_client(self) -> Client:
        async with self._lock:
            if self._client is None:
                self._client = await _connect(self._environment)
            return self._client

    async def _drop_client(self) -> None:
        async with self._lock:
            dropped, self._client = self._client, None
        if dropped is not None:
            await dropped.close()


async def _connect(environment: Environment) -> Client:
    """A client that has signed in. Made anew after a failure: the secret may have been written meanwhile."""
    try:
        secret = environment.read_cluster_secret()
    except ImproperlyConfigured as error:
        raise EngineUnavailable(str(error)) from error
    client = Client(
        ClientConfig(
            bootstrap=environment.engine_bootstrap,
            client_id="highwater-control-plane",
            sasl=PlainCredentials(USER, secret),
            tls=environment.engine_tls(),
            request_timeout_ms=REQUEST_TIMEOUT_MS,
        )
    )
    try:
        await client.start()
    except BaseException:
        await client.close()
        raise
    return client


def physical(name: TopicName) -> str:
    return f"{name.tenant}/{name.name}"


def _logical(text: str) -> TopicName:
    tenant, _, name = text.partition("/")
    return TopicName(tenant, name)


def _new_topic(name: TopicName, spec: TopicSpec) -> engine.NewTopic:
    factor = -1 if spec.replication_factor is None else spec.replication_factor
    return engine.NewTopic(physical(name), spec.partitions, factor, dict(spec.configs))


def _lacks_brokers(outcome: object) -> bool:
    return isinstance(outcome, KafkaError) and outcome.code == ErrorCode.INVALID_REPLICATION_FACTOR


def _check(outcome: object, *, fine: Sequence[ErrorCode] = ()) -> None:
    if isinstance(outcome, KafkaError) and outcome.code not in fine:
        raise outcome


def _check_all(outcomes: Mapping[str, KafkaError | None], *, fine: Sequence[ErrorCode] = ()) -> None:
    for outcome in outcomes.values():
        _check(outcome, fine=fine)


def _translated(error: KafkaError, name: TopicName | None) -> EngineRefused | EngineUnavailable:
    """The seam's own errors. Texts about connections stay in our log: they name hosts that are not the tenant's."""
    if isinstance(error, engine.ConnectionFailed | engine.RequestTimedOut | engine.AuthenticationFailed):
        log.warning("the engine cannot be reached: %s", error)
        return EngineUnavailable("the engine does not answer at the moment")
    message = error.message if name is None else error.message.replace(physical(name), name.name)
    if error.retriable:
        return EngineUnavailable(f"{error.code.name}: {message}")
    return EngineRefused(error.code.name, message)


async def _topic(admin: Admin, name: TopicName) -> engine.TopicView | None:
    outcome = (await admin.describe_topics([physical(name)]))[physical(name)]
    if isinstance(outcome, KafkaError):
        _check(outcome, fine=ABSENT)
        return None
    return outcome


async def _with_configs(admin: Admin, topics: Mapping[TopicName, engine.TopicView]) -> list[TopicView]:
    """The views with what is set on each topic itself. A topic that went away meanwhile is left out."""
    names, views = sorted(topics), []
    for start in range(0, len(names), CONFIGS_PER_REQUEST):
        resources = {
            engine.ConfigResource.topic(physical(name)): name for name in names[start : start + CONFIGS_PER_REQUEST]
        }
        for resource, entries in (await admin.describe_configs(resources)).items():
            _check(entries, fine=ABSENT)
            if not isinstance(entries, KafkaError):
                name = resources[resource]
                views.append(_topic_view(name, topics[name], entries))
    return views


def _topic_view(name: TopicName, view: engine.TopicView, entries: Mapping[str, engine.ConfigEntry]) -> TopicView:
    own = {
        key: it.value
        for key, it in entries.items()
        # What operators throttle while replicas move is no wish of the tenant's.
        if it.source == engine.ConfigSource.TOPIC and it.value is not None and key not in THROTTLED_REPLICAS
    }
    factor = max((len(partition.replicas) for partition in view.partitions.values()), default=0)
    return TopicView(name, view.topic_id, view.partition_count, factor, own)


def _partition_view(
    view: engine.PartitionView,
    starts: Mapping[engine.TopicPartition, engine.FoundOffset],
    ends: Mapping[engine.TopicPartition, engine.FoundOffset],
    topic: str,
) -> PartitionView:
    target = engine.TopicPartition(topic, view.partition)
    return PartitionView(
        partition=view.partition,
        leader=None if view.leader < 0 else view.leader,
        leader_epoch=view.leader_epoch,
        replicas=view.replicas,
        isr=view.isr,
        log_start_offset=starts[target].offset,
        high_watermark=ends[target].offset,
    )


async def _poll(is_true: Callable[[], Awaitable[bool]]) -> None:
    """Look until it is true; the caller's time-out ends it otherwise."""
    pause_s = LOOK_AGAIN_S
    while not await is_true():
        await asyncio.sleep(pause_s)
        pause_s = min(LOOK_AGAIN_S_MAX, pause_s * 2)


async def _is_shown(admin: Admin, topic: str, partitions: int) -> bool:
    """Whether each live broker's own metadata shows that many partitions, every one with a leader."""
    brokers = sorted((await admin.describe_cluster()).brokers)
    shown = await asyncio.gather(*(_led_count(admin, broker, topic) for broker in brokers))
    return bool(brokers) and all(count == partitions for count in shown)


async def _led_count(admin: Admin, broker: int, topic: str) -> int | None:
    """None: it does not answer. It may just have died, and the next look asks anew which brokers are live."""
    try:
        view = (await admin.metadata_of(broker, [topic])).topics.get(topic)
    except KafkaError as error:
        if not error.retriable:
            raise
        return None
    return 0 if view is None else len(view.led)


def _credential_view(one: engine.DescribedCredential) -> CredentialView:
    keys = frozenset((ScramMechanism(it.mechanism).wire_name, it.stored_key) for it in one.mechanisms)
    return CredentialView(one.username, one.tenant_id, keys)


def _engine_credential(one: Credential) -> engine.Credential:
    return engine.Credential(one.username, one.tenant, one.principal, tuple(_scram(it) for it in one.verifiers))


def _scram(verifier: Verifier) -> ScramVerifier:
    mechanism = ScramMechanism[verifier.mechanism.replace("-", "_")]
    return ScramVerifier(mechanism, verifier.salt, verifier.iterations, verifier.stored_key, verifier.server_key)
