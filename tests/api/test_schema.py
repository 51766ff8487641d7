"""The OpenAPI document and its page."""

from __future__ import annotations

import pytest
from django.core.management import call_command
from openapi_spec_validator import validate

from api.urls import urlpatterns
from tests.api.rest import Rest

METHODS = ("get", "post", "patch", "delete")


def test_the_document_is_valid_openapi_3_1_and_names_every_resource(db: None) -> None:
    document = Rest().get("/schema").json()
    assert document["openapi"].startswith("3.1")
    validate(document)
    described = {path.removeprefix("/api/v1/").replace("{", "<").replace("}", ">") for path in document["paths"]}
    for pattern in urlpatterns:
        route = str(pattern.pattern).replace("str:", "").replace("int:", "").replace("path:", "")
        assert route in described or route in ("schema", "docs"), route


def test_the_document_is_made_without_a_warning(capsys: pytest.CaptureFixture[str]) -> None:
    call_command("spectacular", "--fail-on-warn", "--file", "/dev/null")
    assert "Warning" not in capsys.readouterr().err


def test_both_ways_to_sign_in_are_described(db: None) -> None:
    schemes = Rest().get("/schema").json()["components"]["securitySchemes"]
    assert {scheme["type"] for scheme in schemes.values()} == {"http", "apiKey"}


def test_the_page_needs_nothing_from_outside(db: None) -> None:
    page = Rest().get("/docs").content.decode()
    assert "swagger-ui" in page
    assert "https://" not in page
