"""Members, projects, the tenant itself, the audit trail."""

from __future__ import annotations

from control_plane.accounts.models import User
from tests.api.rest import Rest, problem, wrong_fields
from tests.control_plane.world import House


def member_id(rest: Rest, email: str) -> int:
    return next(it["id"] for it in rest.get("/members").json()["data"] if it["email"] == email)


def test_an_owner_adds_changes_and_removes_a_member(owner: Rest, demo: House) -> None:
    User.objects.create_user("new@example.com", name="New")
    answer = owner.post("/members", {"email": "New@Example.com", "role": "viewer"})
    assert answer.status_code == 201
    number = answer.json()["id"]
    assert owner.patch(f"/members/{number}", {"role": "developer"}).json()["role"] == "developer"
    assert owner.delete(f"/members/{number}").status_code == 204
    assert "new@example.com" not in str(owner.get("/members").json())


def test_nobody_is_added_twice_and_nobody_unknown(owner: Rest, demo: House) -> None:
    problem(owner.post("/members", {"email": "viewer@demo.example", "role": "owner"}), 409)
    assert wrong_fields(owner.post("/members", {"email": "ghost@example.com", "role": "owner"})) == ["email"]
    assert wrong_fields(owner.post("/members", {"email": "viewer@demo.example", "role": "king"})) == ["role"]


def test_the_last_owner_stays(owner: Rest) -> None:
    number = member_id(owner, "owner@demo.example")
    problem(owner.patch(f"/members/{number}", {"role": "viewer"}), 409)
    problem(owner.delete(f"/members/{number}"), 409)


def test_a_person_with_two_tenants_names_the_one_they_mean(demo: House, acme: House, owner: Rest) -> None:
    owner.post("/members", {"email": "developer@acme.example", "role": "viewer"})
    in_demo, in_acme = Rest.of_user(acme.developer, "demo"), Rest.of_user(acme.developer)
    assert (in_demo.get("/tenant").json()["id"], in_demo.get("/tenant").json()["role"]) == ("demo", "viewer")
    assert in_acme.get("/tenant").json()["id"] == "acme"


def test_an_operator_may_name_any_tenant(demo: House, acme: House) -> None:
    operator = User.objects.create_user("op@example.com", is_operator=True)
    rest = Rest.of_user(operator, "demo")
    assert rest.get("/tenant").json()["role"] == "owner"
    assert [tenant["id"] for tenant in rest.get("/session").json()["tenants"]] == ["acme", "demo"]


def test_a_person_without_a_tenant_is_told_so(demo: House) -> None:
    problem(Rest.of_user(User.objects.create_user("lone@example.com")).get("/topics"), 403)


def test_the_tenant_shows_its_quota_and_policy(owner: Rest, demo: House) -> None:
    owner.post("/topics", {"name": "orders", "partitions": 3})
    body = owner.get("/tenant").json()
    assert body["cluster_id"].startswith("lkc-")
    assert body["quota"] == {"partitions": {"limit": 500, "used": 3}, "topics": {"limit": 200, "used": 1}}
    assert body["policy"]["max_partitions_per_topic"] == 100
    assert body["policy"]["retention_ms_max"] is None


def test_projects_get_an_id_from_their_name(developer: Rest) -> None:
    assert developer.post("/projects", {"name": "Web Shop"}).json() == {"id": "web-shop", "name": "Web Shop"}
    problem(developer.post("/projects", {"name": "web shop"}), 409)
    assert wrong_fields(developer.post("/projects", {"name": "???"})) == ["name"]
    assert wrong_fields(developer.post("/projects", {"name": "x", "id": "Not Good"})) == ["id"]
    assert [it["id"] for it in developer.get("/projects").json()["data"]] == ["web-shop"]


def test_the_audit_trail_is_newest_first_with_before_and_after(owner: Rest) -> None:
    owner.post("/topics", {"name": "orders", "partitions": 1})
    owner.patch("/topics/orders", {"partitions": 2})
    entries = owner.get("/audit?page_size=2").json()
    assert [(it["verb"], it["actor"]) for it in entries["data"]] == [
        ("topic.changed", "owner@demo.example"),
        ("topic.created", "owner@demo.example"),
    ]
    detail = entries["data"][0]["detail"]
    assert (detail["before"]["partitions"], detail["after"]["partitions"]) == (1, 2)
    rest = owner.get(f"/audit?page_token={entries['next_page_token']}").json()
    assert [it["verb"] for it in rest["data"]] == ["tenant.created"]
