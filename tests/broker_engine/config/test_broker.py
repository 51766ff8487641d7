from __future__ import annotations

import pytest

from broker_engine.config import BROKER_CONFIGS, BrokerConfig, ConfigError, SecurityProtocol
from broker_engine.config.kafka_names import KAFKA_NAMES_NOT_SUPPORTED


def test_a_bare_broker_has_kafkas_defaults_and_ours() -> None:
    config = BrokerConfig.load()
    assert config.node_id == 1
    assert config.num_partitions == 1
    assert config.socket_request_max_bytes == 104_857_600
    assert config.offsets_topic_num_partitions == 50
    assert config.group_max_session_timeout_ms == 1_800_000
    assert config.replica_lag_time_max_ms == 30_000
    assert config.get("log.segment.bytes") == 1 << 30
    assert config.get("message.max.bytes") == 1_048_588
    assert config.get("ack.durability") == "fsync"


def test_set_wins_over_the_file() -> None:
    config = BrokerConfig.load({"num.partitions": "3", "node.id": "7"}, {"num.partitions": "5"})
    assert (config.num_partitions, config.node_id) == (5, 7)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("log.segmnet.bytes", 'unknown config "log.segmnet.bytes": did you mean "log.segment.bytes"?'),
        ("num.partition", 'unknown config "num.partition": did you mean "num.partitions"?'),
        ("zzz", 'unknown config "zzz"'),
        ("ssl.keystore.location", 'config "ssl.keystore.location" is known to Apache Kafka, but Highwater does not'),
        ("segment.bytes", 'config "segment.bytes" belongs to a topic: the broker\'s default is "log.segment.bytes"'),
        ("listener.name..tenant", 'unknown config "listener.name..tenant"'),
    ],
)  # fmt: skip
def test_an_unknown_name_says_what_was_meant(name: str, text: str) -> None:
    with pytest.raises(ConfigError) as caught:
        BrokerConfig.load({}, {name: "1"})
    assert str(caught.value).startswith(text)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("num.partitions", "0"),
        ("num.partitions", "three"),
        ("num.partitions", ""),
        ("num.partitions", "1_000"),
        ("num.partitions", "99999999999"),
        ("log.segment.bytes", "1024"),
        ("auto.create.topics.enable", "yes"),
        ("ack.durability", "never"),
        ("log.flush.syncfs", "maybe"),
        ("listeners", "127.0.0.1"),
        ("listeners", "a=127.0.0.1:1,a=127.0.0.1:2"),
        ("listeners", "127.0.0.1:70000"),
        ("listener.security.protocol.map", "demo:FOO"),
        ("listener.security.protocol.map", "internal:PLAINTEXT"),
        ("listener.name.demo.tenant", "Demo"),
        ("listener.name.de mo.tenant", "demo"),
        ("listener.name.internal.tenant", "demo"),
        ("ssl.key.file", "key.pem"),
    ],
)
def test_a_value_that_does_not_fit_stops_the_start(name: str, value: str) -> None:
    with pytest.raises(ConfigError):
        BrokerConfig.load({name: value})


def test_listeners_their_tenants_and_protocols() -> None:
    config = BrokerConfig.load(
        {
            "listeners": "demo=127.0.0.1:9092, PUBLIC://[::1]:9093,127.0.0.1:0,internal=127.0.0.1:9094",
            "listener.name.demo.tenant": "demo",
            "listener.security.protocol.map": "PUBLIC:SASL_SSL",
        }
    )
    assert [str(endpoint) for endpoint in config.endpoints] == [
        "demo=127.0.0.1:9092", "PUBLIC=[::1]:9093", "default=127.0.0.1:0", "internal=127.0.0.1:9094"]  # fmt: skip
    assert config.listener_tenants == {"demo": "demo"}
    assert config.security_protocol("PUBLIC") is SecurityProtocol.SASL_SSL
    assert config.security_protocol("demo") is SecurityProtocol.PLAINTEXT
    assert config.security_protocol("internal") is SecurityProtocol.SASL_PLAINTEXT


@pytest.mark.parametrize(
    ("quorum_size", "factor", "min_isr"), [(None, 1, 1), (1, 1, 1), (2, 2, 1), (3, 3, 2), (5, 3, 2)]
)
def test_replication_factors_follow_the_quorum(quorum_size: int | None, factor: int, min_isr: int) -> None:
    config = BrokerConfig.load(quorum_size=quorum_size)
    assert config.default_replication_factor == factor
    assert config.offsets_topic_replication_factor == factor
    assert config.transaction_state_log_replication_factor == factor
    assert config.transaction_state_log_min_isr == min_isr


def test_the_quorum_may_be_named_by_config() -> None:
    config = BrokerConfig.load({"controller.quorum.voters": "1@a:1,2@b:1,3@c:1"})
    assert (config.quorum_size, config.default_replication_factor) == (3, 3)


def test_a_set_factor_is_taken_literally() -> None:
    assert BrokerConfig.load({"default.replication.factor": "2"}, quorum_size=3).default_replication_factor == 2


def test_production_refuses_a_small_internal_factor_and_never_creates_topics_by_itself() -> None:
    with pytest.raises(ConfigError, match="production"):
        BrokerConfig.load({"offsets.topic.replication.factor": "1"}, env="production", quorum_size=3)
    config = BrokerConfig.load(env="production", quorum_size=3)
    assert config.auto_create_topics_enable is False
    assert config.internal_factor_problem is None
    assert BrokerConfig.load(env="production").internal_factor_problem is not None
    assert BrokerConfig.load(env="development").auto_create_topics_enable is True


def test_no_name_is_both_supported_and_not() -> None:
    assert not KAFKA_NAMES_NOT_SUPPORTED & set(BROKER_CONFIGS)


def test_every_row_says_what_it_is_for() -> None:
    for row in BROKER_CONFIGS.values():
        assert row.doc.endswith("."), row.name
        assert row.default is None or row.parse(_text(row.default)) == row.default, row.name


def _text(value: object) -> str:
    from broker_engine.config.knobs import format_value

    text = format_value(value)  # type: ignore[arg-type]
    assert text is not None
    return text
