"""Ten thousand partitions on three brokers: one broker's end is decided and replayed at once."""

from __future__ import annotations

import time

from broker_engine.metadata.controller import NewTopic, create_topics, fence_broker, led_count, propose_balance
from broker_engine.metadata.records import decode_record, encode_record
from tests.broker_engine.metadata.builders import CONFIG, Ids, after, broker, cluster, root

LIMIT_S = 2.0
"""It takes a third of a second on an idle machine."""


def test_fencing_a_broker_of_ten_thousand_partitions_takes_no_time() -> None:
    image = cluster(3)
    topics = [NewTopic(root(f"t{number}"), 1000, 3) for number in range(10)]
    image = after(image, create_topics(image, topics, config=CONFIG, new_id=Ids()).records)
    assert led_count(image, 1) >= 3000
    began = time.process_time()
    decision = fence_broker(image, 1, image.brokers[1].epoch, config=CONFIG)
    fenced = after(image, [decode_record(encode_record(record)) for record in decision.records])
    assert time.process_time() - began < LIMIT_S
    assert led_count(fenced, 1) == 0
    assert min(led_count(fenced, 2), led_count(fenced, 3)) >= 4900
    began = time.process_time()
    assert len(propose_balance(after(image, [broker(4)]), [1, 2, 3, 4])) == 7500
    assert time.process_time() - began < LIMIT_S
