from __future__ import annotations

from uuid import UUID

import pytest

from broker_engine.errors import BrokerError, ErrorCode
from broker_engine.metadata.controller import allocate_producer_ids, bootstrap
from broker_engine.metadata.image import EMPTY_IMAGE
from tests.broker_engine.metadata.builders import after, cluster


def test_a_new_cluster_begins_with_its_level_and_its_voter() -> None:
    image = after(EMPTY_IMAGE, bootstrap(EMPTY_IMAGE, voter_id=1, directory_id=UUID(int=7)).records)
    assert [(voter.id, voter.directory_id) for voter in image.voters] == [(1, UUID(int=7))]
    assert image.features == {"highwater.metadata": 1}
    assert bootstrap(image, voter_id=1, directory_id=UUID(int=7)).records == ()


def test_blocks_of_producer_ids_never_meet() -> None:
    image = cluster(2)
    firsts = []
    for broker_id in (1, 2, 1):
        decision = allocate_producer_ids(image, broker_id=broker_id, broker_epoch=image.brokers[broker_id].epoch)
        image = after(image, decision.records)
        firsts.append((decision.results[0].first, decision.results[0].count))
    assert firsts == [(0, 1000), (1000, 1000), (2000, 1000)]


@pytest.mark.parametrize(
    ("broker_id", "epoch", "code"), [(1, 77, ErrorCode.STALE_BROKER_EPOCH), (9, 0, ErrorCode.BROKER_ID_NOT_REGISTERED)]
)
def test_a_broker_of_the_past_gets_no_producer_ids(broker_id: int, epoch: int, code: ErrorCode) -> None:
    with pytest.raises(BrokerError) as caught:
        allocate_producer_ids(cluster(1), broker_id=broker_id, broker_epoch=epoch)
    assert caught.value.code is code
