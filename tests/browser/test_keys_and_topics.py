"""API keys from made to revoked, tried with a real client; changing and deleting a topic."""

from __future__ import annotations

import pytest
from confluent_kafka import KafkaException, Producer
from playwright.sync_api import Page, expect

from tests.browser.stack import Stack, wait_until
from tests.browser.steps import create_topic


def client(stack: Stack, key_id: str, secret: str) -> Producer:
    return Producer(
        {
            "bootstrap.servers": stack.clients_bootstrap,
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "PLAIN",
            "sasl.username": key_id,
            "sasl.password": secret,
        }
    )


def can_sign_in(stack: Stack, key_id: str, secret: str) -> bool:
    try:
        client(stack, key_id, secret).list_topics(timeout=3)
    except KafkaException:
        return False
    return True


def test_a_key_works_when_made_and_no_longer_when_revoked(page: Page, stack: Stack) -> None:
    page.get_by_role("link", name="API keys").click()
    page.get_by_role("button", name="Create key").click()
    page.get_by_label("Name").fill("browser walk")
    page.keyboard.press("Enter")
    dialog = page.get_by_role("dialog")
    secret = dialog.get_by_test_id("secret").inner_text()
    key_id = dialog.locator("dd code").first.inner_text()
    expect(dialog.locator("pre")).to_contain_text(secret)
    wait_until(lambda: can_sign_in(stack, key_id, secret), 20, "the new key signs in")
    dialog.get_by_role("button", name="I have copied it").click()
    expect(page.get_by_text(secret)).to_have_count(0)

    page.get_by_role("button", name="Revoke browser walk").click()
    page.get_by_role("dialog").get_by_role("button", name="Revoke key").click()
    expect(page.get_by_text("is revoked")).to_be_visible()
    wait_until(lambda: not can_sign_in(stack, key_id, secret), 20, "the revoked key is refused")


def test_a_config_is_changed_and_shown_in_words(page: Page) -> None:
    create_topic(page, "config.changed")
    page.get_by_role("link", name="Configuration").click()
    page.get_by_role("button", name="Change retention.ms").click()
    page.get_by_label("New value of retention.ms").fill("3600000")
    page.keyboard.press("Enter")
    expect(page.get_by_role("row", name="retention.ms")).to_contain_text("1 hour")
    expect(page.get_by_role("row", name="retention.ms")).to_contain_text("set here")


def test_a_topic_is_deleted_only_after_its_name_is_typed(page: Page) -> None:
    create_topic(page, "to.delete")
    page.get_by_role("button", name="Delete").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_role("button", name="Delete topic")).to_be_disabled()
    dialog.get_by_label("Type to.delete to confirm").fill("to.delete")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Topics", exact=True)).to_be_visible()
    expect(page.get_by_role("link", name="to.delete", exact=True)).to_have_count(0)


@pytest.mark.parametrize("value", ["not-a-number", "-5"])
def test_a_refused_config_says_why(page: Page, value: str) -> None:
    page.goto("/topics/hello/config")
    page.get_by_role("button", name="Change retention.ms").click()
    page.get_by_label("New value of retention.ms").fill(value)
    page.keyboard.press("Enter")
    expect(page.get_by_role("alert")).to_be_visible()
