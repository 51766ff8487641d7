"""From threads and forks to the async client's loop."""

from __future__ import annotations

import asyncio
import multiprocessing
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from control_plane.engine.bridge import Bridge, bridge
from control_plane.engine.highwater import HighwaterEngine
from control_plane.engine.interface import EngineUnavailable, TopicName
from control_plane.environment import load
from tests.ports import own_port


async def loop_thread_name() -> str:
    await asyncio.sleep(0)
    return threading.current_thread().name


def test_all_threads_share_one_loop_thread() -> None:
    with ThreadPoolExecutor(4) as pool:
        names = set(pool.map(lambda _: bridge.run(loop_thread_name(), 5), range(8)))
    assert names == {"engine-bridge"}


def test_a_call_that_takes_too_long_is_given_up_and_cancelled() -> None:
    cancelled = threading.Event()

    async def never() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    with pytest.raises(EngineUnavailable, match="did not answer within"):
        Bridge().run(never(), 0.05)
    assert cancelled.wait(5)


def test_an_error_of_the_coroutine_reaches_the_caller() -> None:
    async def fail() -> None:
        raise LookupError("inside")

    with pytest.raises(LookupError, match="inside"):
        bridge.run(fail(), 5)


def _name_in_child(results: multiprocessing.SimpleQueue[str]) -> None:
    results.put(bridge.run(loop_thread_name(), 5))


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_worker_starts_a_loop_of_its_own() -> None:
    bridge.run(loop_thread_name(), 5)  # the parent's thread runs; the child must not wait for it
    context = multiprocessing.get_context("fork")
    results = context.SimpleQueue()
    child = context.Process(target=_name_in_child, args=(results,))
    child.start()
    child.join(20)
    assert child.exitcode == 0
    assert results.get() == "engine-bridge"


def test_an_engine_that_nobody_started_is_away_and_its_address_stays_in_our_log(tmp_path: Path) -> None:
    port = own_port()
    environment = load(
        {
            "HIGHWATER_HOME": str(tmp_path),
            "HIGHWATER_ENGINE_BOOTSTRAP": f"127.0.0.1:{port}",
            "HIGHWATER_CLUSTER_SECRET": "x" * 43,
        }
    )
    with pytest.raises(EngineUnavailable) as caught:
        HighwaterEngine(environment).describe_topic(TopicName("demo", "orders"), timeout_s=5)
    assert str(port) not in str(caught.value)


def test_a_missing_cluster_secret_means_that_the_engine_is_not_there_yet(tmp_path: Path) -> None:
    environment = load({"HIGHWATER_HOME": str(tmp_path)})
    with pytest.raises(EngineUnavailable, match="cluster-secret"):
        HighwaterEngine(environment).inventory(timeout_s=5)
