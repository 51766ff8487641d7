from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker_engine import names
from broker_engine.errors import BrokerError, ErrorCode
from broker_engine.ids import PartitionIndex
from broker_engine.names import ROOT, Name

TENANT_IDS = st.from_regex(r"[a-z0-9][a-z0-9-]{0,62}", fullmatch=True)
TENANTS = st.one_of(st.just(ROOT), TENANT_IDS)
TOPICS = st.from_regex(r"[a-zA-Z0-9._-]{1,249}", fullmatch=True).filter(names.is_valid_topic_name)
ANY_NAMES = st.builds(Name, TENANTS, st.text(max_size=20) | st.text(alphabet="ab/-", max_size=6))
TOPIC_NAMES = st.builds(Name, TENANTS, TOPICS)
# Few letters, so that look-alikes meet: (a, b-c) and (a-b, c), (a, /b) and (root, a//b).
CLOSE_NAMES = st.builds(
    Name, st.sampled_from([ROOT, "a", "a-b", "tenants", "b"]), st.text(alphabet="ab-c/0", min_size=1, max_size=5)
)
UNIQUE_HEX = "0123456789abcdef0123456789abcdef"


@given(ANY_NAMES)
def test_a_name_survives_its_physical_text(name: Name) -> None:
    assert names.parse_physical(names.physical(name)) == name


@given(st.text(max_size=20) | st.text(alphabet="ab/-", max_size=6))
def test_a_physical_text_that_parses_is_the_only_one_of_its_name(text: str) -> None:
    try:
        name = names.parse_physical(text)
    except ValueError:
        return
    assert names.physical(name) == text


@given(CLOSE_NAMES, CLOSE_NAMES)
def test_no_two_names_share_a_physical_text(first: Name, second: Name) -> None:
    assert (names.physical(first) == names.physical(second)) == (first == second)


@given(
    st.builds(Name, st.sampled_from([ROOT, "a", "a-b", "tenants"]), st.text(alphabet="ab-0", min_size=1, max_size=5)),
    st.builds(Name, st.sampled_from([ROOT, "a", "a-b", "tenants"]), st.text(alphabet="ab-0", min_size=1, max_size=5)),
    st.integers(0, 20),
    st.integers(0, 20),
)
def test_no_two_partitions_share_a_directory(first: Name, second: Name, p: int, q: int) -> None:
    same = names.directory(first, p) == names.directory(second, q)
    assert same == ((first, p) == (second, q))


def test_a_dash_between_tenant_and_topic_never_shifts() -> None:
    left, right = Name("a", "b-c"), Name("a-b", "c")
    assert names.physical(left) != names.physical(right)
    assert names.directory(left, 0) != names.directory(right, 0)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (Name(ROOT, "orders"), "orders"),
        (Name(ROOT, "a/b"), "/a/b"),
        (Name(ROOT, "/x"), "//x"),
        (Name(ROOT, ""), ""),
        (Name("demo", "orders"), "demo/orders"),
        (Name("demo", "a/b"), "demo/a/b"),
    ],
)
def test_physical_texts_look_as_the_contract_says(name: Name, text: str) -> None:
    assert names.physical(name) == text
    assert names.parse_physical(text) == name


@pytest.mark.parametrize("text", ["/orders", "/", "Demo/orders", "-a/orders", f"{'a' * 64}/x", "a b/c", "\u0663/x"])
def test_texts_that_nobody_writes_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"slash|tenant id"):
        names.parse_physical(text)


@given(TOPIC_NAMES, st.integers(0, names.PARTITION_COUNT_MAX - 1))
def test_a_live_directory_parses_back_and_fits_the_file_system(name: Name, partition: int) -> None:
    path = names.directory(name, partition)
    assert names.parse_directory(path) == names.PartitionDirectory(name, PartitionIndex(partition))
    assert max(len(part.encode()) for part in path.split("/")) <= names.DIRECTORY_BYTES_MAX


@given(TOPIC_NAMES, st.integers(0, names.PARTITION_COUNT_MAX - 1))
def test_retired_directories_fit_stay_in_the_tenant_and_are_told_from_live_ones(name: Name, partition: int) -> None:
    deleted = names.deleted_directory(name, partition, UNIQUE_HEX)
    stray = names.stray_directory(name, partition, UNIQUE_HEX)
    assert names.is_deleted_directory(deleted)
    assert names.is_stray_directory(stray)
    for path in (deleted, stray):
        assert names.parse_directory(path) is None
        assert len(path.rsplit("/", 1)[-1].encode()) <= names.DIRECTORY_BYTES_MAX
        assert path.startswith(names.tenant_directory(name.tenant))


@pytest.mark.parametrize(
    ("path", "topic"), [("orders-0", "orders"), ("a-b-7", "a-b"), ("__consumer_offsets-49", "__consumer_offsets")]
)
def test_a_directory_that_kafka_wrote_opens_as_root(path: str, topic: str) -> None:
    found = names.parse_directory(path)
    assert found is not None
    assert found.name == Name(ROOT, topic)


@pytest.mark.parametrize(
    "path",
    [
        "tenants",
        "tenants/demo",
        "orders",
        "orders-",
        "orders-01",
        "orders--1x",
        "other/demo/orders-0",
        "tenants/Demo/o-0",
        "tenants/demo/x/o-0",
        "..-x",
        "lost+found",
    ],
)
def test_other_directories_are_nobodys_partition(path: str) -> None:
    assert names.parse_directory(path) is None


def test_a_tenant_sees_short_names_and_root_sees_physical_ones() -> None:
    name = Name("demo", "orders")
    assert names.to_wire(name, "demo") == "orders"
    assert names.to_wire(name, ROOT) == "demo/orders"
    assert names.from_wire("orders", "demo") == name
    assert names.from_wire("demo/orders", ROOT) == name
    assert names.from_wire("other/orders", "demo") == Name("demo", "other/orders")


@given(ANY_NAMES)
def test_what_root_is_shown_it_can_send_back(name: Name) -> None:
    assert names.from_wire(names.to_wire(name, ROOT), ROOT) == name


@given(st.text(max_size=12), TENANTS)
def test_any_text_of_a_client_means_some_name(text: str, viewer: str) -> None:
    name = names.from_wire(text, viewer)
    assert viewer == ROOT or name == Name(viewer, text)


@pytest.mark.parametrize("name", ["", ".", "..", "a" * 250, "a/b", "a b", "ä", "a\n", "\uff41", "demo/orders"])
def test_bad_topic_names_are_refused_with_17(name: str) -> None:
    with pytest.raises(BrokerError) as caught:
        names.check_topic_name(name)
    assert caught.value.code == ErrorCode.INVALID_TOPIC_EXCEPTION


@pytest.mark.parametrize("name", ["a", "a" * 249, "...", "__consumer_offsets", "A.b_c-9"])
def test_good_topic_names_pass(name: str) -> None:
    names.check_topic_name(name)


def test_dots_and_underscores_collide() -> None:
    assert names.collision_key("a.b") == names.collision_key("a_b")
    assert names.collision_key("a-b") != names.collision_key("a_b")


def test_only_roots_own_topics_are_internal() -> None:
    assert names.is_internal_topic(Name(ROOT, names.CONSUMER_OFFSETS))
    assert not names.is_internal_topic(Name("demo", names.CONSUMER_OFFSETS))
