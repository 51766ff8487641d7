"""Groups from a browser: real consumers of librdkafka, their lag, who owns what, a join on the timeline, and a reset
that is read before it is done.
"""

from __future__ import annotations

import queue
import re
import threading
import time
from collections.abc import Iterator

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions
from playwright.sync_api import Page, expect

from tests.browser.conftest import OpenPage, sign_in
from tests.browser.stack import Stack, send_records
from tests.browser.steps import create_topic, expect_no_sideways_scroll
from tests.browser.test_looks import PHONE

TELEMETRY_WITHIN_MS = 30_000
TOPIC, GROUP = "groups.orders", "order-readers"


class Reader(threading.Thread):
    """A member that reads on and on, and commits only what it is told to."""

    def __init__(self, stack: Stack, name: str, topic: str = TOPIC, group: str = GROUP) -> None:
        super().__init__(daemon=True)
        self._topic = topic
        self._consumer = Consumer(
            {
                "bootstrap.servers": stack.demo_bootstrap,
                "group.id": group,
                "client.id": name,
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
                "session.timeout.ms": 6000,
                "topic.metadata.refresh.interval.ms": 1000,
            }
        )
        self._consumer.subscribe([topic])
        self._is_over = threading.Event()
        self._to_commit: queue.SimpleQueue[list[TopicPartition]] = queue.SimpleQueue()
        self.start()

    def run(self) -> None:
        while not self._is_over.is_set():
            self._consumer.poll(0.1)
            if not self._to_commit.empty():  # by this thread alone: another one's commit waits for ever beside a poll
                self._consumer.commit(offsets=self._to_commit.get(), asynchronous=False)
        self._consumer.close()

    def commit(self, offsets: dict[int, int]) -> None:
        wanted = [TopicPartition(self._topic, partition, offset) for partition, offset in offsets.items()]
        self._to_commit.put(wanted)

    def stop(self) -> None:
        self._is_over.set()
        self.join(20)


@pytest.fixture
def readers(stack: Stack) -> Iterator[list[Reader]]:
    started: list[Reader] = []
    yield started
    for reader in started:
        reader.stop()


def lag(page: Page, partition: int) -> str:
    return page.get_by_test_id(f"lag-{TOPIC}-{partition}").inner_text()


def test_a_group_is_watched_and_its_offsets_are_reset(page: Page, stack: Stack, readers: list[Reader]) -> None:
    create_topic(page, TOPIC, partitions=2)
    send_records(stack.demo_bootstrap, TOPIC, [f"order {number}".encode() for number in range(400)])
    readers.append(Reader(stack, "first"))

    page.get_by_role("link", name="Groups", exact=True).first.click()
    page.get_by_role("link", name=GROUP).click(timeout=TELEMETRY_WITHIN_MS)
    expect(page.get_by_text("Stable", exact=True)).to_be_visible(timeout=TELEMETRY_WITHIN_MS)
    expect(page.locator("[data-fact=Coordinator]")).to_contain_text(re.compile(r"broker [123] __consumer_offsets-\d+"))
    expect(page.locator("[data-event=joined]")).to_contain_text("first joined")
    expect(page.locator("[data-event=rebalanced]").first).to_contain_text("settled in")

    readers.append(Reader(stack, "second"))
    expect(page.locator("[data-member]")).to_have_count(2, timeout=TELEMETRY_WITHIN_MS)
    expect(page.locator("[data-event=joined]").first).to_contain_text("second joined")
    expect(page.locator("[data-member]").first).to_contain_text(TOPIC, timeout=TELEMETRY_WITHIN_MS)

    for reader in readers:
        reader.stop()
    expect(page.get_by_text("Empty", exact=True)).to_be_visible(timeout=TELEMETRY_WITHIN_MS)
    reset(page, "latest")
    expect(page.get_by_test_id(f"lag-{TOPIC}-0")).to_have_text("0", timeout=TELEMETRY_WITHIN_MS)
    reset(page, "shift", shift="-25")
    expect(page.get_by_test_id(f"lag-{TOPIC}-0")).to_have_text("25", timeout=TELEMETRY_WITHIN_MS)
    assert lag(page, 1) == "25"

    page.goto(f"/topics/{TOPIC}/groups")
    expect(page.locator(f"[data-group='{GROUP}']")).to_contain_text("50", timeout=TELEMETRY_WITHIN_MS)


def reset(page: Page, to: str, shift: str = "") -> None:
    """As a careful person does it: chosen, read, typed, done."""
    page.get_by_role("button", name="Reset offsets…").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("To", exact=True).select_option(to)
    if shift:
        dialog.get_by_label("Records").fill(shift)
    else:  # it has committed nothing yet: it is told where to begin
        dialog.get_by_label("Topic").select_option(TOPIC)
    dialog.get_by_role("button", name="See what would happen").click()
    expect(dialog.locator("[data-step]")).to_have_count(2)
    expect(dialog.get_by_text("Nothing has been changed yet")).to_be_visible()
    expect(dialog.get_by_text("kafka-consumer-groups --bootstrap-server")).to_be_visible()
    if shift:
        expect(dialog.get_by_test_id("reset-sum")).to_contain_text("50 records would be read again")
        expect(dialog.locator(f"[data-step='{TOPIC}-0']")).to_contain_text(re.compile("order [0-9]+"))
    button = dialog.get_by_role("button", name="Set 2 offsets")
    expect(button).to_be_disabled()
    dialog.get_by_label(f"Type {GROUP} to confirm").fill(GROUP)
    button.click()
    expect(dialog).to_have_count(0)


def test_commits_an_open_transaction_and_a_topic_that_grew_are_seen(
    page: Page, stack: Stack, readers: list[Reader]
) -> None:
    topic = "groups.grown"
    create_topic(page, topic, partitions=1)
    send_records(stack.demo_bootstrap, topic, [b"order"] * 40)
    readers.append(Reader(stack, "reader", topic, "growers"))
    page.goto("/groups/growers")
    row = page.locator(f"[data-place='{topic}-0']")

    expect(row).to_contain_text("reader", timeout=TELEMETRY_WITHIN_MS)
    readers[0].commit({0: 10})
    expect(row).to_contain_text("no commits lately", timeout=TELEMETRY_WITHIN_MS)
    readers[0].commit({0: 20})
    expect(row).to_contain_text(re.compile(r"\d commits?/min"), timeout=TELEMETRY_WITHIN_MS)
    expect(page.locator("[data-fact='Commit rate']")).to_contain_text(re.compile(r"\d commits?/min"))

    producer = Producer({"bootstrap.servers": stack.demo_bootstrap, "transactional.id": "slow"})
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(topic, b"not yet")
    producer.flush(30)
    expect(row).to_contain_text("an open transaction holds 1 record back", timeout=TELEMETRY_WITHIN_MS)
    producer.abort_transaction(30)
    expect(row).not_to_contain_text("open transaction", timeout=TELEMETRY_WITHIN_MS)

    grow(stack, topic, 3)
    changed = page.locator("[data-event=partitions_changed]")
    expect(changed).to_contain_text(f"{topic} grew from 1 to 3 partitions", timeout=TELEMETRY_WITHIN_MS)
    expect(page.locator("[data-member]")).to_contain_text(re.compile(f"{topic} 0.2"), timeout=TELEMETRY_WITHIN_MS)


def grow(stack: Stack, topic: str, partition_count: int) -> None:
    admin = AdminClient({"bootstrap.servers": stack.demo_bootstrap})
    admin.create_partitions([NewPartitions(topic, partition_count)])[topic].result(30)


def test_a_group_with_members_is_not_reset(page: Page, stack: Stack, readers: list[Reader]) -> None:
    create_topic(page, "groups.busy", partitions=1)
    consumer = Consumer(
        {"bootstrap.servers": stack.demo_bootstrap, "group.id": "busy", "auto.offset.reset": "earliest"}
    )
    consumer.subscribe(["groups.busy"])
    deadline_s = time.monotonic() + 30
    while not consumer.assignment() and time.monotonic() < deadline_s:
        consumer.poll(0.2)
    try:
        page.goto("/groups/busy")
        page.get_by_role("button", name="Reset offsets…").click(timeout=TELEMETRY_WITHIN_MS)
        dialog = page.get_by_role("dialog")
        dialog.get_by_label("Topic").select_option("groups.busy")
        dialog.get_by_role("button", name="See what would happen").click()
        expect(dialog.get_by_role("alert")).to_contain_text("1 member is in the group")
        dialog.get_by_label("Type busy to confirm").fill("busy")
        expect(dialog.get_by_role("button", name="Set 1 offset")).to_be_disabled()
    finally:
        consumer.close()


@pytest.mark.parametrize("path", ["/groups", "/groups/busy", "/topics/groups.busy/groups"])
def test_the_pages_fit_a_phone(open_page: OpenPage, stack: Stack, path: str) -> None:
    page = sign_in(open_page(viewport=PHONE), stack)
    page.goto(path)
    page.get_by_role("heading", level=1).wait_for()
    page.wait_for_load_state("load")
    expect_no_sideways_scroll(page)
