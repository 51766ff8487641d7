"""Serializers that take what the contract says and nothing else.

DRF's own fields are lenient ("3" is an integer, 5 is text, unknown names are dropped). Here a wrong type and an unknown
name are refused, each by its field.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rest_framework import serializers

CONFIG_VALUE_LENGTH_MAX = 4096


def is_storable(text: str) -> bool:
    """JSON can spell what no database takes: zero bytes and lone surrogates."""
    return "\0" not in text and not any("\ud800" <= character <= "\udfff" for character in text)


class StrictSerializer(serializers.Serializer):
    def to_internal_value(self, data: Any) -> Any:
        if not isinstance(data, Mapping):
            raise serializers.ValidationError({"non_field_errors": ["The body must be a JSON object"]})
        writable = [name for name, field in self.fields.items() if not field.read_only]
        unknown = {name: [f"Unknown field; known are {', '.join(writable)}"] for name in data if name not in writable}
        if unknown:
            raise serializers.ValidationError(unknown)
        return super().to_internal_value(data)


class Text(serializers.CharField):
    def to_internal_value(self, data: Any) -> str:
        if not isinstance(data, str):
            raise serializers.ValidationError("This must be text")
        if not is_storable(data):
            raise serializers.ValidationError("This holds characters that are no text: a zero byte or half a pair")
        return super().to_internal_value(data)


class WholeNumber(serializers.IntegerField):
    def to_internal_value(self, data: Any) -> int:
        if not isinstance(data, int) or isinstance(data, bool):
            raise serializers.ValidationError("This must be a whole number")
        return super().to_internal_value(data)


class Configs(serializers.DictField):
    """Kafka's topic configs by their own names. Values become Kafka's text; null (in a change) unsets one."""

    child = serializers.CharField(allow_null=True)

    def __init__(self, *, allow_unset: bool = False, **options: Any) -> None:
        super().__init__(**options)
        self.allow_unset = allow_unset

    def to_internal_value(self, data: Any) -> dict[str, str | None]:
        if not isinstance(data, Mapping):
            raise serializers.ValidationError("This must be an object of config names and values")
        unstorable = [name for name in data if not is_storable(name)]
        if unstorable:
            raise serializers.ValidationError("A config's name holds characters that are no text")
        errors = {name: ["This must be text, a number or a truth value"] for name in data if not self._fits(data[name])}
        if errors:
            raise serializers.ValidationError(errors)
        return {name: None if value is None else _kafka_text(value) for name, value in data.items()}

    def _fits(self, value: Any) -> bool:
        if value is None:
            return self.allow_unset
        if isinstance(value, str):
            return len(value) <= CONFIG_VALUE_LENGTH_MAX and is_storable(value)
        return isinstance(value, int)


def _kafka_text(value: str | int) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


class Int64(serializers.CharField):
    """A 64-bit number going out: decimal text, because JavaScript rounds above 2**53."""

    def to_representation(self, value: Any) -> str:
        return str(value)
