"""/topics over HTTP: verdicts, states, bad input."""

from __future__ import annotations

from typing import Any

import pytest

from control_plane.engine.interface import TopicName
from control_plane.tenants.actions import create_project
from tests.api.rest import Rest, problem, wrong_fields
from tests.control_plane.memory_engine import MemoryEngine
from tests.control_plane.world import House, Queue


def test_a_created_topic_is_answered_with_201_and_its_place(developer: Rest) -> None:
    answer = developer.post("/topics", {"name": "orders", "partitions": 3, "configs": {"retention.ms": 60000}})
    assert answer.status_code == 201
    assert answer["Location"] == "/api/v1/topics/orders"
    body = answer.json()
    assert (body["name"], body["partitions"], body["status"]) == ("orders", 3, "ready")
    assert body["configs"] == {"retention.ms": "60000"}
    assert body["created_by"] == "developer@demo.example"
    assert developer.get("/topics/orders").json() == body


def test_a_slow_engine_gives_202_and_the_status_is_there_to_ask_for(
    developer: Rest, engine: MemoryEngine, queue: Queue
) -> None:
    engine.is_away = True
    answer = developer.post("/topics", {"name": "orders"})
    assert answer.status_code == 202
    assert answer.json()["status"] == "creating"
    engine.is_away = False
    queue.run_all()
    assert developer.get(answer["Location"].removeprefix("/api/v1")).json()["status"] == "ready"


def test_a_name_that_is_taken_is_409(developer: Rest) -> None:
    developer.post("/topics", {"name": "orders"})
    problem(developer.post("/topics", {"name": "orders"}), 409)


def test_a_dry_run_changes_nothing_and_shows_every_verdict(developer: Rest, engine: MemoryEngine) -> None:
    answer = developer.post("/topics?dry_run=true", {"name": "orders", "partitions": 2})
    assert answer.status_code == 200
    body = answer.json()
    assert body["ok"] is True
    rules = {verdict["rule"] for verdict in body["verdicts"]}
    assert rules >= {"name", "partitions", "replication_factor", "configs", "retention", "partition_quota"}
    assert not engine.topics
    assert developer.get("/topics").json()["data"] == []


@pytest.mark.parametrize("query", ["?dry_run=true", ""])
def test_broken_rules_are_422_with_each_violation(developer: Rest, query: str) -> None:
    answer = problem(developer.post(f"/topics{query}", {"name": "a b", "partitions": 100000}), 422)
    assert {violation["rule"] for violation in answer["violations"]} == {"name", "partitions", "partition_quota"}
    assert len(answer["verdicts"]) > len(answer["violations"])
    quota = next(violation for violation in answer["violations"] if violation["rule"] == "partition_quota")
    assert quota["quota_left"] == 500


def test_a_dry_run_for_a_taken_name_says_so(developer: Rest) -> None:
    developer.post("/topics", {"name": "orders"})
    answer = problem(developer.post("/topics?dry_run=true", {"name": "orders"}), 422)
    assert [violation["rule"] for violation in answer["violations"]] == ["name_free"]


def test_the_engines_refusal_is_422_with_its_reason(developer: Rest) -> None:
    answer = problem(developer.post("/topics", {"name": "orders", "configs": {"segment.bytes": "x"}}), 422)
    assert "segment.bytes" in answer["detail"]


BAD_BODIES: list[tuple[Any, str]] = [
    ({}, "name"),
    ({"name": 5}, "name"),
    ({"name": None}, "name"),
    ({"name": ["a"]}, "name"),
    ({"name": "a\0b"}, "name"),
    ({"name": "orders", "partitions": "3"}, "partitions"),
    ({"name": "orders", "partitions": 1.5}, "partitions"),
    ({"name": "orders", "partitions": True}, "partitions"),
    ({"name": "orders", "partitions": 2**40}, "partitions"),
    ({"name": "orders", "replication_factor": "all"}, "replication_factor"),
    ({"name": "orders", "configs": []}, "configs"),
    ({"name": "orders", "configs": {"retention.ms": None}}, "configs.retention.ms"),
    ({"name": "orders", "configs": {"retention.ms": {}}}, "configs.retention.ms"),
    ({"name": "orders", "configs": {"retention.ms": 1.5}}, "configs.retention.ms"),
    ({"name": "orders", "project": 7}, "project"),
    ({"name": "orders", "project": "nowhere"}, "project"),
    ({"name": "orders", "partition": 3}, "partition"),
    ([], ""),
    ("orders", ""),
]


@pytest.mark.parametrize(("body", "field"), BAD_BODIES)
def test_bad_bodies_are_refused_with_the_fields_name(developer: Rest, body: Any, field: str) -> None:
    assert wrong_fields(developer.post("/topics", body)) == [field]


def test_a_body_that_is_not_json_is_400(developer: Rest) -> None:
    problem(developer.post("/topics", b'{"name": '), 400)


TOKEN_OF_ANOTHER_LIST = "WyJpZCIsIDFd"


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("page_size=0", "page_size"),
        ("page_size=501", "page_size"),
        ("page_size=x", "page_size"),
        ("page_token=zzz", "page_token"),
        (f"page_token={TOKEN_OF_ANOTHER_LIST}", "page_token"),
        ("sort=name", "sort"),
    ],
)
def test_bad_queries_are_refused_with_the_parameters_name(developer: Rest, query: str, field: str) -> None:
    assert wrong_fields(developer.get(f"/topics?{query}")) == [field]


def test_a_change_adds_partitions_and_unsets_a_config(developer: Rest, engine: MemoryEngine) -> None:
    developer.post("/topics", {"name": "orders", "configs": {"retention.ms": "1000"}})
    answer = developer.patch("/topics/orders", {"partitions": 4, "configs": {"retention.ms": None}})
    assert answer.status_code == 200
    assert (answer.json()["partitions"], answer.json()["configs"]) == (4, {})
    assert engine.topics[TopicName("demo", "orders")].partitions == 4


def test_a_change_may_be_tried_dry(developer: Rest) -> None:
    developer.post("/topics", {"name": "orders", "partitions": 2})
    assert developer.patch("/topics/orders?dry_run=true", {"partitions": 3}).json()["ok"] is True
    problem(developer.patch("/topics/orders?dry_run=true", {"partitions": 1}), 422)
    assert developer.get("/topics/orders").json()["partitions"] == 2


def test_a_change_of_anything_else_is_refused_by_name(developer: Rest) -> None:
    developer.post("/topics", {"name": "orders"})
    assert wrong_fields(developer.patch("/topics/orders", {"name": "other"})) == ["name"]


def test_deleting_is_204_and_then_the_topic_is_absent(developer: Rest) -> None:
    developer.post("/topics", {"name": "orders"})
    assert developer.delete("/topics/orders").status_code == 204
    problem(developer.get("/topics/orders"), 404)


def test_deleting_while_the_engine_is_away_is_202(developer: Rest, engine: MemoryEngine) -> None:
    developer.post("/topics", {"name": "orders"})
    engine.is_away = True
    answer = developer.delete("/topics/orders")
    assert (answer.status_code, answer.json()["status"]) == (202, "deleting")


def test_the_list_comes_in_pages(developer: Rest) -> None:
    for index in range(5):
        developer.post("/topics", {"name": f"topic-{index}"})
    names, token = [], ""
    while True:
        page = developer.get(f"/topics?page_size=2{token}").json()
        names += [topic["name"] for topic in page["data"]]
        if page["next_page_token"] is None:
            break
        token = f"&page_token={page['next_page_token']}"
    assert names == [f"topic-{index}" for index in range(5)]


def test_the_list_can_be_searched_and_narrowed_to_a_project(developer: Rest, demo: House) -> None:
    create_project(actor="owner", tenant=demo.tenant, name="Shop")
    developer.post("/topics", {"name": "orders.eu", "project": "shop"})
    developer.post("/topics", {"name": "orders.us"})
    assert [it["name"] for it in developer.get("/topics?q=ORDERS").json()["data"]] == ["orders.eu", "orders.us"]
    assert [it["name"] for it in developer.get("/topics?project=shop").json()["data"]] == ["orders.eu"]


def test_partitions_come_from_the_engine_while_telemetry_knows_nothing(developer: Rest) -> None:
    developer.post("/topics", {"name": "orders", "partitions": 2})
    body = developer.get("/topics/orders/partitions").json()
    assert body["source"] == "engine"
    assert [row["partition"] for row in body["data"]] == [0, 1]
    assert body["data"][0]["replicas"] == [{"broker": 1, "in_sync": True, "log_end_offset": None}]
    assert body["data"][0]["high_watermark"] == "0"


def test_partitions_answer_503_when_nobody_knows(developer: Rest, engine: MemoryEngine) -> None:
    developer.post("/topics", {"name": "orders"})
    engine.is_away = True
    problem(developer.get("/topics/orders/partitions"), 503)


@pytest.mark.parametrize("name", ["%00", "a%20b", "%F0%9F%98%80", "x" * 300, "..%2Forders"])
def test_names_that_no_topic_can_have_are_simply_absent(developer: Rest, name: str) -> None:
    assert developer.get(f"/topics/{name}").status_code == 404
