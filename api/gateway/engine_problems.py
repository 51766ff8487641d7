"""The engine's errors as problem documents, mostly in our words: the engine's own texts may name hosts and ports."""

from __future__ import annotations

from api import problems
from api.problems import Problem
from broker_engine.client import BufferExhausted, ErrorCode, KafkaError, OffsetOutOfRange

NOT_THERE = frozenset(
    {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID, ErrorCode.INVALID_TOPIC_EXCEPTION}
)
NOT_ALLOWED = frozenset({ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.CLUSTER_AUTHORIZATION_FAILED})
TOO_LARGE = frozenset({ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE})
REFUSED = frozenset(
    {ErrorCode.INVALID_TIMESTAMP, ErrorCode.INVALID_RECORD, ErrorCode.POLICY_VIOLATION, ErrorCode.INVALID_CONFIG}
)
TOO_FEW_REPLICAS = frozenset({ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND})


def too_large(detail: str) -> Problem:
    return Problem(slug="too-large", title="Too large", status=413, error_code=41301, detail=detail)


def busy(detail: str) -> Problem:
    return Problem(
        slug="busy", title="Too much at once", status=503, error_code=50301, detail=detail, headers={"Retry-After": "1"}
    )


def out_of_range(error: OffsetOutOfRange) -> Problem:
    valid = {"log_start_offset": str(error.log_start_offset), "high_watermark": str(error.high_watermark)}
    return Problem(
        slug="offset-out-of-range",
        title="No such offset",
        status=416,
        error_code=41601,
        detail=f"The partition holds offsets {error.log_start_offset} to {error.high_watermark}",
        extra=valid,
    )


def problem_of_engine_error(error: KafkaError, topic: str) -> Problem:
    if isinstance(error, OffsetOutOfRange):
        return out_of_range(error)
    if isinstance(error, BufferExhausted):
        return busy("Records arrive faster than the engine takes them: try again in a moment")
    if error.code in NOT_THERE:
        return problems.not_found(f"There is no such topic or partition: {topic!r}", error_code=40401)
    if error.code in NOT_ALLOWED:
        return problems.forbidden(f"You may not do this with the topic {topic!r}")
    if error.code in TOO_LARGE:
        return too_large(f"The record is larger than the topic {topic!r} takes (max.message.bytes)")
    if error.code in REFUSED:
        return problems.refused_by_engine(f"{error.code.name}: {error.message}")
    if error.code in TOO_FEW_REPLICAS:
        return problems.engine_unavailable("Too few replicas are in sync to keep the record safe")
    return _of_the_rest(error)


def _of_the_rest(error: KafkaError) -> Problem:
    if error.retriable or error.code in (ErrorCode.NETWORK_EXCEPTION, ErrorCode.SASL_AUTHENTICATION_FAILED):
        return problems.engine_unavailable(f"The engine cannot serve this now ({error.code.name})")
    return Problem(
        slug="engine-error",
        title="The engine failed",
        status=502,
        error_code=50002,
        detail=f"The engine answered {error.code.name}",
    )
