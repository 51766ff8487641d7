"""The one message of SASL PLAIN (RFC 4616): authorization id, NUL, user, NUL, password."""

from __future__ import annotations

from dataclasses import dataclass, field

AUTHORIZATION_ID_BYTES_MAX = 512
USERNAME_BYTES_MAX = 256
PASSWORD_BYTES_MAX = 1024
MESSAGE_BYTES_MAX = AUTHORIZATION_ID_BYTES_MAX + USERNAME_BYTES_MAX + PASSWORD_BYTES_MAX + 2


class PlainError(ValueError):
    """The message is not PLAIN, or a part is too long. The text is for our log: clients get the one fixed refusal."""


@dataclass(frozen=True, slots=True)
class PlainMessage:
    authorization_id: str | None
    username: str
    password: str = field(repr=False)


def parse_plain(message: bytes | memoryview) -> PlainMessage:
    parts = _split(message)
    for part, what, bytes_max in zip(
        parts,
        ("authorization id", "username", "password"),
        (AUTHORIZATION_ID_BYTES_MAX, USERNAME_BYTES_MAX, PASSWORD_BYTES_MAX),
        strict=True,
    ):
        if len(part) > bytes_max:
            raise PlainError(f"{what} is longer than {bytes_max} bytes")
    authorization_id, username, password = (_text(part) for part in parts)
    if not username or not password:
        raise PlainError("username or password is empty")
    # aiokafka and kafka-python repeat the user's name there; Kafka takes that for no authorization id at all.
    return PlainMessage(None if authorization_id in ("", username) else authorization_id, username, password)


def encode_plain(username: str, password: str, authorization_id: str | None = None) -> bytes:
    return f"{authorization_id or ''}\0{username}\0{password}".encode()


def _split(message: bytes | memoryview) -> list[bytes]:
    if len(message) > MESSAGE_BYTES_MAX:
        raise PlainError(f"message is longer than {MESSAGE_BYTES_MAX} bytes")
    parts = bytes(message).split(b"\0")
    if len(parts) != 3:
        raise PlainError(f"expected 3 parts divided by NUL, got {len(parts)}")
    return parts


def _text(part: bytes) -> str:
    try:
        return part.decode("utf-8")
    except UnicodeDecodeError:
        raise PlainError("not UTF-8") from None
