"""The state machine of the login on one connection.

    state                    waits for                          then
    VERSIONS_OR_HANDSHAKE    ApiVersions                        HANDSHAKE
                             SaslHandshake                      TOKENS, RAW_TOKENS (v0) or FAILED
    HANDSHAKE                SaslHandshake                      the same
    TOKENS                   SaslAuthenticate                   itself, COMPLETE or FAILED
    RAW_TOKENS               frames that are only a token       the same
    COMPLETE                 any request, until the deadline    FAILED
                             SaslHandshake: a new login         TOKENS, RAW_TOKENS, OTHER_MECHANISM
                             (KIP-368)                          or FAILED
    OTHER_MECHANISM          nothing: a new login must use the mechanism of the first
    FAILED                   nothing: the connection is closed

`session.guard` is the Authenticator as long as it has to check each request. It is None once the
client is authenticated, unless the login has a deadline: then a request after it closes the
connection, except the SaslHandshake of a new login.

Kafka: SaslServerAuthenticator, KafkaChannel.maybeBeginServerReauthentication.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum, auto
from typing import NamedTuple, Protocol

from odradek.broker.security.principal import USER, Principal
from odradek.coordinator.runtime.timers import Now
from odradek.protocol.api_keys import ApiKey

from .exchange import Exchange, Login, NewExchange, SaslAuthenticationError, SaslError
from .failed_logins import FailedLogins
from .token_settings import IssuerKeys, KeySource

# A connection may log in again at most so often.
MIN_REAUTHENTICATION_MS = 1_000


class Session(Protocol):
    """What a login sets of a connection's session (security/session.py)."""

    principal: Principal | None
    token_authenticated: bool
    max_request_bytes: int
    guard: Authenticator | None


class State(Enum):
    """See the module."""

    VERSIONS_OR_HANDSHAKE = auto()
    HANDSHAKE = auto()
    TOKENS = auto()
    RAW_TOKENS = auto()
    COMPLETE = auto()
    OTHER_MECHANISM = auto()
    FAILED = auto()


_AFTER_HANDSHAKE = frozenset({State.TOKENS, State.RAW_TOKENS, State.FAILED})
_AFTER_TOKEN = frozenset({State.COMPLETE, State.FAILED})
LEGAL = {
    State.VERSIONS_OR_HANDSHAKE: _AFTER_HANDSHAKE | {State.HANDSHAKE},
    State.HANDSHAKE: _AFTER_HANDSHAKE,
    State.TOKENS: _AFTER_TOKEN,
    State.RAW_TOKENS: _AFTER_TOKEN,
    State.COMPLETE: _AFTER_HANDSHAKE | {State.OTHER_MECHANISM},
    State.OTHER_MECHANISM: frozenset({State.FAILED}),
    State.FAILED: frozenset[State](),
}
# The requests that each state accepts. COMPLETE accepts all. SaslHandshake is answered with an
# error in TOKENS.
ACCEPTED = {
    State.VERSIONS_OR_HANDSHAKE: frozenset({ApiKey.API_VERSIONS, ApiKey.SASL_HANDSHAKE}),
    State.HANDSHAKE: frozenset({ApiKey.SASL_HANDSHAKE}),
    State.TOKENS: frozenset({ApiKey.SASL_AUTHENTICATE, ApiKey.SASL_HANDSHAKE}),
    State.RAW_TOKENS: frozenset[ApiKey](),
    State.OTHER_MECHANISM: frozenset[ApiKey](),
    State.FAILED: frozenset[ApiKey](),
}


class LoginMechanism(NamedTuple):
    """A mechanism of a listener; `max_reauth_ms` is the longest validity of a login; 0: no end."""

    new_exchange: NewExchange
    max_reauth_ms: int


class LoginListener(NamedTuple):
    """A listener whose clients log in; its mechanisms by name, and the keys that they use."""

    name: str
    mechanisms: dict[str, LoginMechanism]
    max_receive_bytes: int
    max_request_bytes: int
    issuers: Mapping[KeySource, IssuerKeys]


class UnsupportedMechanismError(Exception):
    """The client asks for a mechanism that its listener does not have."""


class IllegalSaslStateError(Exception):
    """A SASL request came out of turn; `is_final` if the connection is to be closed."""

    def __init__(self, *, is_final: bool) -> None:
        super().__init__()
        self.is_final = is_final


class LoginFailedError(Exception):
    """A login has failed. The message is for the client."""


class Evaluated(NamedTuple):
    """The token for the client, and how long its login is valid in ms; 0: no end, or no login."""

    token: bytes
    session_lifetime_ms: int


class Authenticator:
    """The login of one connection. Its methods get the connection's session."""

    __slots__ = (
        "_clock",
        "_current",
        "_deadline_ms",
        "_exchange",
        "_failures",
        "_listener",
        "_mechanism",
        "_previous",
        "_reauthenticated_ms",
        "_state",
    )

    def __init__(
        self, current: Callable[[], LoginListener], failures: FailedLogins, clock: Callable[[], Now]
    ) -> None:
        """`current` returns the listener as it is configured now."""
        self._current = current
        self._listener = current()
        self._failures = failures
        self._clock = clock
        self._state = State.VERSIONS_OR_HANDSHAKE
        self._mechanism: str | None = None
        self._exchange: Exchange | None = None
        self._deadline_ms: int | None = None  # on the timer clock
        self._previous: Principal | None = None  # who logs in again
        self._reauthenticated_ms: int | None = None  # on the timer clock

    # -- for every request ------------------------------------------------------------------------

    @property
    def takes_raw_tokens(self) -> bool:
        """Whether the next frame is a token without a request's header."""
        return self._state is State.RAW_TOKENS

    def admits(self, session: Session, api_key: int) -> bool:
        """Whether a request may be handled. If not, the connection must be closed."""
        if self._state is State.COMPLETE:
            if self._is_in_time(api_key):
                return True
            self._fail(session, "the login has expired")
        elif api_key in ACCEPTED[self._state]:
            return True
        elif self._state is State.OTHER_MECHANISM:
            self._fail(session, "a new login must use the mechanism of the first")
        elif self._state is not State.FAILED:
            self._fail(session, f"API key {api_key} came before authentication")
        return False

    def _is_in_time(self, api_key: int) -> bool:
        assert self._deadline_ms is not None
        now_ms = self._clock().timer_ms
        is_new_login = api_key == ApiKey.SASL_HANDSHAKE and self._may_reauthenticate(now_ms)
        return is_new_login or now_ms <= self._deadline_ms

    # -- SaslHandshake and what comes before ------------------------------------------------------

    def versions_sent(self) -> None:
        """Note that ApiVersions has been answered."""
        if self._state is State.VERSIONS_OR_HANDSHAKE:
            self._become(State.HANDSHAKE)

    def choose(self, session: Session, mechanism: str, *, raw_tokens: bool) -> list[str]:
        """Begin a login. Returns the names of the listener's mechanisms.

        Raises IllegalSaslStateError, and UnsupportedMechanismError, after which `mechanisms` has
        the names.
        """
        self._check_turn(session)
        self._listener = self._current()
        found = self._listener.mechanisms.get(mechanism)
        if found is None:
            self._fail(session, "unsupported mechanism")
            raise UnsupportedMechanismError
        if self._state is State.COMPLETE and mechanism != self._mechanism:
            self._become(State.OTHER_MECHANISM)
            return self.mechanisms
        if self._state is State.COMPLETE:
            self._previous = session.principal
        self._mechanism = mechanism
        self._exchange = found.new_exchange()
        self._become(State.RAW_TOKENS if raw_tokens else State.TOKENS)
        return self.mechanisms

    @property
    def mechanisms(self) -> list[str]:
        """The names of the listener's mechanisms."""
        return list(self._listener.mechanisms)

    def _check_turn(self, session: Session) -> None:
        if self._state is State.TOKENS:
            self._fail(session, "SaslHandshake instead of SaslAuthenticate")
            raise IllegalSaslStateError(is_final=True)
        if self._state is State.COMPLETE:
            now_ms = self._clock().timer_ms
            if not self._may_reauthenticate(now_ms):
                raise IllegalSaslStateError(is_final=False)
            self._reauthenticated_ms = now_ms

    def _may_reauthenticate(self, now_ms: int) -> bool:
        last_ms = self._reauthenticated_ms
        return last_ms is None or now_ms - last_ms >= MIN_REAUTHENTICATION_MS

    # -- tokens -----------------------------------------------------------------------------------

    def evaluate(self, session: Session, token: bytes) -> Evaluated:
        """Evaluate the client's next token. When the login is complete, the session has it.

        Raises LoginFailedError, IllegalSaslStateError.
        """
        if self._state is State.COMPLETE:
            raise IllegalSaslStateError(is_final=False)
        assert self._exchange is not None
        try:
            step = self._exchange.evaluate(token)
            if step.login is None:
                return Evaluated(step.token, 0)
            principal = Principal(USER, step.login.user)
            self._check_unchanged(principal)
        except SaslAuthenticationError as error:
            self._fail(session, str(error))
            raise LoginFailedError(str(error)) from None
        except SaslError as error:
            # The client is not told why: it could find out which users exist.
            self._fail(session, str(error))
            raise LoginFailedError(
                f"Authentication failed during {self._what} due to invalid credentials with SASL"
                f" mechanism {self._mechanism}"
            ) from None
        return Evaluated(step.token, self._complete(session, principal, step.login))

    def _check_unchanged(self, principal: Principal) -> None:
        old = self._previous
        if old not in (None, principal):
            assert old is not None
            raise SaslAuthenticationError(
                "Cannot change principals during re-authentication from"
                f" {old.kind}.{old.name}: {principal.kind}.{principal.name}"
            )

    def _complete(self, session: Session, principal: Principal, login: Login) -> int:
        self._exchange = self._previous = None
        self._become(State.COMPLETE)
        session.principal = principal
        session.token_authenticated = login.by_token
        session.max_request_bytes = self._listener.max_request_bytes
        lifetime_ms = self._lifetime_ms(login)
        if lifetime_ms is None:
            session.guard = None
            return 0
        self._deadline_ms = self._clock().timer_ms + lifetime_ms
        return lifetime_ms

    def _lifetime_ms(self, login: Login) -> int | None:
        assert self._mechanism is not None
        mechanism = self._listener.mechanisms[self._mechanism]
        limits = [mechanism.max_reauth_ms] if mechanism.max_reauth_ms > 0 else []
        if login.expires_at_ms is not None:
            limits.append(login.expires_at_ms - self._clock().wall_ms)
        return max(0, min(limits)) if limits else None

    @property
    def _what(self) -> str:
        return "authentication" if self._previous is None else "re-authentication"

    def _fail(self, session: Session, reason: str) -> None:
        self._become(State.FAILED)
        self._exchange = None
        self._failures.note(session, self._listener.name, self._mechanism, reason)

    def _become(self, state: State) -> None:
        assert state in LEGAL[self._state], f"{self._state} -> {state}"
        self._state = state
