"""The rules a topic must pass, each giving one verdict. Pure: values in, verdicts out.

A dry run shows all verdicts; a real request goes on only when every one is ok.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from control_plane.tenants.policy import Policy

LEGAL_NAME = re.compile(r"[a-zA-Z0-9._-]{1,249}")
RETENTION_MS_DEFAULT = 604_800_000  # Kafka's seven days, in force where a topic sets nothing
REPLICATION_FACTOR_CEILING = 32


@dataclass(frozen=True, slots=True)
class Verdict:
    rule: str
    ok: bool
    message: str
    want: str | None = None
    got: str | None = None
    quota_left: int | None = None


@dataclass(frozen=True, slots=True)
class Proposal:
    """A topic as it would be."""

    name: str
    partitions: int
    replication_factor: int | None
    configs: Mapping[str, str]
    partitions_now: int = 0  # 0: the topic is new


@dataclass(frozen=True, slots=True)
class Quota:
    topics_used: int
    topics_max: int
    partitions_used: int
    partitions_max: int


def judge(proposal: Proposal, policy: Policy, quota: Quota) -> list[Verdict]:
    verdicts = [
        _name(proposal.name, policy),
        _partitions(proposal, policy),
        _replication_factor(proposal.replication_factor, policy),
        _configs(proposal.configs, policy),
        _retention(proposal.configs, policy),
        _partition_quota(proposal, quota),
    ]
    return verdicts if proposal.partitions_now else [*verdicts, _topic_quota(quota)]


def _name(name: str, policy: Policy) -> Verdict:
    if not LEGAL_NAME.fullmatch(name) or name in (".", ".."):
        want = "1 to 249 of a-z A-Z 0-9 . _ -, and not . or .."
        return Verdict("name", False, f"A topic's name is {want}", want, name)
    if name.startswith("__"):
        return Verdict("name", False, "Names that start with __ belong to the engine", "no leading __", name)
    if policy.name_pattern is not None and not re.fullmatch(policy.name_pattern, name):
        return Verdict("name", False, f"The name must match {policy.name_pattern}", policy.name_pattern, name)
    return Verdict("name", True, "The name is allowed", policy.name_pattern, name)


def _partitions(proposal: Proposal, policy: Policy) -> Verdict:
    low, high, got = max(1, proposal.partitions_now), policy.partitions_per_topic_max, proposal.partitions
    want = f"{low} to {high}"
    if got < low and proposal.partitions_now:
        return Verdict("partitions", False, f"A topic of {low} partitions cannot shrink to {got}", want, str(got))
    if not low <= got <= high:
        return Verdict("partitions", False, f"A topic may have {want} partitions, not {got}", want, str(got))
    return Verdict("partitions", True, f"{got} partition{'s' if got != 1 else ''} fit the bounds", want, str(got))


def _replication_factor(factor: int | None, policy: Policy) -> Verdict:
    low = policy.replication_factor_min or 1
    high = policy.replication_factor_max or REPLICATION_FACTOR_CEILING
    want = f"{low} to {high}"
    if factor is None:
        return Verdict("replication_factor", True, "The engine's default replication factor is used", want)
    if not low <= factor <= high:
        message = f"The replication factor may be {want}, not {factor}"
        return Verdict("replication_factor", False, message, want, str(factor))
    return Verdict("replication_factor", True, "The replication factor is allowed", want, str(factor))


def _configs(configs: Mapping[str, str], policy: Policy) -> Verdict:
    refused = sorted(set(configs) - set(policy.allowed_configs))
    if refused:
        names = ", ".join(refused)
        return Verdict("configs", False, f"Not to be set on a topic here: {names}", None, names)
    return Verdict("configs", True, "Every config may be set")


def _retention(configs: Mapping[str, str], policy: Policy) -> Verdict:
    low, high = policy.retention_ms_min, policy.retention_ms_max
    text = configs.get("retention.ms", str(RETENTION_MS_DEFAULT))
    want = f"{'any' if low is None else low} to {'any' if high is None else high} ms"
    try:
        retention_ms = int(text)
    except ValueError:
        return Verdict("retention", False, "retention.ms is a whole number of milliseconds", want, text)
    forever = retention_ms == -1
    if high is not None and (forever or retention_ms > high):
        return Verdict("retention", False, f"Records may be kept for at most {high} ms", want, text)
    if low is not None and not forever and retention_ms < low:
        return Verdict("retention", False, f"Records must be kept for at least {low} ms", want, text)
    return Verdict("retention", True, "The retention time is allowed", want, text)


def _partition_quota(proposal: Proposal, quota: Quota) -> Verdict:
    more = max(0, proposal.partitions - proposal.partitions_now)
    left = max(0, quota.partitions_max - quota.partitions_used)
    want = f"at most {left} more"
    if more > left:
        message = f"{more} more partitions do not fit: {left} of {quota.partitions_max} are left"
        return Verdict("partition_quota", False, message, want, str(more), left)
    message = f"{left} of {quota.partitions_max} partitions are left"
    return Verdict("partition_quota", True, message, want, str(more), left)


def _topic_quota(quota: Quota) -> Verdict:
    left = max(0, quota.topics_max - quota.topics_used)
    if left == 0:
        return Verdict("topic_quota", False, f"All {quota.topics_max} topics are used", "at least 1 left", "0", 0)
    return Verdict("topic_quota", True, f"{left} of {quota.topics_max} topics are left", None, None, left)
