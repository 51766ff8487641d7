"""What a handler file declares: its messages, how it is scoped to a tenant, how it answers, how it refuses."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, Generic, TypeVar, Union

from broker_engine.errors import BrokerError
from broker_engine.wire.api import ApiSpec
from broker_engine.wire.schema import Message

if TYPE_CHECKING:
    from broker_engine.security.principal import Principal
    from broker_engine.server.broker import Broker
    from broker_engine.server.session import Session


class Scope(Enum):
    """How an API is kept inside its caller's tenant. An API key without a handler, and so without a scope, is
    refused.
    """

    NAMELESS = "names nothing that belongs to a tenant"
    TOPICS = "every topic name and topic id in it is looked up among the caller's own"
    GROUPS = "every group name in it is the caller's own, and so is every topic"
    TRANSACTIONS = "every transactional id in it is the caller's own, and so is every group and topic"
    PRIVATE = "for the control plane, on internal listeners only"
    BROKERS = "from node to node, on the controller's listener only"


@dataclass(frozen=True, slots=True)
class Call:
    """Who asks, in which version, and the broker that answers."""

    broker: Broker
    session: Session
    principal: Principal
    version: int
    client_id: str | None

    @property
    def tenant(self) -> str:
        return self.principal.tenant


Req = TypeVar("Req", bound=Message)
Resp = TypeVar("Resp", bound=Message)


@dataclass(frozen=True, slots=True)
class Reply(Generic[Resp]):
    """An answer after which something happens to the connection, or no answer at all."""

    response: Resp | None
    is_last: bool = False


@dataclass(frozen=True, slots=True)
class Held(Generic[Resp]):
    """An answer that needs time, and holds up the connection's next request though the API as such does not: until it
    is there, or until there is something to wait for that holds up nobody.
    """

    answer: Awaitable[Resp | Reply[Resp] | Awaitable[Resp | Reply[Resp]]]


Answer = Union[Resp, Reply[Resp]]  # noqa: UP007 - a generic alias has to begin with a type, not with a variable


@dataclass(frozen=True, slots=True)
class Api(Generic[Req, Resp]):
    request: type[Req]
    scope: Scope
    handle: Callable[[Req, Call], Answer[Resp] | Held[Resp] | Awaitable[Answer[Resp]]]
    """Decides and answers. An awaitable where the answer needs time: it holds up the connection's next request."""
    refuse: Callable[[Req, BrokerError], Resp]
    """The whole request is refused with one code: the answer has as many entries as the request asks for."""
    max_version: int | None = None
    """None: the codec's own."""
    advertised_min_version: int | None = None
    is_before_sign_in: bool = False
    """Allowed to everybody: the way to sign in."""
    is_before_joining: bool = False
    """From node to node, and answered also by one that is not in a cluster yet."""
    is_next_allowed: bool = False
    """The next request may begin while this one waits for its acknowledgement."""
    is_cancelled_with_connection: bool = False
    is_answered: Callable[[Req], bool] | None = None
    """Whether the client waits for an answer at all; where it does not, a refusal closes the connection."""
    is_for_controller: bool = False
    """Carried out by the controller: another node passes the request on to it (server/forwarding.py)."""

    @property
    def spec(self) -> ApiSpec:
        return self.request.API

    @property
    def key(self) -> int:
        return self.spec.key

    def has_version(self, version: int) -> bool:
        return self.spec.min_version <= version <= self._last_version

    @property
    def advertised(self) -> tuple[int, int]:
        first = self.spec.min_version if self.advertised_min_version is None else self.advertised_min_version
        return first, self._last_version

    @property
    def _last_version(self) -> int:
        return self.spec.max_version if self.max_version is None else self.max_version


AnyApi = Api[Any, Any]
