"""Computes the records that set and delete the credentials of SCRAM users.

A request may change each user once; a user that occurs twice gets an error, and the other users are
changed. The salted password becomes two keys here, and is not stored.

Kafka: ScramControlManager.
"""

from collections.abc import Sequence
from typing import NamedTuple

from odradek.coordinator.runtime.outcome import JournalRecord, Outcome
from odradek.coordinator.runtime.steps import Step, free, no_step, stepping
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.protocol.records.cluster_metadata import (
    RemoveUserScramCredentialRecord,
    UserScramCredentialRecord,
)

from .cluster_metadata import ClusterMetadata
from .record_limit import limited_outcome
from .scram_mechanisms import MAX_ITERATIONS, MIN_ITERATIONS, ScramMechanism, keys_of

FIRST_METADATA_VERSION = 11  # 3.5-IV2
# It is a hash, of at most 64 bytes. Making keys of a long one would take a long turn.
MAX_SALTED_PASSWORD_BYTES = 1024
_MECHANISMS = frozenset(ScramMechanism)


class ScramDeletion(NamedTuple):
    """Delete a user's credential. `mechanism` is a ScramMechanism, or an unknown number."""

    user: str
    mechanism: int


class ScramUpsertion(NamedTuple):
    """Set a user's credential. `mechanism` is a ScramMechanism, or an unknown number."""

    user: str
    mechanism: int
    iterations: int
    salt: bytes
    salted_password: bytes

    def __repr__(self) -> str:
        return f"ScramUpsertion({self.user!r}, {self.mechanism})"


def alter_scram_credentials(
    metadata: ClusterMetadata,
    deletions: Sequence[ScramDeletion],
    upsertions: Sequence[ScramUpsertion],
    step: Step = no_step,
) -> Outcome[dict[str, ApiError | None]]:
    """Change credentials. The reply has None for each user that is changed, or the error.

    Raises POLICY_VIOLATION when the request is too large for one operation.
    """
    errors: dict[str, ApiError | None] = {}
    records: dict[str, JournalRecord] = {}
    changes: list[ScramDeletion | ScramUpsertion] = [*deletions, *upsertions]
    for change in stepping(changes, step):
        if change.user in errors:
            continue
        if records.pop(change.user, None) is not None:
            text = "A user credential cannot be altered twice in the same request"
            errors[change.user] = ApiError(ErrorCode.DUPLICATE_RESOURCE, text)
            continue
        try:
            if metadata.features.metadata_version < FIRST_METADATA_VERSION:
                text = "The current metadata.version does not support SCRAM"
                raise ApiError(ErrorCode.UNSUPPORTED_VERSION, text)
            records[change.user] = JournalRecord(_record(metadata, change))
        except ApiError as error:
            errors[change.user] = error.with_traceback(None)
    reply: dict[str, ApiError | None] = dict.fromkeys(records)
    for user in stepping(errors, step):
        reply[user] = errors[user]
    free(step, errors, changes)
    return limited_outcome(reply, list(records.values()), validate_only=False)


def credential_record(upsertion: ScramUpsertion) -> UserScramCredentialRecord:
    """The record that sets a credential. Raises UNACCEPTABLE_CREDENTIAL and others."""
    mechanism = _checked(upsertion)
    if upsertion.iterations < MIN_ITERATIONS:
        raise ApiError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too few iterations")
    if upsertion.iterations > MAX_ITERATIONS:
        raise ApiError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too many iterations")
    if len(upsertion.salted_password) > MAX_SALTED_PASSWORD_BYTES:
        raise ApiError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "The salted password is too long")
    keys = keys_of(mechanism, upsertion.salted_password)
    return UserScramCredentialRecord(
        name=upsertion.user,
        mechanism=mechanism,
        salt=upsertion.salt,
        stored_key=keys.stored_key,
        server_key=keys.server_key,
        iterations=upsertion.iterations,
    )


def _record(
    metadata: ClusterMetadata, change: ScramDeletion | ScramUpsertion
) -> UserScramCredentialRecord | RemoveUserScramCredentialRecord:
    if isinstance(change, ScramUpsertion):
        return credential_record(change)
    mechanism = _checked(change)
    if (mechanism, change.user) not in metadata.scram_credentials.by_user:
        text = "Attempt to delete a user credential that does not exist"
        raise ApiError(ErrorCode.RESOURCE_NOT_FOUND, text)
    return RemoveUserScramCredentialRecord(name=change.user, mechanism=mechanism)


def _checked(change: ScramDeletion | ScramUpsertion) -> ScramMechanism:
    if not change.user:
        raise ApiError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Username must not be empty")
    if change.mechanism not in _MECHANISMS:
        raise ApiError(ErrorCode.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism")
    return ScramMechanism(change.mechanism)
