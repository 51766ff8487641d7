"""Commands on configs: IncrementalAlterConfigs and AlterConfigs, of topics, brokers, groups. Answers as Kafka 4.3.1."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import TypeVar

from broker_engine.config.broker import BROKER_CONFIGS
from broker_engine.config.group import GROUP_CONFIGS, check_group_config
from broker_engine.config.knobs import ConfigType, Knob, format_value
from broker_engine.config.topic import TOPIC_CONFIGS, check_topic_config, validate_topic_configs
from broker_engine.errors import BrokerError, ErrorCode
from broker_engine.metadata.decision import Decision, invalid_request, repeated
from broker_engine.metadata.image import MetadataImage
from broker_engine.metadata.records import RESOURCE_BROKER, RESOURCE_GROUP, RESOURCE_TOPIC, ConfigRecord, Record
from broker_engine.names import ROOT, Name

_GROUPS_MAX = 10_000
"""Groups of one tenant with configs of their own: the metadata log is not the place for more."""


_ROWS_OF: Mapping[int, Mapping[str, Knob]] = {RESOURCE_TOPIC: TOPIC_CONFIGS, RESOURCE_GROUP: GROUP_CONFIGS}


class ConfigOperation(IntEnum):
    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


@dataclass(frozen=True, slots=True)
class Resource:
    type: int
    """Kafka's number: 2 topic, 4 broker, 32 group."""
    name: Name
    """For a broker: root's, its id as text, "" = all brokers."""


@dataclass(frozen=True, slots=True)
class ConfigChange:
    name: str
    operation: int
    value: str | None


@dataclass(frozen=True, slots=True)
class ConfigResult:
    resource: Resource
    error_code: ErrorCode = ErrorCode.NONE
    error_message: str | None = None


Overrides = Mapping[str, str]
T = TypeVar("T")


def incremental_alter_configs(
    image: MetadataImage, changes: Sequence[tuple[Resource, Sequence[ConfigChange]]], *, validate_only: bool = False
) -> Decision[ConfigResult]:
    def wanted(resource: Resource, current: Overrides, items: Sequence[ConfigChange]) -> Overrides:
        if repeated(change.name for change in items):
            raise invalid_request("Error due to duplicate config keys")
        result = dict(current)
        for change in items:
            _apply(result, change, resource)
        return result

    return _alter(image, changes, wanted, validate_only)


def alter_configs(
    image: MetadataImage,
    replacements: Sequence[tuple[Resource, Sequence[tuple[str, str | None]]]],
    *,
    validate_only: bool = False,
) -> Decision[ConfigResult]:
    """The old request: what it gives is all that the resource has afterwards."""

    def wanted(resource: Resource, _current: Overrides, items: Sequence[tuple[str, str | None]]) -> Overrides:
        if repeated(name for name, _value in items):
            raise invalid_request("Error due to duplicate config keys")
        for name, value in items:
            _check_settable(resource, name, value)
        return {name: value for name, value in items if value is not None}

    return _alter(image, replacements, wanted, validate_only)


def _alter(
    image: MetadataImage,
    requests: Sequence[tuple[Resource, Sequence[T]]],
    wanted: Callable[[Resource, Overrides, Sequence[T]], Overrides],
    validate_only: bool,
) -> Decision[ConfigResult]:
    twice = repeated(resource for resource, _items in requests)
    records, results = list[Record](), list[ConfigResult]()
    for resource, items in {resource: (resource, items) for resource, items in requests}.values():
        try:
            if resource in twice:
                raise invalid_request("Each resource must appear at most once.")
            current = _current(image, resource)
            result = wanted(resource, current, items)
            if resource.type == RESOURCE_TOPIC:
                validate_topic_configs(result)
        except BrokerError as error:
            results.append(ConfigResult(resource, error.code, error.message))
            continue
        records += _differences(resource, current, result)
        results.append(ConfigResult(resource))
    return Decision(() if validate_only else tuple(records), tuple(results))


def _current(image: MetadataImage, resource: Resource) -> Overrides:
    """The resource's overrides. Refuses one that is not there."""
    if resource.type == RESOURCE_TOPIC:
        if not resource.name.name:
            raise invalid_request("Default topic resources are not allowed.")
        topic = image.topic(resource.name)
        if topic is None:
            raise BrokerError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{resource.name.name}' does not exist.")
        return topic.configs
    if resource.type == RESOURCE_BROKER:
        return _broker_overrides(image, resource.name)
    if resource.type == RESOURCE_GROUP:
        return _group_overrides(image, resource.name)
    raise invalid_request(f"Unexpected resource type {resource.type}.")


def _broker_overrides(image: MetadataImage, name: Name) -> Overrides:
    is_known = name.name == "" or (name.name.isdecimal() and int(name.name) in image.brokers)
    if name.tenant != ROOT or not is_known:
        raise invalid_request(f"No broker has the id '{name.name}'.")
    return image.broker_configs.get(name.name, {})


def _group_overrides(image: MetadataImage, name: Name) -> Overrides:
    """A group need not be there to have configs."""
    if not name.name:
        raise invalid_request("Default group resources are not allowed.")
    if name not in image.group_configs:
        count = sum(1 for each in image.group_configs if each.tenant == name.tenant)
        if count >= _GROUPS_MAX:
            raise BrokerError(ErrorCode.POLICY_VIOLATION, f"At most {_GROUPS_MAX} groups have configs of their own.")
    return image.group_configs.get(name, {})


def _apply(overrides: dict[str, str], change: ConfigChange, resource: Resource) -> None:
    if change.operation == ConfigOperation.DELETE:
        overrides.pop(change.name, None)
        return
    if change.value is None:
        raise invalid_request(f"Null value not supported for : {change.name}")
    if change.operation == ConfigOperation.SET:
        _check_settable(resource, change.name, change.value)
        overrides[change.name] = change.value
    elif change.operation in (ConfigOperation.APPEND, ConfigOperation.SUBTRACT):
        overrides[change.name] = _changed_list(overrides, change, resource)
    else:
        raise invalid_request(f"Unknown operation {change.operation}.")


def _changed_list(overrides: Mapping[str, str], change: ConfigChange, resource: Resource) -> str:
    row = _ROWS_OF.get(resource.type, BROKER_CONFIGS).get(change.name)
    if row is None or row.type is not ConfigType.LIST:
        text = f"Can't change the list '{change.name}': it is not a list config"
        raise BrokerError(ErrorCode.INVALID_CONFIG, text)
    present = _items(overrides.get(change.name, format_value(row.default) or ""), row)
    given = _items(change.value or "", row)
    if change.operation == ConfigOperation.APPEND:
        changed = ",".join([*present, *(item for item in given if item not in present)])
    else:
        changed = ",".join(item for item in present if item not in given)
    _check_settable(resource, change.name, changed)
    return changed


def _items(text: str, row: Knob) -> tuple[str, ...]:
    assert row.type is ConfigType.LIST
    return tuple(item.strip() for item in text.split(",")) if text else ()


def _check_settable(resource: Resource, name: str, value: str | None) -> None:
    if resource.type == RESOURCE_TOPIC:
        check_topic_config(name, value)
        return
    if resource.type == RESOURCE_GROUP:
        check_group_config(name, value)
        return
    row = BROKER_CONFIGS.get(name)
    if row is None or value is None:
        return
    if not row.dynamic:
        raise invalid_request(f"{name} cannot be changed while the broker runs: set it in its config and restart it.")
    try:
        row.parse(value)
    except ValueError as error:
        raise BrokerError(ErrorCode.INVALID_CONFIG, str(error)) from None


def _differences(resource: Resource, before: Overrides, after: Overrides) -> list[ConfigRecord]:
    changed = {name: value for name, value in after.items() if before.get(name) != value}
    removed = {name: None for name in before if name not in after}
    return [_record(resource, name, value) for name, value in {**changed, **removed}.items()]


def _record(resource: Resource, name: str, value: str | None) -> ConfigRecord:
    return ConfigRecord(
        tenant=resource.name.tenant,
        resource_type=resource.type,
        resource_name=resource.name.name,
        name=name,
        value=value,
    )
