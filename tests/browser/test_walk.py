"""The walk: sign in, create a topic, an ordinary Kafka client writes, the page shows it arriving, curl fetches the same
bytes, and a Spark job counts them into another topic. Nothing is faked.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.browser.stack import Stack, send_records, wait_until
from tests.browser.steps import (
    create_topic,
    expect_no_sideways_scroll,
    high_watermarks,
    received_count,
    verdict,
    wait_for_live_tail,
)
from tests.pipelines.spark import run_in_spark_environment

RECORD_COUNT = 1_000


@pytest.mark.spark
def test_a_thousand_records_walk_through_the_whole_house(page: Page, stack: Stack, tmp_path: Path) -> None:
    create_with_verdict(page, "walk.orders")
    wait_for_live_tail(page)

    values = [json.dumps({"id": 9_007_199_254_740_993 + n}).encode() for n in range(RECORD_COUNT)]
    send_records(stack.demo_bootstrap, "walk.orders", values)

    received_count(page, RECORD_COUNT)
    page.locator("button.record-row").first.click()
    expect(page.get_by_label("Record", exact=True)).to_contain_text("9007199254")
    page.get_by_role("link", name="Partitions").click()
    wait_until(lambda: sum(high_watermarks(page)) == RECORD_COUNT, 20, "high watermarks add up")
    expect(page.get_by_test_id("fact-records")).to_have_text("1,000")
    assert sorted(fetch_all(stack, "walk.orders", partition_count=3)) == sorted(value.decode() for value in values)
    create_topic(page, "walk.counts")
    count_with_spark(stack, "walk.orders", "walk.counts", tmp_path / "checkpoint")
    assert sum(newest_counts(stack, "walk.counts").values()) == RECORD_COUNT


def create_with_verdict(page: Page, name: str) -> None:
    page.get_by_role("button", name="Create topic").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Name").fill("no spaces, please!")
    verdict(page, "bad").wait_for()
    expect(dialog.get_by_role("button", name="Create topic")).to_be_disabled()
    dialog.get_by_label("Name").fill(name)
    dialog.get_by_label("Partitions").fill("3")
    verdict(page, "ok").wait_for()
    dialog.get_by_role("button", name="Create topic").click()
    page.get_by_role("heading", name=name, exact=True).wait_for()


def fetch_all(stack: Stack, topic: str, partition_count: int) -> list[str]:
    return [text for partition in range(partition_count) for text in fetch_partition(stack, topic, partition)]


def fetch_partition(stack: Stack, topic: str, partition: int) -> list[str]:
    texts: list[str] = []
    offset = "0"
    while True:
        answer = curl(stack, f"/topics/{topic}/partitions/{partition}/records?offset={offset}&max_records=500")
        texts += [record["value"]["text"] for record in answer["records"]]
        if answer["next_offset"] == answer["high_watermark"]:
            return texts
        offset = answer["next_offset"]


def curl(stack: Stack, path: str) -> dict[str, Any]:
    """The program itself, with the printed key, as a user would."""
    who = f"{stack.credentials['api_key']}:{stack.credentials['api_secret']}"
    command = ["curl", "--silent", "--show-error", "--fail-with-body", "--user", who, f"{stack.url}/api/v1{path}"]
    done = subprocess.run(command, capture_output=True, timeout=30, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def count_with_spark(stack: Stack, source: str, target: str, checkpoint: Path) -> None:
    run_in_spark_environment(
        *("-m", "pipelines.jobs.counts_per_minute", "--bootstrap", stack.demo_bootstrap),
        *("--source", source, "--target", target, "--checkpoint", str(checkpoint)),
    )


def newest_counts(stack: Stack, topic: str) -> dict[str, int]:
    rows = [json.loads(text) for text in fetch_partition(stack, topic, partition=0)]
    return {row["minute"]: row["records"] for row in rows}


def test_the_list_shows_counts_and_the_last_write(page: Page, stack: Stack) -> None:
    create_topic(page, "walk.counted")
    send_records(stack.demo_bootstrap, "walk.counted", [b"x"] * 25)
    page.get_by_role("link", name="Topics", exact=True).first.click()
    row = page.get_by_role("row", name="walk.counted")
    expect(row).to_contain_text("25", timeout=20_000)
    expect(row).to_contain_text("ago", timeout=20_000)
    expect_no_sideways_scroll(page)


def test_a_record_sent_from_the_page_appears_in_its_tail(page: Page) -> None:
    create_topic(page, "walk.sent")
    wait_for_live_tail(page)
    page.get_by_role("button", name="Send a record").click()
    form = page.get_by_label("Send a record", exact=True)
    form.get_by_label("Key").fill("order-1")
    form.get_by_label("Value").fill('{"id": 9007199254740993, "note": "from the page"}')
    page.keyboard.press("Control+Enter")
    expect(page.get_by_text("Written to partition 0 at offset 0.")).to_be_visible()
    received_count(page, 1)
    page.locator("button.record-row").click()
    expect(page.get_by_label("Record", exact=True)).to_contain_text("9007199254740993")


def test_a_paused_tail_goes_on_without_a_hole(page: Page, stack: Stack) -> None:
    create_topic(page, "walk.paused")
    wait_for_live_tail(page)
    page.get_by_role("button", name="Pause").click()
    send_records(stack.demo_bootstrap, "walk.paused", [b"%d" % n for n in range(900)])
    expect(page.get_by_text("behind")).to_be_visible(timeout=20_000)
    received_count(page, 0)
    page.get_by_role("button", name="Resume").click()
    received_count(page, 900)
    expect(page.locator(".gap-mark")).to_have_count(0)


def test_a_link_to_a_record_opens_that_record(page: Page, stack: Stack) -> None:
    create_topic(page, "walk.linked")
    send_records(stack.demo_bootstrap, "walk.linked", [b"record %d" % n for n in range(30)])
    page.goto("/topics/walk.linked/messages?partition=0&offset=17")
    expect(page.get_by_label("Record", exact=True)).to_contain_text("record 17")
