from __future__ import annotations

import base64
import hashlib
import hmac

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker_engine.security import scram
from broker_engine.security.scram import ScramMechanism, ScramVerifier


def _rfc_7677_verifier() -> ScramVerifier:
    return scram.make_verifier("pencil", base64.b64decode("W22ZaJ0SNY7soEsUEjb6gQ=="), 4096)


def test_the_example_of_rfc_7677_gives_its_proof_and_signature() -> None:
    """Section 3 of the RFC: user `user`, password `pencil`. Its proof and signature fit our keys."""
    verifier = _rfc_7677_verifier()
    nonce = "rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
    auth_message = (
        f"n=user,r=rOprNGfwEbeRWgbNEkqO,r={nonce},s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096,c=biws,r={nonce}".encode()
    )
    proof = base64.b64decode("dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=")
    client_signature = hmac.digest(verifier.stored_key, auth_message, "sha256")
    client_key = bytes(a ^ b for a, b in zip(proof, client_signature, strict=True))
    assert hashlib.sha256(client_key).digest() == verifier.stored_key
    server_signature = hmac.digest(verifier.server_key, auth_message, "sha256")
    assert server_signature == base64.b64decode("6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=")


@pytest.mark.parametrize("mechanism", list(ScramMechanism))
def test_only_the_right_secret_fits(mechanism: ScramMechanism) -> None:
    verifier = scram.make_verifier("s3cret", b"salt" * 8, 4096, mechanism)
    assert len(verifier.stored_key) == len(verifier.server_key) == mechanism.key_size_bytes
    assert scram.verify_plain(verifier, "s3cret")
    assert not scram.verify_plain(verifier, "s3cret ")


@settings(max_examples=20, deadline=None)
@given(st.text(max_size=30), st.text(max_size=30))
def test_two_secrets_never_fit_one_verifier(made_from: str, tried: str) -> None:
    verifier = scram.make_verifier(made_from, b"0123456789abcdef", 1)
    assert scram.verify_plain(verifier, tried) == (made_from == tried)


def test_a_secret_beyond_the_limit_is_refused_without_hashing() -> None:
    assert not scram.verify_plain(_rfc_7677_verifier(), "x" * (scram.SECRET_LENGTH_MAX + 1))


def test_a_fake_verifier_is_stable_per_user_and_fits_nothing() -> None:
    first, again = scram.fake_verifier("mallory", b"pepper"), scram.fake_verifier("mallory", b"pepper")
    assert first == again
    assert first.salt != scram.fake_verifier("eve", b"pepper").salt
    assert first.salt != scram.fake_verifier("mallory", b"other pepper").salt
    assert len(first.salt) == scram.SALT_SIZE_BYTES
    assert not scram.verify_plain(first, "")


def test_new_secrets_are_256_bits_of_url_safe_text() -> None:
    asked: list[int] = []

    def random_bytes(size: int) -> bytes:
        asked.append(size)
        return b"\xff" * size

    assert scram.new_secret(random_bytes) == "_" * 42 + "8"
    assert asked == [32]


def test_each_mechanism_gets_its_own_salt() -> None:
    salts = iter([b"a" * 32, b"b" * 32])
    sha_256, sha_512 = scram.make_verifiers("s", lambda _size: next(salts))
    assert (sha_256.mechanism, sha_512.mechanism) == (ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512)
    assert sha_256.salt != sha_512.salt


def test_a_printed_verifier_shows_no_key() -> None:
    assert "stored_key" not in repr(_rfc_7677_verifier())
