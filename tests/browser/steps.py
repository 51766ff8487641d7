"""What a user does and sees on the pages, named once."""

from __future__ import annotations

import re

from playwright.sync_api import Locator, Page, expect

TELEMETRY_WITHIN_MS = 20_000


def verdict(page: Page, tone: str) -> Locator:
    return page.locator(f"[aria-label=Policy][data-tone={tone}]")


def create_topic(page: Page, name: str, partitions: int = 1) -> None:
    page.goto("/topics")
    page.get_by_role("button", name="Create topic").first.click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Name").fill(name)
    dialog.get_by_label("Partitions").fill(str(partitions))
    verdict(page, "ok").wait_for()
    dialog.get_by_role("button", name="Create topic").click()
    expect(page).to_have_url(re.compile(f"/topics/{re.escape(name)}$"))
    expect(page.get_by_role("heading", name=name, exact=True)).to_be_visible()


def wait_for_live_tail(page: Page) -> None:
    expect(page.locator(".tail-status")).to_have_text("Live", timeout=TELEMETRY_WITHIN_MS)


def received_count(page: Page, count: int) -> None:
    expect(page.get_by_test_id("tail-count")).to_have_attribute(
        "data-received", str(count), timeout=TELEMETRY_WITHIN_MS
    )


def high_watermarks(page: Page) -> list[int]:
    return [int(text.replace(",", "")) for text in page.locator("[data-testid^=hw-]").all_inner_texts()]


def expect_no_sideways_scroll(page: Page) -> None:
    too_wide = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    assert too_wide <= 0, f"{page.url} is {too_wide} pixels too wide"
