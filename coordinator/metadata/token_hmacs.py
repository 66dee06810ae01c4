"""The HMACs of delegation tokens: a client shows a token's HMAC to use, renew or expire it.

A token's HMAC is the HMAC-SHA-512 of its id with `delegation.token.secret.key`. It is not stored:
a reader of the metadata log without the key has no tokens. Kafka: DelegationTokenManager,
DelegationTokenCache.
"""

import hmac

from odradek.protocol.records.cluster_metadata import DelegationTokenRecord

from .delegation_tokens import DelegationTokens


class TokenHmacs:
    """Computes the HMACs of tokens, and finds tokens by them. `secret_key` is not empty."""

    def __init__(self, secret_key: str, tokens: DelegationTokens) -> None:
        self._secret_key = secret_key.encode()
        self._tokens = tokens
        self._hmac_of: dict[str, bytes] = {}
        self._id_of: dict[bytes, str] = {}

    def of(self, token_id: str) -> bytes:
        """The HMAC of a token: 64 bytes."""
        return hmac.digest(self._secret_key, token_id.encode(), "sha512")

    def token_of(self, token_hmac: bytes) -> DelegationTokenRecord | None:
        """The token with this HMAC, or None."""
        known = self._tokens.by_id
        if known.keys() != self._hmac_of.keys():
            self._hmac_of = {each: self._hmac_of.get(each) or self.of(each) for each in known}
            self._id_of = {digest: token_id for token_id, digest in self._hmac_of.items()}
        token_id = self._id_of.get(token_hmac)
        return None if token_id is None else known[token_id]
