"""Computes the records that create, renew and remove delegation tokens (KIP-48).

A token expires at its expiration timestamp, unless it is renewed, and at its max timestamp in any
case. An expired token is useless at once; the periodic removal only frees its record. Principals
are texts, "User:alice", as in the records.

Kafka: DelegationTokenControlManager.
"""

from collections.abc import Iterable, Sequence

from msgspec import Struct

from odradek.coordinator.runtime.outcome import JournalRecord, Outcome
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.protocol.records.cluster_metadata import (
    DelegationTokenRecord,
    RemoveDelegationTokenRecord,
)
from odradek.protocol.schema import replace

from .cluster_metadata import ClusterMetadata
from .token_hmacs import TokenHmacs

FIRST_VERSION_WITH_TOKENS = 14  # metadata.version 3.6-IV2
_MAX_INT64 = (1 << 63) - 1


class TokenRules(Struct, frozen=True, kw_only=True):
    """The settings of tokens. Without a secret key `hmacs` is None, and all tokens are refused."""

    hmacs: TokenHmacs | None
    max_lifetime_ms: int
    expiry_time_ms: int


class NewToken(Struct, frozen=True, kw_only=True):
    """A request for a token. A `max_lifetime_ms` of 0 or less stands for the longest allowed."""

    token_id: str
    owner: str
    requester: str
    renewers: Sequence[str]
    max_lifetime_ms: int


def create_token(
    metadata: ClusterMetadata, wanted: NewToken, rules: TokenRules, now_ms: int
) -> Outcome[DelegationTokenRecord]:
    """Create a token. Raises DELEGATION_TOKEN_AUTH_DISABLED, UNSUPPORTED_VERSION."""
    _check_enabled(metadata, rules)
    lifetime_ms = _limited(wanted.max_lifetime_ms, rules.max_lifetime_ms)
    max_timestamp = _sum(now_ms, lifetime_ms)
    token = DelegationTokenRecord(
        owner=wanted.owner,
        requester=wanted.requester,
        renewers=list(wanted.renewers),
        issue_timestamp=now_ms,
        max_timestamp=max_timestamp,
        expiration_timestamp=min(max_timestamp, _sum(now_ms, rules.expiry_time_ms)),
        token_id=wanted.token_id,
    )
    return Outcome(reply=token, records=(JournalRecord(token),))


def renew_token(
    metadata: ClusterMetadata,
    token_hmac: bytes,
    period_ms: int,
    requester: str,
    rules: TokenRules,
    now_ms: int,
) -> Outcome[int]:
    """Let a token expire `period_ms` from now. The reply is when it expires.

    A period of 0 or less stands for the longest allowed. Raises DELEGATION_TOKEN_NOT_FOUND,
    DELEGATION_TOKEN_EXPIRED, DELEGATION_TOKEN_OWNER_MISMATCH, and what create_token raises.
    """
    token = _token(metadata, token_hmac, rules)
    _check_not_expired(token, now_ms)
    _check_renewer(token, requester)
    return _expiring(token, _sum(now_ms, _limited(period_ms, rules.expiry_time_ms)))


def expire_token(
    metadata: ClusterMetadata,
    token_hmac: bytes,
    period_ms: int,
    requester: str,
    rules: TokenRules,
    now_ms: int,
) -> Outcome[int]:
    """Let a token expire `period_ms` from now; a negative period removes it. As renew_token."""
    token = _token(metadata, token_hmac, rules)
    _check_renewer(token, requester)
    if period_ms < 0:
        return Outcome(reply=now_ms, records=(_removal(token),))
    _check_not_expired(token, now_ms)
    return _expiring(token, _sum(now_ms, period_ms))


def remove_expired_tokens(
    metadata: ClusterMetadata, token_ids: Iterable[str], now_ms: int
) -> Outcome[list[DelegationTokenRecord]]:
    """Remove those of the tokens that have expired. The reply is what they were."""
    tokens = map(metadata.delegation_tokens.by_id.get, token_ids)
    expired = [token for token in tokens if token is not None and is_expired(token, now_ms)]
    return Outcome(reply=expired, records=tuple(map(_removal, expired)), atomic=False)


def is_expired(token: DelegationTokenRecord, now_ms: int) -> bool:
    """Whether a token is useless at a time."""
    return token.max_timestamp < now_ms or token.expiration_timestamp < now_ms


def _check_enabled(metadata: ClusterMetadata, rules: TokenRules) -> TokenHmacs:
    if rules.hmacs is None:
        text = "Delegation Token feature is not enabled."
        raise ApiError(ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED, text)
    if metadata.features.metadata_version < FIRST_VERSION_WITH_TOKENS:
        text = f"delegation tokens need metadata.version {FIRST_VERSION_WITH_TOKENS}"
        raise ApiError(ErrorCode.UNSUPPORTED_VERSION, text)
    return rules.hmacs


def _token(
    metadata: ClusterMetadata, token_hmac: bytes, rules: TokenRules
) -> DelegationTokenRecord:
    token = _check_enabled(metadata, rules).token_of(token_hmac)
    if token is None:
        text = "Delegation Token is not found on server."
        raise ApiError(ErrorCode.DELEGATION_TOKEN_NOT_FOUND, text)
    return token


def _check_not_expired(token: DelegationTokenRecord, now_ms: int) -> None:
    if is_expired(token, now_ms):
        raise ApiError(ErrorCode.DELEGATION_TOKEN_EXPIRED, "Delegation Token is expired.")


def _check_renewer(token: DelegationTokenRecord, requester: str) -> None:
    if requester != token.owner and requester not in token.renewers:
        text = "Specified Principal is not valid Owner/Renewer."
        raise ApiError(ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH, text)


def _expiring(token: DelegationTokenRecord, at_ms: int) -> Outcome[int]:
    expiration_ms = min(token.max_timestamp, at_ms)
    renewed = replace(token, expiration_timestamp=expiration_ms)
    return Outcome(reply=expiration_ms, records=(JournalRecord(renewed),))


def _removal(token: DelegationTokenRecord) -> JournalRecord:
    return JournalRecord(RemoveDelegationTokenRecord(token_id=token.token_id))


def _limited(asked_ms: int, limit_ms: int) -> int:
    return min(asked_ms, limit_ms) if asked_ms > 0 else limit_ms


def _sum(now_ms: int, duration_ms: int) -> int:
    return min(now_ms + duration_ms, _MAX_INT64)
