"""What a seed draws beside its settings and faults: clocks that go faster or slower, roles that are split; how long
it goes on.
"""

from __future__ import annotations

import dataclasses

import pytest

from broker_engine.simulator.campaign import tell_violation
from broker_engine.simulator.run import RunReport, Violation, play
from broker_engine.simulator.schedule import draw_faults
from broker_engine.simulator.swarm import Swarm, draw

SEEDS = range(200)
LONG_S = 30.0


def roles(swarm: Swarm) -> list[str]:
    return [swarm.settings_of(number)["process.roles"] for number in swarm.node_ids]


def test_chaos_is_lifted_to_what_is_asked_for_and_all_else_stays_as_drawn() -> None:
    for seed in SEEDS:
        drawn, lifted = draw(seed), draw(seed, chaos_s_min=LONG_S)
        assert lifted == dataclasses.replace(drawn, chaos_s=max(LONG_S, drawn.chaos_s))
        faults = draw_faults(drawn)
        assert draw_faults(lifted)[: len(faults)] == faults


def test_a_finding_says_how_it_is_made_again(capsys: pytest.CaptureFixture[str]) -> None:
    tell_violation(RunReport(17, [Violation("rule", "text")]), is_shrunk=False, chaos_s_min=LONG_S)
    tell_violation(RunReport(18, [Violation("rule", "text")]), is_shrunk=False)
    again = [line for line in capsys.readouterr().out.splitlines() if "again:" in line]
    command = "python -m broker_engine.simulator"
    assert again == [f"  again: {command} --seed 17 --chaos-s-min 30 --trace", f"  again: {command} --seed 18 --trace"]


def test_some_seeds_have_clocks_that_drift_and_the_rest_keep_time() -> None:
    swarms = [draw(seed) for seed in SEEDS]
    rates = {swarm.seed: [swarm.clock_rate_of(number) for number in swarm.node_ids] for swarm in swarms}
    drifting = [rates[swarm.seed] for swarm in swarms if swarm.clock_drift]
    assert 30 < len(drifting) < 90
    assert all(0.9 <= rate <= 1.1 and rate != 1.0 for node_rates in drifting for rate in node_rates)
    assert all(set(rates[swarm.seed]) == {1.0} for swarm in swarms if not swarm.clock_drift)


def test_some_seeds_have_controllers_beside_their_brokers() -> None:
    split = [swarm for swarm in map(draw, SEEDS) if swarm.controller_count]
    assert 3 < len(split) < 20
    for swarm in split:
        assert roles(swarm) == ["broker"] * 3 + ["controller"] * 3
        named = swarm.settings_of(1)["controller.quorum.voters"].split(",")
        assert [int(name.partition("@")[0]) for name in named] == list(swarm.node_ids)


def test_whoever_is_both_is_not_told_its_role() -> None:
    both = next(swarm for swarm in map(draw, SEEDS) if not swarm.controller_count)
    assert "process.roles" not in both.settings_of(1)


def test_half_of_the_banks_are_in_clusters_with_transaction_version_2() -> None:
    banks = [swarm for swarm in map(draw, range(1_000)) if swarm.coordination.bank is not None]
    with_version_2 = [swarm for swarm in banks if swarm.coordination.features == {"transaction.version": 2}]
    assert 0.35 < len(with_version_2) / len(banks) < 0.65
    assert not any(swarm.coordination.features for swarm in map(draw, SEEDS) if swarm.coordination.bank is None)


def test_some_topics_are_compacted_and_have_keys_and_nobody_who_repeats() -> None:
    topics = [topic for swarm in map(draw, SEEDS) for topic in swarm.topics]
    compacted = [topic for topic in topics if topic.is_compacted]
    assert 0.05 < len(compacted) / len(topics) < 0.25
    assert {topic.key_of(7) for topic in compacted} == {b"7"}
    for swarm in map(draw, SEEDS):
        assert all(plan.is_idempotent for plan in swarm.producers if plan.topic.is_compacted)
        assert all(plan.topic in swarm.topics for plan in swarm.producers)


def test_compaction_under_faults_takes_nothing_away() -> None:
    swarms = [swarm for swarm in map(draw, SEEDS) if any(topic.is_compacted for topic in swarm.topics)]
    for swarm in swarms[:3]:
        assert play(swarm, draw_faults(swarm)).violations == []


def test_split_roles_under_faults_break_nothing() -> None:
    for seed in (3, 4):
        swarm = dataclasses.replace(draw(seed, node_count=3), controller_count=3)
        assert play(swarm, draw_faults(swarm)).violations == []


def test_clocks_that_differ_by_a_fifth_break_nothing() -> None:
    for seed in (3, 4):
        swarm = dataclasses.replace(draw(seed, node_count=3), clock_drift=0.1)
        assert play(swarm, draw_faults(swarm)).violations == []
