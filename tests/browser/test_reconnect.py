"""The web server dies under a live page; the page comes back by itself and shows every record once."""

from __future__ import annotations

from playwright.sync_api import Page, expect

from tests.browser.stack import Stack, send_records
from tests.browser.steps import create_topic, received_count, wait_for_live_tail

BACK_WITHIN_MS = 60_000


def test_the_tail_goes_on_at_the_next_record_after_the_server_died(page: Page, stack: Stack) -> None:
    create_topic(page, "reconnect.orders")
    wait_for_live_tail(page)
    send_records(stack.demo_bootstrap, "reconnect.orders", [b"before"] * 100)
    received_count(page, 100)

    stack.kill_web_server()
    expect(page.locator(".tail-status")).to_have_text("Reconnecting…")
    send_records(stack.demo_bootstrap, "reconnect.orders", [b"meanwhile"] * 100)

    expect(page.locator(".tail-status")).to_have_text("Live", timeout=BACK_WITHIN_MS)
    received_count(page, 200)
    expect(page.locator(".gap-mark")).to_have_count(0)
    offsets = page.locator("button.record-row").evaluate_all("rows => rows.map((row) => row.dataset.record)")
    assert len(offsets) == len(set(offsets))
