"""Signed tokens of OAUTHBEARER: JSON Web Tokens that an issuer has signed.

The signature must be of a key of the issuer, in an algorithm of that key; exp and iat must be
there; audience and issuer must be those expected. A token with an audience is refused if none is
expected.

Kafka: BrokerJwtValidator, ClaimValidationUtils, and the JWT library that it uses, jose4j.
"""

import json
from collections.abc import Callable, Mapping
from typing import Any

from jwt import PyJWK
from jwt.api_jws import PyJWS
from jwt.exceptions import PyJWTError

from .exchange import Login
from .token_settings import ExpectedClaims, IssuerKeys
from .unsecured_tokens import InvalidTokenError, number_of

# The algorithms of each type of key. A token must not choose one of another type: with HS256, it
# could be signed by the text of a public key.
ALGORITHMS = {
    "RSA": ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"),
    "EC": ("ES256", "ES384", "ES512"),
    "OKP": ("EdDSA",),
    "oct": ("HS256", "HS384", "HS512"),
}


class SignedTokens:
    """Validates signed tokens."""

    def __init__(
        self, keys: IssuerKeys, expected: ExpectedClaims, now_ms: Callable[[], int]
    ) -> None:
        """`now_ms` is the wall clock."""
        self._keys = keys
        self._expected = expected
        self._now_ms = now_ms
        self._jws = PyJWS()

    def validate(self, token: str) -> Login:
        """Return who the token's owner is. Raises InvalidTokenError."""
        claims = self._verified_claims(token)
        expires_s = self._check_times(claims)
        self._check_origin(claims)
        self._check_scope(claims.get(self._expected.scope_claim))
        user = claims.get(self._expected.user_claim)
        if not isinstance(user, str) or not user.strip():
            raise InvalidTokenError(f"the claim {self._expected.user_claim} names nobody")
        return Login(user.strip(), int(expires_s * 1000))

    def _verified_claims(self, token: str) -> dict[str, Any]:
        try:
            header = self._jws.get_unverified_header(token)
        except (PyJWTError, ValueError, RecursionError):
            raise InvalidTokenError("it is no signed token") from None
        algorithm, key_id = header.get("alg"), header.get("kid")
        candidates = [
            key for key in self._keys.keys if _fits(key, algorithm=algorithm, key_id=key_id)
        ]
        for key in candidates:
            try:
                payload = self._jws.decode(token, PyJWK(dict(key), algorithm), [str(algorithm)])
                claims = json.loads(payload)
            except (PyJWTError, ValueError, TypeError, RecursionError):
                continue
            if isinstance(claims, dict):
                return claims
        if not candidates and isinstance(key_id, str):
            self._keys.note_missing(key_id)
            raise InvalidTokenError("its key is unknown")
        raise InvalidTokenError("its signature is not valid")

    def _check_times(self, claims: Mapping[str, Any]) -> float:
        issued_s, expires_s = number_of(claims, "iat"), number_of(claims, "exp")
        not_before_s = number_of(claims, "nbf")
        now_s, skew_s = self._now_ms() // 1000, self._expected.skew_s
        if issued_s is None or expires_s is None:
            raise InvalidTokenError("it has no exp or no iat")
        if now_s - skew_s >= expires_s:
            raise InvalidTokenError("it has expired")
        if not_before_s is not None and now_s + skew_s < not_before_s:
            raise InvalidTokenError("it is not valid yet")
        if expires_s < max(issued_s, not_before_s or 0) or issued_s < 0:
            raise InvalidTokenError("its times contradict each other")
        return expires_s

    def _check_origin(self, claims: Mapping[str, Any]) -> None:
        found = claims.get("aud", [])
        audiences = found if isinstance(found, list) else [found]
        expected = self._expected.audiences
        if (audiences or expected) and not any(audience in expected for audience in audiences):
            raise InvalidTokenError("it is for another audience")
        if self._expected.issuer is not None and claims.get("iss") != self._expected.issuer:
            raise InvalidTokenError("it is from another issuer")

    def _check_scope(self, claim: Any) -> None:
        scope = [claim] if isinstance(claim, str) else claim if isinstance(claim, list) else []
        texts = [item.strip() if isinstance(item, str) else "" for item in scope]
        if not all(texts) or len(set(texts)) < len(texts):
            raise InvalidTokenError("its scope has an empty or duplicate item")


def _fits(key: Mapping[str, Any], *, algorithm: object, key_id: object) -> bool:
    """Whether a token of this algorithm and key id may be signed by the key."""
    return (
        algorithm in ALGORITHMS.get(str(key.get("kty")), ())
        and key.get("alg", algorithm) == algorithm
        and key.get("use", "sig") == "sig"
        and (key_id is None or key.get("kid") == key_id)
    )
