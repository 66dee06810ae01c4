"""Setting and deleting the credentials of SCRAM users."""

import hashlib
import hmac

import pytest

from odradek.coordinator.metadata.features import METADATA_VERSION
from odradek.coordinator.metadata.scram_changes import (
    ScramDeletion,
    ScramUpsertion,
    alter_scram_credentials,
)
from odradek.coordinator.metadata.scram_mechanisms import ScramMechanism
from odradek.coordinator.runtime.outcome import JournalRecord, Outcome
from odradek.protocol.errors import ErrorCode
from odradek.protocol.records.cluster_metadata import FeatureLevelRecord
from tests.support.metadata import Metadata

SHA_256, SHA_512 = ScramMechanism


def upsertion(
    user: str = "alice",
    mechanism: int = SHA_256,
    iterations: int = 4096,
    salted_password: bytes = b"salted",
) -> ScramUpsertion:
    return ScramUpsertion(user, mechanism, iterations, b"salt", salted_password)


def altered(
    metadata: Metadata, *changes: ScramDeletion | ScramUpsertion
) -> dict[str, ErrorCode | None]:
    deletions = [change for change in changes if isinstance(change, ScramDeletion)]
    upsertions = [change for change in changes if isinstance(change, ScramUpsertion)]
    reply = metadata.commit(alter_scram_credentials(metadata.state, deletions, upsertions))
    return {user: error.code if error else None for user, error in reply.items()}


def users(metadata: Metadata) -> set[tuple[int, str]]:
    return set(metadata.state.scram_credentials.by_user)


@pytest.mark.parametrize(("mechanism", "hashed"), [(SHA_256, "sha256"), (SHA_512, "sha512")])
def test_the_keys_of_the_salted_password_are_stored(mechanism: ScramMechanism, hashed: str) -> None:
    metadata = Metadata()
    assert altered(metadata, upsertion(mechanism=mechanism, iterations=16384)) == {"alice": None}
    stored = metadata.state.scram_credentials.by_user[mechanism, "alice"]
    client_key = hmac.digest(b"salted", b"Client Key", hashed)
    assert stored.stored_key == hashlib.new(hashed, client_key).digest()
    assert stored.server_key == hmac.digest(b"salted", b"Server Key", hashed)
    assert (stored.salt, stored.iterations) == (b"salt", 16384)


def test_a_credential_is_deleted_for_one_mechanism() -> None:
    metadata = Metadata()
    altered(metadata, upsertion())
    altered(metadata, upsertion(mechanism=SHA_512))
    assert altered(metadata, ScramDeletion("alice", SHA_256)) == {"alice": None}
    assert users(metadata) == {(SHA_512, "alice")}


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (upsertion(iterations=4095), ErrorCode.UNACCEPTABLE_CREDENTIAL),
        (upsertion(iterations=16385), ErrorCode.UNACCEPTABLE_CREDENTIAL),
        (upsertion(iterations=-1), ErrorCode.UNACCEPTABLE_CREDENTIAL),
        (upsertion(salted_password=bytes(1025)), ErrorCode.UNACCEPTABLE_CREDENTIAL),
        (upsertion(mechanism=0), ErrorCode.UNSUPPORTED_SASL_MECHANISM),
        (upsertion(mechanism=3), ErrorCode.UNSUPPORTED_SASL_MECHANISM),
        (upsertion(user=""), ErrorCode.UNACCEPTABLE_CREDENTIAL),
        (ScramDeletion("", SHA_256), ErrorCode.UNACCEPTABLE_CREDENTIAL),
        (ScramDeletion("alice", 0), ErrorCode.UNSUPPORTED_SASL_MECHANISM),
        (ScramDeletion("alice", SHA_256), ErrorCode.RESOURCE_NOT_FOUND),
    ],
)
def test_a_change_is_refused_and_the_others_are_made(
    change: ScramDeletion | ScramUpsertion, code: ErrorCode
) -> None:
    metadata = Metadata()
    assert altered(metadata, change, upsertion("bob")) == {change.user: code, "bob": None}
    assert users(metadata) == {(SHA_256, "bob")}


@pytest.mark.parametrize(
    "changes",
    [
        (upsertion(), upsertion(mechanism=SHA_512)),
        (ScramDeletion("alice", SHA_512), upsertion()),
        (ScramDeletion("alice", SHA_512), ScramDeletion("alice", SHA_512)),
        (ScramDeletion("alice", SHA_512), ScramDeletion("alice", SHA_512), upsertion()),
        (upsertion(), upsertion(), upsertion()),
    ],
)
def test_a_user_that_occurs_twice_is_not_changed(
    changes: tuple[ScramDeletion | ScramUpsertion, ...],
) -> None:
    metadata = Metadata()
    altered(metadata, upsertion(mechanism=SHA_512))
    assert altered(metadata, *changes) == {"alice": ErrorCode.DUPLICATE_RESOURCE}
    assert users(metadata) == {(SHA_512, "alice")}


def test_an_old_metadata_version_has_no_users() -> None:
    metadata = Metadata()
    level = FeatureLevelRecord(name=METADATA_VERSION, feature_level=10)
    metadata.commit(Outcome(reply=None, records=(JournalRecord(level),)))
    assert altered(metadata, upsertion()) == {"alice": ErrorCode.UNSUPPORTED_VERSION}
