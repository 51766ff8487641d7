"""Frames out of bytes that arrive in any pieces; bad lengths are refused as soon as they are known."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker_engine.server.framer import Framer, FrameRefused

LIMIT = 1000


def framed(*bodies: bytes) -> bytes:
    return b"".join(len(body).to_bytes(4, "big") + body for body in bodies)


@given(st.lists(st.binary(min_size=1, max_size=50), max_size=10), st.lists(st.integers(1, 40), max_size=30))
def test_frames_come_out_whole_and_in_order_however_they_are_cut(bodies: list[bytes], cuts: list[int]) -> None:
    framer, got, data = Framer(), [], memoryview(framed(*bodies))
    for size in [*cuts, len(data)]:
        framer.feed(data[:size])
        data = data[size:]
        while (frame := framer.next_frame(LIMIT)) is not None:
            got.append(frame)
    assert [bytes(frame) for frame in got] == bodies
    assert not framer.is_inside_frame


@given(
    st.lists(st.binary(min_size=1, max_size=50), max_size=10),
    st.lists(st.tuples(st.integers(1, 40), st.booleans()), max_size=40),
)
def test_frames_received_right_into_their_room_are_the_same(bodies: list[bytes], cuts: list[tuple[int, bool]]) -> None:
    framer, got, data = Framer(), [], memoryview(framed(*bodies))
    for size, is_in_room in [*cuts, (len(data), False)]:
        piece = data[:size]
        if is_in_room and framer.announced_bytes() is not None:
            room = framer.make_room()
            piece = room[: len(data[: min(size, len(room))])]
            piece[:] = data[: len(piece)]
        framer.feed(piece)
        data = data[len(piece) :]
        while (frame := framer.next_frame(LIMIT)) is not None:
            got.append(frame)
    assert [bytes(frame) for frame in got] == bodies
    assert not framer.is_inside_frame


def test_room_ends_with_the_frame_that_was_announced() -> None:
    framer = Framer()
    framer.feed(memoryview(framed(b"0123456789")[:7]))
    assert len(framer.make_room()) == 7


@pytest.mark.parametrize("length", [-1, 0, LIMIT + 1, 2**31 - 1, -(2**31)])
def test_a_bad_length_is_refused_before_its_body_comes(length: int) -> None:
    framer = Framer()
    framer.feed(memoryview(length.to_bytes(4, "big", signed=True)))
    with pytest.raises(FrameRefused):
        framer.next_frame(LIMIT)


def test_a_frame_stays_as_it_was_while_later_bytes_arrive() -> None:
    framer = Framer()
    framer.feed(memoryview(framed(b"first") + b"\x00\x00"))
    frame = framer.next_frame(LIMIT)
    framer.feed(memoryview(b"\x00\x06second"))
    assert frame == b"first"
    assert framer.next_frame(LIMIT) == b"second"


@given(bodies=st.lists(st.binary(min_size=1, max_size=50), min_size=1, max_size=10), data=st.data())
def test_frames_that_are_looked_at_ahead_are_handed_out_once(bodies: list[bytes], data: st.DataObject) -> None:
    framer, got = Framer(), []
    stream = framed(*bodies) + framed(b"not all of it")[:9]
    framer.feed(memoryview(stream))
    while (frame := framer.next_frame(LIMIT)) is not None:
        ahead = [bytes(each) for each in framer.following(LIMIT)]
        taken = data.draw(st.integers(0, len(ahead)))
        framer.skip(taken)
        got += [bytes(frame), *ahead[:taken]]
    assert got == bodies
    assert framer.buffered_bytes == 9


@pytest.mark.parametrize("length", [-1, 0, 11, 2**31 - 1])
def test_looking_ahead_ends_before_a_frame_that_is_too_large_or_senseless(length: int) -> None:
    framer = Framer()
    framer.feed(memoryview(framed(b"first", b"second") + length.to_bytes(4, "big", signed=True) + b"x" * 20))
    assert framer.next_frame(LIMIT) == b"first"
    assert [bytes(each) for each in framer.following(10)] == [b"second"]
