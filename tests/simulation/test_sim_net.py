"""The simulated network: TCP's promises, and what faults do to them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from broker_engine.net.stream import Stream
from broker_engine.simulator.sim_loop import SimLoop
from broker_engine.simulator.sim_net import SimDialer, SimListener, SimNet

NEAR, FAR, PORT = "127.0.0.1", "127.0.0.2", 9092


class End:
    """One end of a connection, and what it saw."""

    def __init__(self, stream: Stream) -> None:
        self.stream = stream
        self.data = b""
        self.closed: list[Exception | None] = []
        self.drained_count = 0
        stream.start(self._on_bytes, self.closed.append, self._on_drained)

    def _on_bytes(self, view: memoryview) -> None:
        self.data += view

    def _on_drained(self) -> None:
        self.drained_count += 1


Story = Callable[[SimNet, End, End], Coroutine[Any, Any, None]]


def play(story: Story, *, seed: int = 1) -> None:
    loop = SimLoop(seed)
    net = SimNet(loop, str(seed))
    net.split_ratio = 0.3

    async def act() -> None:
        near, far = await _connect(loop, net)
        await story(net, near, far)

    loop.run_until(loop.spawn(loop.world, act(), "story"), deadline_s=1_000)
    assert not loop.unexpected


async def _connect(loop: SimLoop, net: SimNet) -> tuple[End, End]:
    listener = SimListener(net, loop.world, FAR, PORT)
    accepting = loop.create_task(listener.accept())
    near = End(await SimDialer(net, loop.world, NEAR).connect(FAR, PORT))
    return near, End(await accepting)


def test_bytes_arrive_in_order() -> None:
    async def story(net: SimNet, near: End, far: End) -> None:
        for number in range(200):
            near.stream.send([b"%d," % number, memoryview(b"x")])
        await asyncio.sleep(5)
        assert far.data == b"".join(b"%d,x" % number for number in range(200))
        near.stream.close()
        await asyncio.sleep(1)
        assert near.closed == far.closed == [None]

    play(story)


def test_a_cut_way_holds_bytes_back_and_the_other_way_works() -> None:
    async def story(net: SimNet, near: End, far: End) -> None:
        net.cut(NEAR, FAR)
        near.stream.send([b"there"])
        far.stream.send([b"back"])
        await asyncio.sleep(50)
        assert (far.data, near.data) == (b"", b"back")
        assert not near.closed
        net.heal(NEAR, FAR)
        await asyncio.sleep(1)
        assert far.data == b"there"

    play(story)


def test_nobody_connects_through_a_cut_and_nobody_to_where_nobody_listens() -> None:
    async def story(net: SimNet, near: End, far: End) -> None:
        dialer = SimDialer(net, net.loop.world, NEAR)
        with pytest.raises(ConnectionRefusedError):
            await dialer.connect(FAR, PORT + 1)
        net.cut(FAR, NEAR)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(5):
                await dialer.connect(FAR, PORT)

    play(story)


@pytest.mark.parametrize("seed", range(6))
def test_a_dead_process_is_heard_of_and_a_dead_machine_is_not(seed: int) -> None:
    async def killed(net: SimNet, near: End, far: End) -> None:
        net.drop_host(FAR, is_silent=False)
        await asyncio.sleep(1)
        assert len(near.closed) == 1
        assert not far.closed

    async def powerless(net: SimNet, near: End, far: End) -> None:
        net.drop_host(FAR, is_silent=True)
        near.stream.send([b"anybody there?"])
        await asyncio.sleep(100)
        assert not near.closed
        net.switch_on(FAR)
        await asyncio.sleep(1)
        assert isinstance(near.closed[0], ConnectionResetError)

    play(killed, seed=seed)
    play(powerless, seed=seed)


def test_a_reset_reaches_both_ends() -> None:
    async def story(net: SimNet, near: End, far: End) -> None:
        near.stream.send([b"lost on the way"])
        net.reset(net.connections(NEAR, FAR)[0])
        await asyncio.sleep(1)
        assert isinstance(near.closed[0], ConnectionResetError)
        assert isinstance(far.closed[0], ConnectionResetError)
        assert far.data == b""
        near.stream.send([b"nobody there"])

    play(story)


def test_a_slow_reader_fills_the_window() -> None:
    async def story(net: SimNet, near: End, far: End) -> None:
        net.window_bytes = 10
        far.stream.pause()
        near.stream.send([b"x" * 25])
        await asyncio.sleep(5)
        assert near.stream.write_buffer_bytes == 15
        far.stream.resume()
        await asyncio.sleep(5)
        assert (near.stream.write_buffer_bytes, near.drained_count, len(far.data)) == (0, 1, 25)

    play(story)
