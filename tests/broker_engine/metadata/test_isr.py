"""AlterPartition: compare-and-set on both epochs, members that may not be in sync, and who is eligible afterwards."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from broker_engine.errors import BrokerError, ErrorCode
from broker_engine.metadata.controller import (
    ConfigChange,
    ConfigOperation,
    IsrProposal,
    IsrResult,
    Resource,
    alter_partition,
    fence_broker,
    find_leaders,
    incremental_alter_configs,
    unfence_broker,
    waiting_for_leader,
    with_consequences,
)
from broker_engine.metadata.image import MetadataImage
from tests.broker_engine.metadata.builders import CONFIG, after, cluster, partition_of, proposal, root, with_topic


def propose(image: MetadataImage, *changes: IsrProposal, leader: int = 1) -> tuple[MetadataImage, list[IsrResult]]:
    epoch = image.brokers[leader].epoch
    decision = alter_partition(image, broker_id=leader, broker_epoch=epoch, changes=changes, config=CONFIG)
    return after(image, decision.records), list(decision.results)


def shrunk(image: MetadataImage, *isr: int) -> MetadataImage:
    image, (result,) = propose(image, proposal(image, *isr))
    assert result.error_code is ErrorCode.NONE
    return image


def with_config(image: MetadataImage, **configs: str) -> MetadataImage:
    changes = [ConfigChange(key.replace("_", "."), ConfigOperation.SET, value) for key, value in configs.items()]
    decision = incremental_alter_configs(image, [(Resource(2, root("t")), changes)])
    return after(image, with_consequences(image, decision, CONFIG).records)


RF3 = with_topic(cluster(3), [1, 2, 3])


def test_a_leader_shrinks_its_isr_and_learns_the_new_state() -> None:
    image, (result,) = propose(RF3, proposal(RF3, 1, 2))
    assert result.state == partition_of(image)
    assert (partition_of(image).isr, partition_of(image).partition_epoch) == ((1, 2), 1)
    assert partition_of(image).leader_epoch == 0


def test_who_leaves_is_eligible_only_below_min_insync() -> None:
    image = shrunk(RF3, 1, 2)
    assert partition_of(image).elr == ()
    image = shrunk(image, 1)
    assert partition_of(image).elr == (2,)
    image = shrunk(image, 1, 3)
    assert partition_of(image).elr == ()


@pytest.mark.parametrize(
    ("changed", "code"),
    [
        ({"topic_id": UUID(int=5)}, ErrorCode.UNKNOWN_TOPIC_ID),
        ({"partition": 9}, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ({"leader_epoch": 1}, ErrorCode.NOT_CONTROLLER),
        ({"partition_epoch": 1}, ErrorCode.NOT_CONTROLLER),
        ({"leader_epoch": -1}, ErrorCode.FENCED_LEADER_EPOCH),
        ({"partition_epoch": -1}, ErrorCode.INVALID_UPDATE_VERSION),
        ({"isr": []}, ErrorCode.INVALID_REQUEST),
        ({"isr": [(2, -1)], "leader_recovery_state": 1}, ErrorCode.INVALID_REQUEST),
        ({"isr": [(1, -1), (1, -1)]}, ErrorCode.INVALID_REQUEST),
        ({"isr": [(1, -1), (4, -1)]}, ErrorCode.INVALID_REQUEST),
        ({"isr": [(1, -1), (2, 99)]}, ErrorCode.INELIGIBLE_REPLICA),
        ({"isr": [(1, -1)], "leader_recovery_state": 1}, ErrorCode.INVALID_REQUEST),
    ],
)
def test_a_proposal_that_does_not_fit_is_refused(changed: dict[str, Any], code: ErrorCode) -> None:
    image, (result,) = propose(RF3, proposal(RF3, 1, 2, **changed))
    assert (result.error_code, result.state) == (code, None)
    assert partition_of(image) == partition_of(RF3)


def test_a_leader_that_leaves_itself_out_is_replaced_by_one_who_is_in_sync() -> None:
    image, (result,) = propose(RF3, proposal(RF3, 2, 3))
    assert result.error_code is ErrorCode.NEW_LEADER_ELECTED
    partition = partition_of(image)
    assert (partition.leader, partition.leader_epoch, partition.isr) == (2, 1, (2, 3))


def test_a_leader_is_not_replaced_by_one_who_was_not_in_sync() -> None:
    image = shrunk(RF3, 1, 2)
    image, (result,) = propose(image, proposal(image, 3))
    assert (result.error_code, partition_of(image).leader) == (ErrorCode.INVALID_REQUEST, 1)


def test_only_the_leader_proposes() -> None:
    _, (result,) = propose(RF3, proposal(RF3, 1, 2), leader=2)
    assert result.error_code is ErrorCode.INVALID_REQUEST


def test_a_fenced_broker_is_not_taken_into_an_isr() -> None:
    image = after(RF3, fence_broker(RF3, 3, RF3.brokers[3].epoch, config=CONFIG).records)
    _, (result,) = propose(image, proposal(image, 1, 2, 3))
    assert result.error_code is ErrorCode.INELIGIBLE_REPLICA


def test_a_leader_that_was_deposed_is_refused_with_its_old_epoch() -> None:
    stale = proposal(RF3, 1)
    image = after(RF3, fence_broker(RF3, 1, RF3.brokers[1].epoch, config=CONFIG).records)
    _, (result,) = propose(image, stale)
    assert result.error_code is ErrorCode.FENCED_LEADER_EPOCH


def test_a_brokers_former_life_is_refused_as_a_whole() -> None:
    with pytest.raises(BrokerError) as caught:
        alter_partition(RF3, broker_id=1, broker_epoch=77, changes=[proposal(RF3, 1, 2)], config=CONFIG)
    assert caught.value.code is ErrorCode.STALE_BROKER_EPOCH


def test_the_second_of_two_proposals_for_one_partition_is_late() -> None:
    _, results = propose(RF3, proposal(RF3, 1, 2), proposal(RF3, 1, 3))
    assert [result.error_code for result in results] == [ErrorCode.NONE, ErrorCode.INVALID_UPDATE_VERSION]


def test_the_same_isr_again_changes_nothing_and_is_answered() -> None:
    image, (result,) = propose(RF3, proposal(RF3, 1, 2, 3))
    assert (image, result.state) == (RF3, partition_of(RF3))


def test_a_leader_recovers_with_its_first_proposal() -> None:
    image = with_topic(cluster(2), [1, 2], min_insync_replicas="1", unclean_leader_election_enable="true")
    for broker_id in (2, 1):
        image = after(image, fence_broker(image, broker_id, image.brokers[broker_id].epoch, config=CONFIG).records)
    image = after(image, unfence_broker(image, 2, image.brokers[2].epoch, config=CONFIG).records)
    asked = [(topic.id, index) for topic, index, _ in waiting_for_leader(image, CONFIG)]
    image = after(image, find_leaders(image, asked, {}, config=CONFIG).records)
    assert partition_of(image).leader_recovery_state == 1
    image, (result,) = propose(image, proposal(image, 2), leader=2)
    assert result.error_code is ErrorCode.NONE
    assert partition_of(image).leader_recovery_state == 0


# --- configs that decide about it


def test_a_lower_min_insync_ends_what_its_members_were_eligible_for() -> None:
    """From now on the leader alone may acknowledge, so nobody else can be sure to have it all."""
    image = shrunk(shrunk(RF3, 1, 2), 1)
    assert partition_of(image).elr == (2,)
    assert partition_of(with_config(image, min_insync_replicas="1")).elr == ()


def test_a_proposal_that_rests_on_the_old_min_insync_is_refused() -> None:
    image = with_topic(cluster(3), [1, 2, 3], min_insync_replicas="1")
    under_way = proposal(image, 1)
    image = with_config(image, min_insync_replicas="2")
    _, (result,) = propose(image, under_way)
    assert result.error_code is ErrorCode.INVALID_UPDATE_VERSION


def test_the_permission_to_elect_uncleanly_is_used_at_once_where_nobody_leads() -> None:
    image = with_topic(cluster(3), [1, 2, 3], min_insync_replicas="1")
    for broker_id in (3, 2, 1):
        image = after(image, fence_broker(image, broker_id, image.brokers[broker_id].epoch, config=CONFIG).records)
    image = after(image, unfence_broker(image, 3, image.brokers[3].epoch, config=CONFIG).records)
    assert partition_of(image).leader == -1
    image = with_config(image, unclean_leader_election_enable="true")
    assert (partition_of(image).leader, partition_of(image).unclean_elections) == (3, 1)


def test_other_configs_touch_no_partition() -> None:
    image = with_config(RF3, retention_ms="5", unclean_leader_election_enable="true")
    assert partition_of(image) == partition_of(RF3)
