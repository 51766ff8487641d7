"""Signing in and out, and the backoff for those who guess."""

from __future__ import annotations

import pytest
from django.core.cache import cache

from api import throttle
from control_plane.accounts.models import User
from tests.api.rest import Rest, problem, wrong_fields
from tests.control_plane.world import PASSWORD, House


def stranger() -> Rest:
    rest = Rest()
    rest.get("/session")
    rest.headers["X-CSRFToken"] = rest.client.cookies["csrftoken"].value
    return rest


def test_nobody_is_signed_in_at_first_but_gets_the_csrf_cookie(demo: House) -> None:
    rest = Rest()
    problem(rest.get("/session"), 401)
    assert "csrftoken" in rest.client.cookies


def test_signing_in_shows_the_person_and_their_tenants(demo: House) -> None:
    rest = stranger()
    answer = rest.post("/session", {"email": "Owner@demo.example", "password": PASSWORD})
    assert answer.status_code == 200
    body = answer.json()
    assert body["user"] == {"email": "owner@demo.example", "name": "", "is_operator": False}
    assert body["tenants"] == [{"id": "demo", "name": "Demo", "role": "owner"}]
    assert body["engine"] == {"kind": "highwater"}
    assert rest.get("/session").json()["user"]["email"] == "owner@demo.example"


def test_the_token_of_the_answer_works_for_the_next_write(demo: House) -> None:
    rest = stranger()
    answer = rest.post("/session", {"email": "owner@demo.example", "password": PASSWORD})
    rest.headers["X-CSRFToken"] = answer.json()["csrf_token"]
    assert rest.post("/topics", {"name": "orders"}).status_code == 201


def test_signing_out_ends_the_session(owner: Rest) -> None:
    assert owner.delete("/session").status_code == 204
    problem(owner.get("/tenant"), 401)


@pytest.mark.parametrize("email", ["owner@demo.example", "nobody@demo.example"])
def test_a_wrong_password_and_an_unknown_address_look_the_same(demo: House, email: str) -> None:
    answer = problem(stranger().post("/session", {"email": email, "password": "guess"}), 401)
    assert answer["detail"] == "The address or the password is wrong"


def test_signing_in_without_the_csrf_token_is_refused(demo: House) -> None:
    problem(Rest().post("/session", {"email": "owner@demo.example", "password": PASSWORD}), 403)


def test_an_account_that_was_switched_off_cannot_sign_in(demo: House) -> None:
    User.objects.filter(pk=demo.owner.pk).update(is_active=False)
    problem(stranger().post("/session", {"email": "owner@demo.example", "password": PASSWORD}), 401)


def test_wrong_fields_are_named(demo: House) -> None:
    assert wrong_fields(stranger().post("/session", {"email": 5, "password": "x"})) == ["email"]
    assert wrong_fields(stranger().post("/session", {"email": "a", "password": "x", "otp": "1"})) == ["otp"]


def test_after_five_failures_even_the_right_password_has_to_wait(demo: House) -> None:
    rest = stranger()
    for _ in range(throttle.FREE_FAILURES):
        problem(rest.post("/session", {"email": "owner@demo.example", "password": "guess"}), 401)
    answer = rest.post("/session", {"email": "owner@demo.example", "password": PASSWORD})
    problem(answer, 429)
    assert int(answer["Retry-After"]) >= 1


def test_the_wait_is_for_that_account_only(demo: House) -> None:
    rest = stranger()
    for _ in range(throttle.FREE_FAILURES):
        rest.post("/session", {"email": "owner@demo.example", "password": "guess"})
    assert rest.post("/session", {"email": "viewer@demo.example", "password": PASSWORD}).status_code == 200


def test_the_wait_doubles_and_passes() -> None:
    first, later = throttle.Tries(throttle.FREE_FAILURES, 100.0), throttle.Tries(throttle.FREE_FAILURES + 3, 100.0)
    assert (first.wait_s(100.0), later.wait_s(100.0), later.wait_s(108.0)) == (1, 8, 0)
    assert throttle.Tries(100, 0.0).wait_s(0.0) == throttle.WAIT_S_MAX


def test_success_clears_the_record(demo: House) -> None:
    throttle.failed("owner@demo.example", "127.0.0.1")
    stranger().post("/session", {"email": "owner@demo.example", "password": PASSWORD})
    assert cache.get(throttle._key("owner@demo.example", "127.0.0.1")) is None
