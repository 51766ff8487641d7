"""The topic rules, one by one."""

from __future__ import annotations

import pytest

from control_plane.tenants.policy import Policy
from control_plane.topics.rules import Proposal, Quota, judge

ROOMY = Quota(topics_used=0, topics_max=10, partitions_used=0, partitions_max=100)


def failed_rules(policy: Policy, quota: Quota = ROOMY, **values: object) -> list[str]:
    fields: dict[str, object] = {"name": "orders", "partitions": 1, "replication_factor": None, "configs": {}, **values}
    return [verdict.rule for verdict in judge(Proposal(**fields), policy, quota) if not verdict.ok]  # type: ignore[arg-type]


def test_a_plain_topic_passes_every_rule() -> None:
    assert failed_rules(Policy()) == []


@pytest.mark.parametrize("name", ["", ".", "..", "a b", "a/b", "ä", "x" * 250, "__consumer_offsets", "a\n"])
def test_illegal_names_fail(name: str) -> None:
    assert failed_rules(Policy(), name=name) == ["name"]


def test_the_name_must_match_the_whole_pattern() -> None:
    assert failed_rules(Policy(name_pattern="[a-z.]+"), name="orders.v1") == ["name"]


@pytest.mark.parametrize("partitions", [0, -1, 25])
def test_partitions_outside_the_bounds_fail(partitions: int) -> None:
    assert failed_rules(Policy(partitions_per_topic_max=24), partitions=partitions) == ["partitions"]


@pytest.mark.parametrize(
    ("retention_ms", "fails"),
    [("999", True), ("1000", False), ("2000", False), ("2001", True), ("-1", True), ("x", True)],
)
def test_retention_is_bounded_on_both_sides(retention_ms: str, fails: bool) -> None:
    policy = Policy(retention_ms_min=1000, retention_ms_max=2000)
    assert failed_rules(policy, configs={"retention.ms": retention_ms}) == (["retention"] if fails else [])


def test_a_topic_that_sets_no_retention_is_judged_by_the_default() -> None:
    assert failed_rules(Policy(retention_ms_max=3_600_000)) == ["retention"]


def test_configs_that_the_policy_does_not_list_fail() -> None:
    assert failed_rules(Policy(), configs={"leader.replication.throttled.replicas": "*"}) == ["configs"]


@pytest.mark.parametrize("factor", [0, 4])
def test_the_replication_factor_is_bounded(factor: int) -> None:
    assert failed_rules(Policy(replication_factor_max=3), replication_factor=factor) == ["replication_factor"]


def test_full_quotas_fail() -> None:
    full = Quota(topics_used=10, topics_max=10, partitions_used=100, partitions_max=100)
    assert failed_rules(Policy(), full) == ["partition_quota", "topic_quota"]
