"""A custom assignor for clients in Python: to each member what it wishes for, uneven as no client's own would do it."""

from __future__ import annotations

WISHES = ("5,0", "1,3,4", "2")
NAME = "wish"


def indexes(wish: bytes) -> list[int]:
    return [int(word) for word in wish.decode().split(",")]
