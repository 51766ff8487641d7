"""Themes, a phone's width, and pages for when something is not there."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import OpenPage, sign_in
from tests.browser.stack import Stack
from tests.browser.steps import expect_no_sideways_scroll

PHONE = {"width": 390, "height": 844}
LONG_NAME = "a-topic-with-a-rather-long-name.that-goes-on.and-on.to-see-what-breaks.v1"


def background(page: Page) -> str:
    return str(page.evaluate("getComputedStyle(document.body).backgroundColor"))


def test_the_theme_follows_the_system_until_one_is_chosen(open_page: OpenPage, stack: Stack) -> None:
    page = sign_in(open_page(color_scheme="dark"), stack)
    dark = background(page)
    page.get_by_role("button", name=re.compile("^Account of")).click()
    page.get_by_role("radiogroup", name="Theme").get_by_text("Light").click()
    light = background(page)
    assert light != dark
    page.reload()
    page.get_by_role("heading", name="Topics", exact=True).wait_for()
    assert background(page) == light


@pytest.mark.parametrize(
    "path", ["/topics", "/topics/hello", "/topics/hello/partitions", "/topics/hello/config", "/keys"]
)
def test_no_page_scrolls_sideways_on_a_phone(open_page: OpenPage, stack: Stack, path: str) -> None:
    page = sign_in(open_page(viewport=PHONE), stack)
    page.goto(path)
    page.get_by_role("heading", level=1).wait_for()
    page.wait_for_load_state("load")
    expect_no_sideways_scroll(page)


def test_a_topic_is_created_on_a_phone(open_page: OpenPage, stack: Stack) -> None:
    page = sign_in(open_page(viewport=PHONE), stack)
    page.get_by_role("button", name="Create topic").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Name").fill(LONG_NAME)
    dialog.get_by_role("button", name="Create topic").click()
    page.get_by_role("heading", name=LONG_NAME).wait_for()
    expect_no_sideways_scroll(page)
    page.goto("/topics")
    page.get_by_role("link", name=LONG_NAME).wait_for()
    expect_no_sideways_scroll(page)


def test_wrong_passwords_are_refused_in_words(open_page: OpenPage, stack: Stack) -> None:
    page = open_page()
    page.goto("/keys")
    page.get_by_label("Email").fill(stack.credentials["email"])
    page.get_by_label("Password").fill("not-the-password")
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("alert")).to_contain_text("do not match")
    page.get_by_label("Password").fill(stack.credentials["password"])
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("heading", name="API keys")).to_be_visible()


def test_unknown_addresses_and_topics_say_so(page: Page) -> None:
    page.goto("/nowhere/at/all")
    expect(page.get_by_text("There is no page here")).to_be_visible()
    page.goto("/topics/never-made")
    expect(page.get_by_text("No topic is called “never-made”")).to_be_visible()


def test_a_session_that_ended_brings_the_sign_in_and_then_the_same_page(page: Page, stack: Stack) -> None:
    page.goto("/topics/hello/config")
    page.get_by_role("heading", name="hello").wait_for()
    page.context.clear_cookies()
    page.get_by_role("link", name="API keys").click()
    page.get_by_label("Email").fill(stack.credentials["email"])
    page.get_by_label("Password").fill(stack.credentials["password"])
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("heading", name="API keys")).to_be_visible()
