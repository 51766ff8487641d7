"""What the client raises. Everything is a KafkaError with Kafka's code, so that callers may match on `.code` alone."""

# ruff: noqa: N818 - the names say what happened; "Error" on each would say nothing more
from __future__ import annotations

from broker_engine.errors import ErrorCode


class KafkaError(Exception):
    """An answer or a failure with Kafka's error code and a text that says what to do."""

    def __init__(self, code: ErrorCode, message: str = "") -> None:
        super().__init__(f"{code.name}: {message}" if message else code.name)
        self.code = code
        self.message = message

    @property
    def retriable(self) -> bool:
        """True where the same call may succeed a moment later."""
        return self.code.is_retriable


class ConnectionFailed(KafkaError):
    """No connection, or it broke while an answer was awaited. Names host and port and what to check."""

    def __init__(self, address: str, reason: str) -> None:
        super().__init__(ErrorCode.NETWORK_EXCEPTION, f"{address}: {reason}")
        self.address = address
        self.reason = reason


class RequestTimedOut(KafkaError):
    def __init__(self, message: str) -> None:
        super().__init__(ErrorCode.REQUEST_TIMED_OUT, message)


class AuthenticationFailed(KafkaError):
    """The broker refused the user name, the password or the authorization id: asking again does not help."""

    def __init__(self, code: ErrorCode, message: str) -> None:
        super().__init__(code, message)


class UnsupportedVersion(KafkaError):
    """The broker (or this listener of it) does not offer the API in any version that the client speaks."""

    def __init__(self, message: str) -> None:
        super().__init__(ErrorCode.UNSUPPORTED_VERSION, message)


class UnknownTopic(KafkaError):
    def __init__(self, message: str) -> None:
        super().__init__(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, message)


class BufferExhausted(KafkaError):
    """The producer's buffer stayed full for `max_block_ms` (or, without waiting, is full now)."""

    def __init__(self, message: str) -> None:
        super().__init__(ErrorCode.REQUEST_TIMED_OUT, message)


class DeliveryTimedOut(KafkaError):
    """A record was not acknowledged within `delivery_timeout_ms`. It may or may not be in the log."""

    def __init__(self, message: str) -> None:
        super().__init__(ErrorCode.REQUEST_TIMED_OUT, message)


class OffsetOutOfRange(KafkaError):
    """The offset is not in the log; `log_start_offset` and `high_watermark` tell what is (-1: could not be asked)."""

    def __init__(self, message: str, *, log_start_offset: int = -1, high_watermark: int = -1) -> None:
        super().__init__(ErrorCode.OFFSET_OUT_OF_RANGE, message)
        self.log_start_offset = log_start_offset
        self.high_watermark = high_watermark


class ProducerFenced(KafkaError):
    """Another producer has the transactional id now, or the coordinator ended the transaction: make a new one."""

    @property
    def retriable(self) -> bool:
        return False


class AbortRequired(KafkaError):
    """The transaction cannot be committed any more; `abort()` and begin again. The code says what went wrong."""

    @property
    def retriable(self) -> bool:
        return False


class ClientClosed(KafkaError):
    """The client, producer or consumer was closed while the call was under way, or before it."""

    def __init__(self, message: str) -> None:
        super().__init__(ErrorCode.NETWORK_EXCEPTION, message)

    @property
    def retriable(self) -> bool:
        return False


def error_for(code: int, message: str | None, context: str) -> KafkaError:
    """The exception for an error code of an answer; `context` says what was asked, in the caller's words."""
    known = known_code(code)
    return KafkaError(known, f"{context}: {message}" if message else context)


def known_code(code: int) -> ErrorCode:
    """A newer broker may use codes that we do not know: they count as an unknown server error."""
    try:
        return ErrorCode(code)
    except ValueError:
        return ErrorCode.UNKNOWN_SERVER_ERROR
