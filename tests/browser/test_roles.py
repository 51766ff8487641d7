"""What a viewer sees: everything there is to read, and why the rest is not for them."""

from __future__ import annotations

from playwright.sync_api import Page, expect

from tests.browser.conftest import OpenPage
from tests.browser.stack import Stack

EMAIL, PASSWORD = "vic@highwater.local", "only looking, thanks"


def test_a_viewer_cannot_press_what_writes(open_page: OpenPage, stack: Stack) -> None:
    stack.manage("create_account", EMAIL, HIGHWATER_PASSWORD=PASSWORD)
    owner = open_page()
    sign_in_as(owner, stack.credentials["email"], stack.credentials["password"])
    added = owner.evaluate(ADD_MEMBER, {"email": EMAIL, "role": "viewer"})
    assert added == 201

    page = open_page()
    sign_in_as(page, EMAIL, PASSWORD)
    create = page.get_by_role("button", name="Create topic").first
    expect(create).to_be_disabled()
    expect(create).to_have_attribute("title", "You are a viewer of this tenant: ask an owner for the developer role.")
    page.goto("/topics/hello")
    expect(page.get_by_role("button", name="Delete")).to_be_disabled()
    expect(page.get_by_role("button", name="Send a record")).to_be_disabled()


ADD_MEMBER = """async (member) => {
    const token = document.cookie.match(/csrftoken=([^;]+)/)[1];
    const headers = { "Content-Type": "application/json", "X-CSRFToken": token };
    return (await fetch("/api/v1/members", { method: "POST", headers, body: JSON.stringify(member) })).status;
}"""


def sign_in_as(page: Page, email: str, password: str) -> None:
    page.goto("/")
    page.get_by_label("Email").fill(email)
    page.get_by_label("Password").fill(password)
    page.get_by_role("button", name="Sign in").click()
    page.get_by_role("heading", name="Topics", exact=True).wait_for()
