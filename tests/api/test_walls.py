"""Two walls, walked along their whole length: between tenants, and between roles.

Both matrices take their rows from the URL table itself, so that a new resource without a row fails here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from django.urls import URLPattern

from api.urls import urlpatterns
from control_plane.engine.factory import get_engine
from control_plane.engine.groups import GroupName
from control_plane.keys.actions import create_key
from control_plane.tenants.actions import create_project
from tests.api.rest import Rest, problem
from tests.control_plane.memory_engine import MemoryEngine
from tests.control_plane.world import House

WRITES: dict[tuple[str, str], tuple[Any, str]] = {
    # (method, route): (body, least role)
    ("POST", "members"): ({"email": "viewer@demo.example", "role": "owner"}, "owner"),
    ("PATCH", "members/<int:member_id>"): ({"role": "owner"}, "owner"),
    ("DELETE", "members/<int:member_id>"): (None, "owner"),
    ("POST", "projects"): ({"name": "mine"}, "developer"),
    ("POST", "topics"): ({"name": "mine"}, "developer"),
    ("PATCH", "topics/<str:name>"): ({"partitions": 2}, "developer"),
    ("DELETE", "topics/<str:name>"): (None, "developer"),
    ("POST", "groups/<path:name>:reset-offsets"): ({"to": "earliest"}, "developer"),
    ("DELETE", "groups/<path:name>/offsets"): (None, "developer"),
    ("DELETE", "groups/<path:name>"): (None, "developer"),
    ("POST", "api-keys"): ({"name": "mine"}, "developer"),
    ("DELETE", "api-keys/<str:key_id>"): (None, "developer"),
}
READS_OF_ONE = [
    ("GET", "topics/<str:name>"),
    ("GET", "topics/<str:name>/partitions"),
    ("GET", "topics/<str:name>/groups"),
    ("GET", "groups/<path:name>"),
    ("GET", "groups/<path:name>/timeline"),
    ("GET", "groups/<path:name>/lag"),
    ("GET", "groups/<path:name>/offsets.csv"),
]
LISTS = ["tenant", "members", "projects", "topics", "groups", "api-keys", "audit"]
FOR_PEOPLE = ("members", "api-keys")  # an API key may not change these
OPEN_TO_ALL = {"session", "schema", "docs"}
FOR_OPERATORS = {
    # tests/api/test_cluster.py has their wall
    ("GET", "cluster"),
    ("POST", "cluster/moves"),
    ("DELETE", "cluster/moves"),
    ("POST", "cluster/elections"),
    ("DELETE", "cluster/brokers/<int:broker>"),
}


@dataclass(frozen=True)
class Goods:
    """One tenant's things, by the name of the URL parameter that stands for them."""

    name: str
    key_id: str
    member_id: int

    def path(self, route: str) -> str:
        parts = (
            ("<str:name>", self.name),
            ("<path:name>", self.name),
            ("<str:key_id>", self.key_id),
            ("<int:member_id>", str(self.member_id)),
            ("<int:broker>", "1"),
        )
        for parameter, value in parts:
            route = route.replace(parameter, value)
        return f"/{route}?topic={self.name}" if route.endswith("/offsets") else f"/{route}"


ABSENT = Goods(name="no-such-thing", key_id="HWNOSUCHTHING", member_id=999_999)


def goods_of(house: House) -> Goods:
    name = f"secret-of-{house.tenant.id}"
    Rest.of_user(house.owner).post("/topics", {"name": name})
    create_project(actor="owner", tenant=house.tenant, name=name)
    engine = get_engine()
    assert isinstance(engine, MemoryEngine)
    engine.groups.offsets[GroupName(house.tenant.id, name)] = {(name, 0): 5}
    key, _ = create_key(actor="owner", tenant=house.tenant, name=name)
    return Goods(name, key.id, house.tenant.memberships.get(user=house.viewer).pk)


def key_caller(house: House) -> Rest:
    key, secret = create_key(actor="owner", tenant=house.tenant, name="caller")
    return Rest.of_key(key.id, secret)


def all_methods() -> set[tuple[str, str]]:
    found = set()
    for pattern in urlpatterns:
        assert isinstance(pattern, URLPattern)
        route = str(pattern.pattern)
        if route in OPEN_TO_ALL:
            continue
        view = pattern.callback.cls  # type: ignore[attr-defined]
        found |= {
            (method.upper(), route) for method in ("get", "post", "put", "patch", "delete") if hasattr(view, method)
        }
    return found


def test_the_matrices_cover_every_url_and_method() -> None:
    assert all_methods() == set(WRITES) | set(READS_OF_ONE) | {("GET", route) for route in LISTS} | FOR_OPERATORS


@pytest.mark.parametrize("by_key", [False, True], ids=["session", "key"])
@pytest.mark.parametrize(("method", "route"), [*READS_OF_ONE, *(it for it in WRITES if "<" in it[1])])
def test_what_belongs_to_another_tenant_answers_as_what_does_not_exist(
    demo: House, acme: House, method: str, route: str, by_key: bool
) -> None:
    foreign, rest = goods_of(acme), key_caller(demo) if by_key else Rest.of_user(demo.owner)
    body = WRITES.get((method, route), (None, ""))[0]
    status = 403 if by_key and route.startswith(FOR_PEOPLE) else 404
    theirs = problem(rest.call(method, foreign.path(route), body), status)
    absent = problem(rest.call(method, ABSENT.path(route), body), status)
    swapped = str(absent)
    for mine, other in zip((ABSENT.name, ABSENT.key_id, str(ABSENT.member_id)), _parts(foreign), strict=True):
        swapped = swapped.replace(mine, other)
    assert str(theirs) == swapped
    assert Rest.of_user(acme.owner).get(f"/topics/{foreign.name}").json()["partitions"] == 1


def _parts(goods: Goods) -> tuple[str, str, str]:
    return goods.name, goods.key_id, str(goods.member_id)


@pytest.mark.parametrize("route", LISTS)
def test_lists_show_nothing_of_another_tenant(demo: House, acme: House, route: str) -> None:
    goods_of(acme)
    assert "acme" not in Rest.of_user(demo.owner).get(f"/{route}").content.decode()


@pytest.mark.parametrize("route", LISTS)
def test_naming_a_foreign_tenant_answers_as_an_absent_one(demo: House, acme: House, route: str) -> None:
    foreign = problem(Rest.of_user(demo.owner, "acme").get(f"/{route}"), 404)
    absent = problem(Rest.of_user(demo.owner, "none").get(f"/{route}"), 404)
    assert str(foreign) == str(absent).replace("none", "acme")


@pytest.mark.parametrize(("method", "route"), list(WRITES))
def test_a_viewer_may_change_nothing(demo: House, method: str, route: str) -> None:
    body, _ = WRITES[method, route]
    answer = problem(Rest.of_user(demo.viewer).call(method, goods_of(demo).path(route), body), 403)
    assert "viewer" in answer["detail"]


@pytest.mark.parametrize(("method", "route"), [it for it, (_, role) in WRITES.items() if role == "owner"])
def test_a_developer_may_not_do_what_owners_do(demo: House, method: str, route: str) -> None:
    body, _ = WRITES[method, route]
    problem(Rest.of_user(demo.developer).call(method, goods_of(demo).path(route), body), 403)


@pytest.mark.parametrize(("method", "route"), sorted(all_methods()))
def test_nothing_is_told_to_strangers(demo: House, method: str, route: str) -> None:
    answer = Rest().call(method, ABSENT.path(route), {})
    problem(answer, 401)
    assert "Basic" not in answer["WWW-Authenticate"]  # a browser would open its own dialog


@pytest.mark.parametrize(("method", "route"), list(WRITES))
def test_a_session_cannot_write_without_the_csrf_token(demo: House, method: str, route: str) -> None:
    rest = Rest.of_user(demo.owner)
    del rest.headers["X-CSRFToken"]
    answer = problem(rest.call(method, goods_of(demo).path(route), WRITES[method, route][0]), 403)
    assert "CSRF" in answer["title"]
