"""Knobs: one row per config, from which parsing, checks, defaults, documentation and DescribeConfigs all come."""

from __future__ import annotations

import dataclasses
import difflib
import math
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any

ConfigValue = bool | int | float | str | tuple[str, ...] | None
Validator = Callable[[Any], str | None]
"""Gives the reason why a parsed value is refused, or None."""


class ConfigError(ValueError):
    """A config that the broker does not start with; the text is for the person who wrote it."""


class ConfigType(IntEnum):
    """Kafka's numbers, as DescribeConfigs v3+ sends them."""

    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7
    CLASS = 8
    PASSWORD = 9


class ConfigSource(IntEnum):
    """Where a value in force comes from, by Kafka's numbers."""

    DYNAMIC_TOPIC_CONFIG = 1
    DYNAMIC_BROKER_CONFIG = 2
    DYNAMIC_DEFAULT_BROKER_CONFIG = 3
    STATIC_BROKER_CONFIG = 4
    DEFAULT_CONFIG = 5
    DYNAMIC_GROUP_CONFIG = 8


@dataclass(frozen=True, slots=True)
class BrokerDefault:
    """A broker config that is the default of a topic config; `factor` turns its unit into the topic's."""

    name: str
    factor: int = 1


@dataclass(frozen=True, slots=True)
class Knob:
    name: str
    type: ConfigType
    default: ConfigValue
    doc: str
    validator: Validator | None = None
    dynamic: bool = False
    broker_defaults: tuple[BrokerDefault, ...] = ()
    """Topic configs only, in order of precedence."""

    @property
    def is_sensitive(self) -> bool:
        return self.type is ConfigType.PASSWORD

    @property
    def attribute(self) -> str:
        return self.name.replace(".", "_")

    def parse(self, text: str) -> ConfigValue:
        """The typed value; ValueError with Kafka's kind of sentence where it is none."""
        try:
            value = _PARSERS[self.type](text.strip())
        except ValueError as error:
            raise ValueError(f"Invalid value {self._shown(text)} for configuration {self.name}: {error}") from None
        problem = self.validator(value) if self.validator is not None else None
        if problem is not None:
            raise ValueError(f"Invalid value {self._shown(text)} for configuration {self.name}: {problem}")
        return value

    def _shown(self, text: str) -> str:
        return "[hidden]" if self.is_sensitive else text


def knob(
    name: str,
    type: ConfigType,
    default: ConfigValue,
    doc: str,
    validator: Validator | None = None,
    *,
    dynamic: bool = False,
    broker_defaults: tuple[BrokerDefault, ...] = (),
) -> Any:
    """A dataclass field that is a row of the registry; its attribute is the name with underscores for dots."""
    row = Knob(name, type, default, doc, validator, dynamic, broker_defaults)
    return field(default=default, metadata={"knob": row})


def knobs_of(config_class: type) -> dict[str, Knob]:
    rows = [f.metadata["knob"] for f in dataclasses.fields(config_class) if "knob" in f.metadata]
    return {row.name: row for row in rows}


# --- validators


def at_least(minimum: float) -> Validator:
    return lambda value: None if value >= minimum else f"Value must be at least {minimum}"


def between(minimum: float, maximum: float) -> Validator:
    return lambda value: None if minimum <= value <= maximum else f"Value must be between {minimum} and {maximum}"


def one_of(*allowed: str) -> Validator:
    return lambda value: None if value in allowed else f"String must be one of: {', '.join(allowed)}"


def each_of(*allowed: str) -> Validator:
    return lambda values: None if set(values) <= set(allowed) else f"Values must be among: {', '.join(allowed)}"


def either(special: int, validator: Validator) -> Validator:
    return lambda value: None if value == special else validator(value)


# --- texts


def format_value(value: ConfigValue) -> str | None:
    """The text by which Kafka shows a value."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):
        return ",".join(value)
    return None if value is None else str(value)


def unknown_name_text(name: str, known: Iterable[str]) -> str:
    nearest = difflib.get_close_matches(name, list(known), n=1, cutoff=0.6)
    hint = f': did you mean "{nearest[0]}"?' if nearest else ""
    return f'unknown config "{name}"{hint}'


def check_known(name: str, known: Collection[str]) -> None:
    if name not in known:
        raise ConfigError(unknown_name_text(name, known))


# --- parsing


def _parse_bool(text: str) -> bool:
    lowered = text.lower()
    if lowered not in ("true", "false"):
        raise ValueError("Expected value to be either true or false")
    return lowered == "true"


def _parse_whole(bits: int, type_name: str) -> Callable[[str], int]:
    limit = 1 << (bits - 1)

    def parse(text: str) -> int:
        # int() alone would also take "1_000", "٣" and 10,000 digits, which Java does not.
        digits = text[1:] if text[:1] in ("+", "-") else text
        if not (digits.isascii() and digits.isdigit() and len(digits) <= 20):
            raise ValueError(f"Not a number of type {type_name}")
        value = int(text)
        if not -limit <= value < limit:
            raise ValueError(f"Not a number of type {type_name}")
        return value

    return parse


def _parse_double(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        raise ValueError("Not a number of type DOUBLE") from None
    if not math.isfinite(value) or "_" in text:
        raise ValueError("Not a number of type DOUBLE")
    return value


def _parse_list(text: str) -> tuple[str, ...]:
    items = [item.strip() for item in text.split(",")] if text else []
    return tuple(dict.fromkeys(items))


_PARSERS: dict[ConfigType, Callable[[str], ConfigValue]] = {
    ConfigType.BOOLEAN: _parse_bool,
    ConfigType.STRING: str,
    ConfigType.INT: _parse_whole(32, "INT"),
    ConfigType.SHORT: _parse_whole(16, "SHORT"),
    ConfigType.LONG: _parse_whole(64, "LONG"),
    ConfigType.DOUBLE: _parse_double,
    ConfigType.LIST: _parse_list,
    ConfigType.CLASS: str,
    ConfigType.PASSWORD: str,
}
