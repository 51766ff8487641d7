"""A real stack and a real Chromium. What is missing fails with the command that brings it: a skip would hide a gap."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright

from tests.browser.stack import REPO_ROOT, Stack

CHROMIUM = os.environ.get("HIGHWATER_CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
CHROMIUM_ARGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
WIDE = {"width": 1280, "height": 800}
ACTION_WITHIN_MS = 15_000

OpenPage = Callable[..., Page]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.browser)


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    """Of this package, not of the session: while it is open, Playwright's loop occupies the thread of async tests."""
    if CHROMIUM is None:
        pytest.fail("no Chromium: apt-get install chromium, or name one in HIGHWATER_CHROMIUM")
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=CHROMIUM, args=list(CHROMIUM_ARGS))
        yield opened
        opened.close()


@pytest.fixture(scope="package")
def stack(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    if not (REPO_ROOT / "web/static/dashboard/index.html").exists():
        pytest.fail("the dashboard is not built: make frontend")
    started = Stack(tmp_path_factory.mktemp("stack"))
    started.start()
    yield started
    started.stop()


@pytest.fixture
def open_page(browser: Browser, stack: Stack) -> Iterator[OpenPage]:
    """Opens pages in contexts of their own. A script error or a broken Content-Security-Policy fails the test."""
    contexts: list[BrowserContext] = []
    complaints: list[str] = []

    def open_one(viewport: dict[str, int] = WIDE, color_scheme: str = "light") -> Page:
        context = browser.new_context(viewport=viewport, color_scheme=color_scheme, base_url=stack.url)  # type: ignore[arg-type]
        contexts.append(context)
        context.set_default_timeout(ACTION_WITHIN_MS)
        page = context.new_page()
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("console", lambda said: complaints.append(said.text) if "Content Security" in said.text else None)
        return page

    yield open_one
    for context in contexts:
        context.close()
    assert complaints == []


@pytest.fixture
def page(open_page: OpenPage, stack: Stack) -> Page:
    """Signed in as the demo user, on the list of topics, 1280 pixels wide."""
    return sign_in(open_page(), stack)


def sign_in(page: Page, stack: Stack) -> Page:
    page.goto("/")
    page.get_by_label("Email").fill(stack.credentials["email"])
    page.get_by_label("Password").fill(stack.credentials["password"])
    page.get_by_role("button", name="Sign in").click()
    page.get_by_role("heading", name="Topics", exact=True).wait_for()
    return page
