"""API keys over HTTP, and signing in with them."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from control_plane.keys.models import ApiKey
from tests.api.rest import Rest, problem, wrong_fields
from tests.control_plane.memory_engine import MemoryEngine
from tests.control_plane.world import House


def make_key(rest: Rest, name: str = "ci") -> tuple[str, str]:
    body = rest.post("/api-keys", {"name": name}).json()
    return body["id"], body["secret"]


def test_the_secret_is_shown_once_and_stored_nowhere(developer: Rest) -> None:
    answer = developer.post("/api-keys", {"name": "ci"})
    assert answer.status_code == 201
    assert answer["Cache-Control"] == "no-store"
    secret = answer.json()["secret"]
    listed = developer.get("/api-keys").json()["data"]
    assert [(key["name"], key["status"], key["created_by"]) for key in listed] == [
        ("ci", "active", "developer@demo.example")
    ]
    assert "secret" not in listed[0]
    assert secret not in str(ApiKey.objects.values().get())


def test_a_key_signs_in_and_acts_as_a_developer_of_its_tenant(developer: Rest) -> None:
    rest = Rest.of_key(*make_key(developer))
    assert (rest.get("/tenant").json()["id"], rest.get("/tenant").json()["role"]) == ("demo", "developer")
    assert rest.post("/topics", {"name": "orders"}).status_code == 201


def test_the_engine_gets_verifiers_of_both_kinds_and_loses_them_with_the_key(
    developer: Rest, engine: MemoryEngine
) -> None:
    key_id, _ = make_key(developer)
    mechanisms = [verifier.mechanism for verifier in engine.credentials[key_id].verifiers]
    assert mechanisms == ["SCRAM-SHA-256", "SCRAM-SHA-512"]
    developer.delete(f"/api-keys/{key_id}")
    assert key_id not in engine.credentials


def test_a_revoked_key_is_out_at_once_even_after_it_was_in(developer: Rest) -> None:
    key_id, secret = make_key(developer)
    rest = Rest.of_key(key_id, secret)
    assert rest.get("/tenant").status_code == 200
    assert developer.delete(f"/api-keys/{key_id}").status_code == 204
    problem(rest.get("/tenant"), 401)
    assert developer.get("/api-keys").json()["data"][0]["status"] == "revoked"


@pytest.mark.parametrize("header", ["Basic", "Basic !!!", "Basic bm9jb2xvbg==", "Bearer abc", "Basic //8="])
def test_bad_authorization_headers_are_401_with_a_challenge(demo: House, header: str) -> None:
    answer = Rest({"Authorization": header}).get("/tenant")
    problem(answer, 401)
    assert answer["WWW-Authenticate"].startswith("Basic ")


def test_a_wrong_secret_and_an_unknown_key_look_the_same(developer: Rest) -> None:
    key_id, _ = make_key(developer)
    wrong, unknown = Rest.of_key(key_id, "guess").get("/tenant"), Rest.of_key("HWNOBODY", "guess").get("/tenant")
    assert problem(wrong, 401) == problem(unknown, 401)


def test_guessing_a_keys_secret_is_slowed_down(developer: Rest) -> None:
    key_id, secret = make_key(developer)
    statuses = [Rest.of_key(key_id, f"guess {index}").get("/tenant").status_code for index in range(7)]
    assert statuses == [401] * 5 + [429] * 2
    assert Rest.of_key(key_id, secret).get("/tenant").status_code == 200  # who has it right is not locked out


def test_a_key_cannot_make_or_revoke_keys(developer: Rest) -> None:
    key_id, secret = make_key(developer)
    rest = Rest.of_key(key_id, secret)
    problem(rest.post("/api-keys", {"name": "child"}), 403)
    problem(rest.delete(f"/api-keys/{key_id}"), 403)


def test_a_key_that_names_another_tenant_finds_none(developer: Rest, acme: House) -> None:
    rest = Rest.of_key(*make_key(developer))
    rest.headers["X-Highwater-Tenant"] = "acme"
    foreign = problem(rest.get("/tenant"), 404)
    rest.headers["X-Highwater-Tenant"] = "nowhere"
    assert problem(rest.get("/tenant"), 404)["detail"] == foreign["detail"].replace("acme", "nowhere")


def test_the_last_use_is_remembered_to_the_minute(developer: Rest) -> None:
    key_id, secret = make_key(developer)
    Rest.of_key(key_id, secret).get("/tenant")
    first = ApiKey.objects.get().last_used_at
    assert first is not None
    Rest.of_key(key_id, secret).get("/tenant")
    assert ApiKey.objects.get().last_used_at == first
    ApiKey.objects.update(last_used_at=timezone.now() - timedelta(minutes=5))
    Rest.of_key(key_id, secret).get("/tenant")
    assert ApiKey.objects.get().last_used_at > first


def test_a_key_needs_a_name_and_nothing_else(developer: Rest) -> None:
    assert wrong_fields(developer.post("/api-keys", {})) == ["name"]
    assert wrong_fields(developer.post("/api-keys", {"name": "a", "secret": "mine"})) == ["secret"]


def test_an_unknown_key_is_absent(developer: Rest) -> None:
    problem(developer.delete("/api-keys/HWNOBODY"), 404)
    problem(developer.delete("/api-keys/%00"), 404)
