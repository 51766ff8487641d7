"""TenantPolicy: the rules that the engine holds a tenant's topics to, as the control plane sends them in JSON.

`name_pattern` comes from operators and owners through the control plane, which checks it first; here it is bounded in
length and must compile.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field

from broker_engine.errors import BrokerError, ErrorCode

_PATTERN_LENGTH_MAX = 256
_OPTIONAL_NUMBERS = ("max_partitions_per_topic", "max_partitions", "default_partitions")
_NAMES = frozenset({"name_pattern", "auto_create", *_OPTIONAL_NUMBERS})


@dataclass(frozen=True, slots=True)
class TenantPolicy:
    name_pattern: str | None = None
    max_partitions_per_topic: int | None = None
    max_partitions: int | None = None
    """All topics of the tenant together."""
    auto_create: bool = True
    """Whether topics may be created on first use, where the broker allows it at all."""
    default_partitions: int | None = None
    """Partitions of a topic that names no number; None = the broker's `num.partitions`."""
    _pattern: re.Pattern[str] | None = field(default=None, repr=False, compare=False)

    def check_name(self, name: str) -> None:
        if self._pattern is not None and self._pattern.fullmatch(name) is None:
            raise violation("name_pattern", f"topic name '{name}' does not match {self.name_pattern}")

    def check_partitions(self, partition_count: int, tenant_total: int) -> None:
        """`tenant_total` counts all partitions of the tenant as they would be afterwards."""
        limit = self.max_partitions_per_topic
        if limit is not None and partition_count > limit:
            raise violation("max_partitions_per_topic", f"{partition_count} partitions, at most {limit} per topic")
        limit = self.max_partitions
        if limit is not None and tenant_total > limit:
            raise violation("max_partitions", f"{tenant_total} partitions in all topics together, at most {limit}")


NO_RULES = TenantPolicy()
"""Root's policy, and that of a tenant that the control plane has not named yet."""


def violation(rule: str, text: str) -> BrokerError:
    return BrokerError(ErrorCode.POLICY_VIOLATION, f"Policy rule {rule}: {text}")


def parse_policy(policy_json: str) -> TenantPolicy:
    """INVALID_REQUEST says what is wrong. A rule that we do not know is refused: it would silently not be kept."""
    try:
        values = json.loads(policy_json)
    except (ValueError, RecursionError):
        raise _refuse("policy_json is not JSON") from None
    if not isinstance(values, dict):
        raise _refuse("policy_json is not an object")
    for name in values:
        if name not in _NAMES:
            raise _refuse(f"policy rule '{name}' is not known")
    numbers = {name: _number(name, values.get(name)) for name in _OPTIONAL_NUMBERS}
    pattern_text = values.get("name_pattern")
    return TenantPolicy(
        name_pattern=pattern_text,
        auto_create=_flag("auto_create", values.get("auto_create", True)),
        _pattern=None if pattern_text is None else _compile(pattern_text),
        **numbers,
    )


def _number(name: str, value: object) -> int | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not 0 < value < 1 << 31:
        raise _refuse(f"policy rule {name} must be a whole number above 0, or null")
    return value


def _flag(name: str, value: object) -> bool:
    if not isinstance(value, bool):
        raise _refuse(f"policy rule {name} must be true or false")
    return value


def _compile(pattern: object) -> re.Pattern[str]:
    if not isinstance(pattern, str) or len(pattern) > _PATTERN_LENGTH_MAX:
        raise _refuse(f"policy rule name_pattern must be a text of at most {_PATTERN_LENGTH_MAX} characters, or null")
    try:
        return re.compile(pattern, re.ASCII)
    except (re.error, RecursionError, OverflowError):
        raise _refuse("policy rule name_pattern is not a regular expression") from None


def _refuse(text: str) -> BrokerError:
    return BrokerError(ErrorCode.INVALID_REQUEST, text)
