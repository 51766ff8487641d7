"""Levels of cluster features, as UpdateFeatures sets them. Off (0) until somebody does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from broker_engine.errors import BrokerError, ErrorCode
from broker_engine.metadata.decision import Decision
from broker_engine.metadata.image import MetadataImage
from broker_engine.metadata.records import FeatureLevelRecord

TRANSACTION_VERSION = "transaction.version"
SUPPORTED: Mapping[str, tuple[int, int]] = MappingProxyType({TRANSACTION_VERSION: (0, 2)})
"""What may be set, by Kafka's names: (lowest, highest)."""
UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE = 1, 2, 3


@dataclass(frozen=True, slots=True)
class FeatureChange:
    name: str
    level: int
    upgrade_type: int = UPGRADE


def finalized(image: MetadataImage) -> dict[str, int]:
    """What is switched on, by name."""
    return {name: image.features[name] for name in sorted(SUPPORTED) if image.features.get(name, 0) > 0}


def update_features(
    image: MetadataImage, changes: Sequence[FeatureChange], *, validate_only: bool = False
) -> Decision[FeatureChange]:
    """All of them or none: BrokerError 95 says which one cannot be."""
    for change in changes:
        problem = _problem(change, image.features.get(change.name, 0))
        if problem is not None:
            text = f"Invalid update version {change.level} for feature {change.name}. {problem}"
            raise BrokerError(ErrorCode.INVALID_UPDATE_VERSION, text)
    records = [FeatureLevelRecord(name=change.name, level=change.level) for change in changes]
    return Decision(() if validate_only else tuple(records), tuple(changes))


def _problem(change: FeatureChange, current_level: int) -> str | None:
    if change.upgrade_type not in (UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE):
        return "The controller does not support the given upgrade type."
    if change.level < 0:
        return "A feature version cannot be less than 0."
    if change.name not in SUPPORTED:
        return "The cluster does not support this feature."
    first, last = SUPPORTED[change.name]
    if not first <= change.level <= last:
        return f"The cluster only supports versions {first}-{last}."
    if change.level < current_level and change.upgrade_type == UPGRADE:
        return "Can't downgrade the version of this feature without setting the upgrade type to a downgrade."
    if change.level > current_level and change.upgrade_type != UPGRADE:
        return "Can't downgrade to a newer version."
    return None
