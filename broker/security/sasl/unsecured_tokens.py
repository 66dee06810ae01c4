"""Unsecured tokens of OAUTHBEARER: JSON Web Tokens without a signature, for tests.

Anyone can make such a token. The options of the login module say what is checked:

    unsecuredValidatorPrincipalClaimName     the claim that names the user; default: sub
    unsecuredValidatorScopeClaimName         the claim with the scope; default: scope
    unsecuredValidatorRequiredScope          what the scope must include, separated by spaces
    unsecuredValidatorAllowableClockSkewMs   the tolerated clock difference; default: 0

Kafka: OAuthBearerUnsecuredValidatorCallbackHandler, OAuthBearerUnsecuredJws,
OAuthBearerValidationUtils, OAuthBearerScopeUtils.
"""

import base64
import json
import math
import re
from collections.abc import Callable, Mapping
from typing import Any

from odradek.config.errors import ConfigError
from odradek.config.java_text import parse_integer

from .exchange import Login

_PREFIX = "unsecuredValidator"
_SCOPE_ITEM = re.compile(r"[\x21\x23-\x5b\x5d-\x7e]+")
_BASE64_URL = re.compile(r"[A-Za-z0-9_\-]*={0,2}")
_INT_MAX = (1 << 31) - 1


class InvalidTokenError(Exception):
    """A token is refused. `missing_scope` is what its scope must include, if that is why."""

    def __init__(self, reason: str, missing_scope: str | None = None) -> None:
        super().__init__(reason)
        self.missing_scope = missing_scope


class UnsecuredTokens:
    """Validates unsecured tokens."""

    def __init__(self, options: Mapping[str, str], now_ms: Callable[[], int]) -> None:
        """`now_ms` is the wall clock. Raises ConfigError for a wrong option."""

        def option(name: str, default: str) -> str:
            return options.get(f"{_PREFIX}{name}", "").strip() or default

        self._now_ms = now_ms
        self._user_claim = option("PrincipalClaimName", "sub")
        self._scope_claim = option("ScopeClaimName", "scope")
        self._required_scope = option("RequiredScope", "").split()
        for item in self._required_scope:
            if not _SCOPE_ITEM.fullmatch(item):
                raise ConfigError(f"Invalid scope in the option {_PREFIX}RequiredScope")
        skew = option("AllowableClockSkewMs", "0")
        try:
            self._skew_ms = parse_integer(skew, 32)
        except ValueError:
            self._skew_ms = -1
        if self._skew_ms < 0:
            raise ConfigError(
                f"Invalid option {_PREFIX}AllowableClockSkewMs: must be from 0 to {_INT_MAX}"
            )

    def validate(self, token: str) -> Login:
        """Return who the token's owner is. Raises InvalidTokenError."""
        claims = _claims_of(token)
        user = claims.get(self._user_claim)
        if not isinstance(user, str) or not user.strip():
            raise InvalidTokenError(f"the claim {self._user_claim} names nobody")
        issued_s, expires_s = number_of(claims, "iat"), number_of(claims, "exp")
        now_ms = self._now_ms()
        if expires_s is None:
            raise InvalidTokenError("it has no exp")
        if issued_s is not None and issued_s * 1000 > now_ms + self._skew_ms:
            raise InvalidTokenError("it was issued in the future")
        if now_ms - self._skew_ms >= expires_s * 1000:
            raise InvalidTokenError("it has expired")
        if issued_s is not None and expires_s <= issued_s:
            raise InvalidTokenError("it expired before it was issued")
        self._check_scope(claims.get(self._scope_claim))
        return Login(user, round(expires_s * 1000))

    def _check_scope(self, claim: Any) -> None:
        # As in Kafka, a text is one item, also if it has spaces.
        items = claim if isinstance(claim, list) else [claim]
        scope = {str(item).strip() for item in items if item is not None}
        if not scope.issuperset(self._required_scope):
            required = ", ".join(self._required_scope)
            raise InvalidTokenError("its scope is insufficient", f"[{required}]")


def _claims_of(token: str) -> dict[str, Any]:
    parts = token.split(".")
    if len(parts) != 3 or parts[2]:
        raise InvalidTokenError("it is no unsecured token: header.claims.")
    header, claims = map(_json_object, parts[:2])
    if header.get("alg") != "none":
        raise InvalidTokenError("its alg is not none")
    return claims


def _json_object(part: str) -> dict[str, Any]:
    try:
        if not _BASE64_URL.fullmatch(part):
            raise ValueError
        data = base64.urlsafe_b64decode(part.rstrip("=") + "=" * (-len(part.rstrip("=")) % 4))
        found = json.loads(data)
    except (ValueError, RecursionError):
        raise InvalidTokenError("it is no JSON in base64") from None
    if not isinstance(found, dict):
        raise InvalidTokenError("it is no JSON object")
    return found


def number_of(claims: Mapping[str, Any], name: str) -> float | None:
    """The value of a claim with seconds since 1970. Raises InvalidTokenError."""
    value = claims.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InvalidTokenError(f"its {name} is no number")
    try:
        seconds = float(value)
    except OverflowError:
        seconds = math.inf
    if not abs(seconds) < 1e15:  # also refuses infinity and NaN
        raise InvalidTokenError(f"its {name} is out of range")
    return seconds
