"""The cluster from a browser: replicas on a topic's page, the operator's page, and what both show of a dead broker."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import OpenPage, sign_in
from tests.browser.stack import Stack, send_records, wait_until
from tests.browser.steps import create_topic, expect_no_sideways_scroll, high_watermarks
from tests.browser.test_looks import PHONE

TELEMETRY_WITHIN_MS = 20_000
MENDED_WITHIN_MS = 60_000


def replica_ends(page: Page, partition: int, group: str = "ISR") -> list[str]:
    return page.locator(f"tr[data-partition='{partition}'] [data-set={group}] .replica-end").all_inner_texts()


def brokers_in(page: Page, partition: int, group: str) -> list[str]:
    return page.locator(f"tr[data-partition='{partition}'] [data-set={group}] b").all_inner_texts()


def sign_in_as_operator(page: Page, stack: Stack) -> Page:
    page.goto("/")
    page.get_by_label("Email").fill(stack.credentials["operator_email"])
    page.get_by_label("Password").fill(stack.credentials["operator_password"])
    page.get_by_role("button", name="Sign in").click()
    page.get_by_role("heading", name="Topics", exact=True).wait_for()
    return page


def test_every_replica_shows_where_its_log_ends(page: Page, stack: Stack) -> None:
    create_topic(page, "cluster.replicas", partitions=3)
    send_records(stack.demo_bootstrap, "cluster.replicas", [b"x"] * 300)
    page.get_by_role("link", name="Partitions").click()
    wait_until(lambda: sum(high_watermarks(page)) == 300, 20, "high watermarks add up")
    for partition, end in enumerate(high_watermarks(page)):
        assert sorted(brokers_in(page, partition, "ISR")) == ["1", "2", "3"]
        wait_until(lambda p=partition, e=end: replica_ends(page, p) == [str(e)] * 3, 20, "followers have everything")


def test_operators_see_brokers_and_others_do_not(open_page: OpenPage, page: Page, stack: Stack) -> None:
    expect(page.get_by_role("link", name="Cluster", exact=True)).to_have_count(0)
    page.goto("/cluster")
    expect(page.get_by_text("There is no page here")).to_be_visible()
    operator = sign_in_as_operator(open_page(), stack)
    operator.get_by_role("link", name="Cluster", exact=True).click()
    expect(operator.locator("[data-broker]")).to_have_count(3)
    expect(operator.locator("[data-fact='Brokers up']")).to_contain_text("3 of 3", timeout=TELEMETRY_WITHIN_MS)
    expect(operator.locator("[data-fact=Voters]")).to_contain_text("1, 2, 3")
    expect(operator.get_by_text("Controller", exact=True).last).to_be_visible()


@pytest.mark.parametrize("path", ["/cluster"])
def test_the_operators_page_fits_a_phone(open_page: OpenPage, stack: Stack, path: str) -> None:
    page = sign_in_as_operator(open_page(viewport=PHONE), stack)
    page.goto(path)
    page.locator("[data-broker='1']").wait_for()
    expect_no_sideways_scroll(page)


def test_a_plan_is_read_before_it_is_begun(open_page: OpenPage, stack: Stack) -> None:
    page = sign_in_as_operator(open_page(), stack)
    page.goto("/cluster")
    page.get_by_role("button", name="Drain broker 3").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_role("alert")).to_contain_text("keep 2 copies")
    dialog.get_by_label("Copies of each partition").select_option("At most 2")
    expect(dialog.get_by_text("Nothing has been moved yet")).to_be_visible(timeout=TELEMETRY_WITHIN_MS)
    expect(dialog.get_by_role("button", name=re.compile("^Begin [0-9]+ move"))).to_be_enabled()
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)


def test_a_broker_that_dies_is_shown_and_comes_back(open_page: OpenPage, stack: Stack) -> None:
    topic = sign_in(open_page(), stack)
    create_topic(topic, "cluster.survives", partitions=3)
    topic.get_by_role("link", name="Partitions").click()
    expect(topic.locator("[data-set=ISR] b")).to_have_count(9, timeout=TELEMETRY_WITHIN_MS)
    operator = sign_in_as_operator(open_page(), stack)
    operator.goto("/cluster")

    def is_down() -> bool:
        """On a quick machine the first new process is up before anybody notices."""
        stack.kill_broker(2)
        return "Down" in operator.locator("[data-broker='2']").inner_text()

    wait_until(is_down, TELEMETRY_WITHIN_MS / 1000, "the page shows that it is down")
    send_records(stack.demo_bootstrap, "cluster.survives", [b"x"] * 90)
    wait_until(lambda: sum(high_watermarks(topic)) == 90, 20, "records are taken without it")

    expect(operator.locator("[data-broker='2']")).to_contain_text("Up", timeout=MENDED_WITHIN_MS)
    expect(topic.locator("[data-set=ISR] b")).to_have_count(9, timeout=MENDED_WITHIN_MS)
    expect(operator.get_by_text("All is well")).to_be_visible(timeout=MENDED_WITHIN_MS)
