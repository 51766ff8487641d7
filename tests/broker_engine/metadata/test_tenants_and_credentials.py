from __future__ import annotations

import json

import pytest

from broker_engine.errors import ErrorCode
from broker_engine.metadata.controller import (
    CredentialChange,
    NewTopic,
    TenantChange,
    account_of,
    alter_credentials,
    alter_tenants,
    create_topics,
    scram_verifier,
)
from broker_engine.metadata.image import MetadataImage
from broker_engine.security.accounts import Account
from broker_engine.security.scram import ScramMechanism, ScramVerifier
from tests.broker_engine.metadata.builders import CONFIG, Ids, after, cluster, demo, root, tenant

KEY = b"k" * 32
SHA_256 = ScramVerifier(ScramMechanism.SCRAM_SHA_256, b"salt", 4096, KEY, KEY)
SHA_512 = ScramVerifier(ScramMechanism.SCRAM_SHA_512, b"salt", 4096, KEY + KEY, KEY + KEY)


def alter(image: MetadataImage, *changes: TenantChange) -> tuple[list[ErrorCode], MetadataImage]:
    decision = alter_tenants(image, changes)
    return [result.error_code for result in decision.results], after(image, decision.records)


def test_a_tenant_is_named_with_its_policy() -> None:
    codes, image = alter(cluster(), TenantChange("demo", "lkc-1", '{"max_partitions": 3, "auto_create": false}'))
    assert codes == [ErrorCode.NONE]
    tenant_image = image.tenant("demo")
    assert tenant_image is not None
    assert (tenant_image.cluster_id, tenant_image.policy.max_partitions) == ("lkc-1", 3)
    assert image.policy("demo").auto_create is False
    assert image.policy("absent").auto_create is True


def test_the_same_wish_twice_writes_once() -> None:
    _, image = alter(cluster(), TenantChange("demo", "lkc-1"))
    assert alter_tenants(image, [TenantChange("demo", "lkc-1")]).records == ()
    assert len(alter_tenants(image, [TenantChange("demo", "lkc-1", '{"max_partitions": 1}')]).records) == 1


@pytest.mark.parametrize(
    "change",
    [
        TenantChange("Demo", "lkc-9"),
        TenantChange("", "lkc-9"),
        TenantChange("", deleted=True),
        TenantChange("new", ""),
        TenantChange("new", "lkc-demo"),
        TenantChange("demo", "lkc-changed"),
        TenantChange("new", "lkc-9", "nope"),
        TenantChange("new", "lkc-9", "[]"),
        TenantChange("new", "lkc-9", '{"max_partition": 3}'),
        TenantChange("new", "lkc-9", '{"max_partitions": 0}'),
        TenantChange("new", "lkc-9", '{"max_partitions": true}'),
        TenantChange("new", "lkc-9", '{"max_partitions": "3"}'),
        TenantChange("new", "lkc-9", '{"auto_create": 1}'),
        TenantChange("new", "lkc-9", '{"name_pattern": "("}'),
        TenantChange("new", "lkc-9", '{"name_pattern": 5}'),
        TenantChange("new", "lkc-9", json.dumps({"name_pattern": "a" * 257})),
        TenantChange("new", "lkc-9", "[" * 100_000),
    ],
)
def test_a_wish_that_cannot_be_is_42(change: TenantChange) -> None:
    image = cluster(1, tenant("demo"))
    assert alter(image, change) == ([ErrorCode.INVALID_REQUEST], image)


def test_a_removed_tenant_takes_all_it_owns_with_it_and_never_comes_back() -> None:
    image = cluster(1, tenant("demo"), tenant("other"))
    topics = [NewTopic(demo("a")), NewTopic(demo("b")), NewTopic(root("a"))]
    image = after(image, create_topics(image, topics, config=CONFIG, new_id=Ids()).records)
    image = after(image, alter_credentials(image, [CredentialChange("key-1", "demo", "p", [SHA_256])]).records)
    codes, image = alter(image, TenantChange("demo", deleted=True))
    assert codes == [ErrorCode.NONE]
    assert [topic.name for topic in image.topics.values()] == [root("a")]
    assert (image.credentials, image.tenant("demo")) == ({}, None)
    assert image.tenant("other") is not None
    assert alter(image, TenantChange("demo", "lkc-2"))[0] == [ErrorCode.INVALID_REQUEST]
    result = create_topics(image, [NewTopic(demo("a"))], config=CONFIG, new_id=Ids(9)).results[0]
    assert result.error_code is ErrorCode.POLICY_VIOLATION


def test_removing_a_tenant_twice_is_no_error() -> None:
    _, image = alter(cluster(1, tenant("demo")), TenantChange("demo", deleted=True))
    assert alter(image, TenantChange("demo", deleted=True)) == ([ErrorCode.NONE], image)


def test_a_tenant_that_stands_twice_is_42() -> None:
    codes, _ = alter(cluster(), TenantChange("demo", "lkc-1"), TenantChange("demo", "lkc-2"))
    assert codes == [ErrorCode.INVALID_REQUEST]


def put(image: MetadataImage, *changes: CredentialChange) -> tuple[list[ErrorCode], MetadataImage]:
    decision = alter_credentials(image, changes)
    return [result.error_code for result in decision.results], after(image, decision.records)


def test_a_credential_can_be_looked_up_and_checked_against() -> None:
    codes, image = put(cluster(1, tenant("demo")), CredentialChange("key-1", "demo", "key-1", [SHA_256, SHA_512]))
    assert codes == [ErrorCode.NONE]
    credential = image.credential("key-1")
    assert credential is not None
    assert credential.verifiers == {SHA_256.mechanism: SHA_256, SHA_512.mechanism: SHA_512}
    assert account_of(credential) == Account("demo", "key-1", SHA_256)
    assert image.credentials_of("demo") == [credential]


def test_the_same_credential_twice_writes_once_and_removal_may_be_repeated() -> None:
    change = CredentialChange("key-1", "demo", "key-1", [SHA_256, SHA_512])
    _, image = put(cluster(1, tenant("demo")), change)
    assert alter_credentials(image, [change]).records == ()
    codes, image = put(image, CredentialChange("key-1", "demo", deleted=True))
    assert (codes, image.credentials, image.credentials_by_tenant) == ([ErrorCode.NONE], {}, {})
    assert put(image, CredentialChange("key-1", "demo", deleted=True)) == ([ErrorCode.NONE], image)


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (CredentialChange("", "demo", "p", [SHA_256]), ErrorCode.UNACCEPTABLE_CREDENTIAL),
        (CredentialChange("u" * 257, "demo", "p", [SHA_256]), ErrorCode.UNACCEPTABLE_CREDENTIAL),
        (CredentialChange("gateway", "demo", "p", [SHA_256]), ErrorCode.UNACCEPTABLE_CREDENTIAL),
        (CredentialChange("control-plane", "demo", "p", [SHA_256]), ErrorCode.UNACCEPTABLE_CREDENTIAL),
        (CredentialChange("k", "demo", "", [SHA_256]), ErrorCode.UNACCEPTABLE_CREDENTIAL),
        (CredentialChange("k", "demo", "p", []), ErrorCode.UNACCEPTABLE_CREDENTIAL),
        (CredentialChange("k", "demo", "p", [SHA_512]), ErrorCode.UNACCEPTABLE_CREDENTIAL),
        (CredentialChange("k", "demo", "p", [SHA_256, SHA_256]), ErrorCode.UNACCEPTABLE_CREDENTIAL),
        (
            CredentialChange("k", "demo", "p", [ScramVerifier(SHA_256.mechanism, b"s", 4095, KEY, KEY)]),
            ErrorCode.UNACCEPTABLE_CREDENTIAL,
        ),
        (
            CredentialChange("k", "demo", "p", [ScramVerifier(SHA_256.mechanism, b"s", 16_385, KEY, KEY)]),
            ErrorCode.UNACCEPTABLE_CREDENTIAL,
        ),
        (
            CredentialChange("k", "demo", "p", [ScramVerifier(SHA_256.mechanism, b"", 4096, KEY, KEY)]),
            ErrorCode.UNACCEPTABLE_CREDENTIAL,
        ),
        (
            CredentialChange("k", "demo", "p", [ScramVerifier(SHA_256.mechanism, b"s", 4096, KEY, b"")]),
            ErrorCode.UNACCEPTABLE_CREDENTIAL,
        ),
        (CredentialChange("k", "absent", "p", [SHA_256]), ErrorCode.RESOURCE_NOT_FOUND),
        (CredentialChange("taken", "demo", "p", [SHA_256]), ErrorCode.DUPLICATE_RESOURCE),
    ],
)
def test_a_credential_that_cannot_be_is_refused(change: CredentialChange, code: ErrorCode) -> None:
    _, image = put(cluster(1, tenant("demo"), tenant("other")), CredentialChange("taken", "other", "p", [SHA_256]))
    assert put(image, change) == ([code], image)


def test_an_unknown_mechanism_is_33() -> None:
    with pytest.raises(Exception, match="UNSUPPORTED_SASL_MECHANISM"):
        scram_verifier(7, b"", 0, b"", b"")
