"""Delegation tokens: which are made, renewed, expired and removed, by whom and until when."""

import pytest

from odradek.coordinator.metadata.token_changes import (
    NewToken,
    TokenRules,
    create_token,
    expire_token,
    remove_expired_tokens,
    renew_token,
)
from odradek.coordinator.metadata.token_hmacs import TokenHmacs
from odradek.coordinator.runtime.outcome import JournalRecord, Outcome
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.protocol.records.cluster_metadata import DelegationTokenRecord, FeatureLevelRecord
from tests.support.metadata import Metadata

NOW_MS = 1_000_000
MAX_LIFETIME_MS = 10_000
EXPIRY_MS = 1_000
MAX_INT64 = (1 << 63) - 1


class Tokens:
    """Metadata with the token of alice, whom bob may renew; carol has asked for it."""

    def __init__(
        self, *, max_lifetime_ms: int = MAX_LIFETIME_MS, expiry_time_ms: int = EXPIRY_MS
    ) -> None:
        self.metadata = Metadata()
        self.hmacs = TokenHmacs("secret", self.metadata.state.delegation_tokens)
        self.rules = TokenRules(
            hmacs=self.hmacs, max_lifetime_ms=max_lifetime_ms, expiry_time_ms=expiry_time_ms
        )
        self.create("token")

    def create(self, token_id: str, max_lifetime_ms: int = -1) -> DelegationTokenRecord:
        wanted = NewToken(
            token_id=token_id,
            owner="User:alice",
            requester="User:carol",
            renewers=["User:bob"],
            max_lifetime_ms=max_lifetime_ms,
        )
        outcome = create_token(self.metadata.state, wanted, self.rules, NOW_MS)
        return self.metadata.commit(outcome)

    @property
    def token(self) -> DelegationTokenRecord:
        return self.metadata.state.delegation_tokens.by_id["token"]

    def renew(
        self, period_ms: int = -1, *, by: str = "User:alice", now_ms: int = NOW_MS, name: str = ""
    ) -> int:
        token_hmac = self.hmacs.of(name or "token")
        state = self.metadata.state
        return self.metadata.commit(
            renew_token(state, token_hmac, period_ms, by, self.rules, now_ms)
        )

    def expire(
        self, period_ms: int = -1, *, by: str = "User:alice", now_ms: int = NOW_MS, name: str = ""
    ) -> int:
        token_hmac = self.hmacs.of(name or "token")
        state = self.metadata.state
        return self.metadata.commit(
            expire_token(state, token_hmac, period_ms, by, self.rules, now_ms)
        )


def code_of(error: pytest.ExceptionInfo[ApiError]) -> ErrorCode:
    return error.value.code


def test_a_token_lives_as_long_as_is_allowed_and_expires_earlier_unless_renewed() -> None:
    assert Tokens().token == DelegationTokenRecord(
        owner="User:alice",
        requester="User:carol",
        renewers=["User:bob"],
        issue_timestamp=NOW_MS,
        max_timestamp=NOW_MS + MAX_LIFETIME_MS,
        expiration_timestamp=NOW_MS + EXPIRY_MS,
        token_id="token",
    )


@pytest.mark.parametrize(
    ("asked_ms", "given_ms"), [(-1, 10_000), (0, 10_000), (500, 500), (10_001, 10_000)]
)
def test_a_client_may_ask_for_a_shorter_lifetime(asked_ms: int, given_ms: int) -> None:
    token = Tokens().create("other", asked_ms)
    assert token.max_timestamp == NOW_MS + given_ms
    assert token.expiration_timestamp == NOW_MS + min(given_ms, EXPIRY_MS)


def test_times_stay_in_an_int64() -> None:
    tokens = Tokens(max_lifetime_ms=MAX_INT64, expiry_time_ms=MAX_INT64)
    assert tokens.token.max_timestamp == tokens.token.expiration_timestamp == MAX_INT64
    assert tokens.renew() == tokens.expire(MAX_INT64) == MAX_INT64


@pytest.mark.parametrize(
    ("asked_ms", "given_ms"), [(-1, 1_000), (0, 1_000), (7, 7), (9_999, 1_000)]
)
@pytest.mark.parametrize("renewer", ["User:alice", "User:bob"])
def test_owner_and_renewers_renew_a_token(asked_ms: int, given_ms: int, renewer: str) -> None:
    tokens = Tokens()
    assert tokens.renew(asked_ms, by=renewer, now_ms=NOW_MS + 500) == NOW_MS + 500 + given_ms
    assert tokens.token.expiration_timestamp == NOW_MS + 500 + given_ms
    assert tokens.token.max_timestamp == NOW_MS + MAX_LIFETIME_MS


def test_a_token_is_not_renewed_beyond_its_lifetime() -> None:
    tokens = Tokens()
    tokens.expire(20_000)
    assert tokens.token.expiration_timestamp == NOW_MS + MAX_LIFETIME_MS
    assert tokens.renew(now_ms=NOW_MS + 9_500) == NOW_MS + MAX_LIFETIME_MS


def test_neither_the_requester_nor_others_renew_or_expire_a_token() -> None:
    tokens = Tokens()
    for stranger in ("User:carol", "User:dave", "Group:alice"):
        for act in (tokens.renew, tokens.expire):
            with pytest.raises(ApiError) as error:
                act(by=stranger)
            assert code_of(error) == ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH


def test_an_expired_token_is_not_renewed_but_can_be_removed() -> None:
    tokens = Tokens()
    late_ms = NOW_MS + EXPIRY_MS + 1
    assert tokens.renew(1, now_ms=late_ms - 1) == late_ms
    with pytest.raises(ApiError) as error:
        tokens.renew(now_ms=late_ms + 1, by="User:dave")  # before the owner is looked at
    assert code_of(error) == ErrorCode.DELEGATION_TOKEN_EXPIRED
    with pytest.raises(ApiError) as error:
        tokens.expire(5, now_ms=late_ms + 1)
    assert code_of(error) == ErrorCode.DELEGATION_TOKEN_EXPIRED
    assert tokens.expire(-1, now_ms=late_ms + 1) == late_ms + 1
    assert not tokens.metadata.state.delegation_tokens.by_id


def test_a_token_that_expires_at_once_is_expired_in_the_next_millisecond() -> None:
    tokens = Tokens()
    assert tokens.expire(0) == NOW_MS
    assert tokens.renew(5) == NOW_MS + 5
    tokens.expire(0)
    with pytest.raises(ApiError) as error:
        tokens.renew(5, now_ms=NOW_MS + 1)
    assert code_of(error) == ErrorCode.DELEGATION_TOKEN_EXPIRED


def test_a_removed_or_unknown_token_is_not_found() -> None:
    tokens = Tokens()
    tokens.expire()
    for act in (tokens.renew, tokens.expire):
        for name in ("token", "unknown"):
            with pytest.raises(ApiError) as error:
                act(name=name)
            assert code_of(error) == ErrorCode.DELEGATION_TOKEN_NOT_FOUND


def test_without_a_secret_key_nothing_is_done() -> None:
    state = Metadata().state
    rules = TokenRules(hmacs=None, max_lifetime_ms=1, expiry_time_ms=1)
    wanted = NewToken(token_id="a", owner="", requester="", renewers=[], max_lifetime_ms=1)
    for decide in (
        lambda: create_token(state, wanted, rules, NOW_MS),
        lambda: renew_token(state, b"", 1, "User:alice", rules, NOW_MS),
        lambda: expire_token(state, b"", 1, "User:alice", rules, NOW_MS),
    ):
        with pytest.raises(ApiError) as error:
            decide()
        assert code_of(error) == ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED


def test_a_metadata_version_without_tokens_gets_none() -> None:
    tokens = Tokens()
    level = FeatureLevelRecord(name="metadata.version", feature_level=13)
    tokens.metadata.commit(Outcome(reply=None, records=(JournalRecord(level),)))
    for act in (lambda: tokens.create("other"), tokens.renew, tokens.expire):
        with pytest.raises(ApiError) as error:
            act()
        assert code_of(error) == ErrorCode.UNSUPPORTED_VERSION


def test_only_expired_tokens_are_removed_in_the_periodic_check() -> None:
    tokens = Tokens()
    tokens.create("short", 500)
    state = tokens.metadata.state
    for now_ms, left in ((NOW_MS + 500, {"token", "short"}), (NOW_MS + 501, {"token"})):
        ids = list(state.delegation_tokens.by_id)
        tokens.metadata.commit(remove_expired_tokens(state, ids, now_ms))
        assert set(state.delegation_tokens.by_id) == left


def test_a_restart_finds_the_tokens_with_their_times() -> None:
    tokens = Tokens()
    tokens.create("other")
    tokens.renew(7)
    restarted = tokens.metadata.restarted().state.delegation_tokens
    assert restarted.by_id == tokens.metadata.state.delegation_tokens.by_id
    assert TokenHmacs("secret", restarted).token_of(tokens.hmacs.of("token")) == tokens.token
    assert TokenHmacs("another", restarted).token_of(tokens.hmacs.of("token")) is None


def test_hmacs_are_computed_in_steps_and_only_those_of_new_tokens(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tokens = Tokens()
    for number in range(5):
        tokens.create(f"token-{number}")
    hmacs = tokens.hmacs
    computed: list[str] = []
    of = hmacs.of

    def noted(token_id: str) -> bytes:
        computed.append(token_id)
        return of(token_id)

    monkeypatch.setattr(hmacs, "of", noted)

    def compute() -> int:
        computed.clear()
        steps: list[object] = []
        hmacs.update(lambda: steps.append(None))
        return len(steps)

    assert (compute(), len(computed)) == (6, 6)
    tokens.create("new")
    assert (compute(), computed) == (1, ["new"])
    tokens.expire(-1)
    assert hmacs.token_of(of("token")) is None
    assert (compute(), computed) == (0, [])


def test_the_hmac_of_a_token_is_kafkas() -> None:
    """Made by DelegationTokenManager.createHmac of Kafka 4.3.0."""
    hmac = TokenHmacs("secret", Metadata().state.delegation_tokens).of("c2VjcmV0LXRva2VuLWlkMQ")
    assert hmac.hex() == (
        "4df9d0e2119184330c3b578146e5efb46f6748c57e56b15c0cd7c811e418ecc1"
        "6fb16c2110981ab1a70b89eff65a6080edf6e6adec20098fa9747c3f53fbb1e6"
    )
