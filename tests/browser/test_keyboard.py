"""Everything by keyboard: shortcuts, the create dialog from open to done, and focus that stays and returns."""

from __future__ import annotations

import re

from playwright.sync_api import Page, expect

from tests.browser.steps import verdict

FOCUS_IS_IN_DIALOG = "document.activeElement.closest('dialog') !== null"


def test_a_topic_is_created_without_a_mouse(page: Page) -> None:
    page.keyboard.press("c")
    page.keyboard.type("keyboard.only")
    verdict(page, "ok").wait_for()
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("/topics/keyboard.only$"))


def test_focus_stays_in_the_dialog_and_escape_gives_it_back(page: Page) -> None:
    button = page.get_by_role("button", name="Create topic")
    button.focus()
    page.keyboard.press("Enter")
    page.get_by_role("dialog").wait_for()
    for _ in range(12):
        page.keyboard.press("Tab")
        assert page.evaluate(FOCUS_IS_IN_DIALOG)
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(button).to_be_focused()


def test_slash_jumps_to_the_search(page: Page) -> None:
    page.keyboard.press("/")
    expect(page.get_by_label("Search topics")).to_be_focused()


def test_the_first_tab_stop_skips_to_the_content(page: Page) -> None:
    page.reload()
    page.get_by_role("heading", name="Topics", exact=True).wait_for()
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to content")).to_be_focused()
