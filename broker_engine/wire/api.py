"""What is known of an API beside its fields: key, versions, which version is flexible, request and response classes."""

from __future__ import annotations

from dataclasses import dataclass

from broker_engine.wire.schema import Message
from broker_engine.wire.versions import NEWEST

API_VERSIONS_KEY = 18


@dataclass(frozen=True, slots=True)
class ApiSpec:
    key: int
    name: str
    min_version: int
    max_version: int
    flexible_since: int | None
    request: type[Message]
    response: type[Message]
    is_internal: bool = False  # ours: only on internal listeners, never advertised to clients
    is_between_brokers: bool = False  # Kafka's, but only on the controller's listener

    def is_flexible(self, version: int) -> bool:
        return self.flexible_since is not None and version >= self.flexible_since

    def has_version(self, version: int) -> bool:
        return self.min_version <= version <= self.max_version


def declare(
    key: int,
    name: str,
    request: type[Message],
    response: type[Message],
    *,
    max_version: int | None = None,
    is_internal: bool = False,
    is_between_brokers: bool = False,
) -> ApiSpec:
    """Bind a request and a response class to an API key; versions and flexibility are those of the request class."""
    versions, flexible = request.__wire_versions__, request.__wire_flexible__
    since = flexible.first if flexible.last == NEWEST else None
    last = versions.last if max_version is None else max_version
    spec = ApiSpec(key, name, versions.first, last, since, request, response, is_internal, is_between_brokers)
    request.API = spec
    response.API = spec
    return spec
