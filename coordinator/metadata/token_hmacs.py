"""The HMACs of delegation tokens: a client shows a token's HMAC to use, renew or expire it.

A token's HMAC is the HMAC-SHA-512 of its id with `delegation.token.secret.key`. It is not stored:
a reader of the metadata log without the key has no tokens. Kafka: DelegationTokenManager,
DelegationTokenCache.
"""

import hmac

from odradek.coordinator.runtime.steps import Step, no_step, stepping
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
        self.update()
        token_id = self._id_of.get(token_hmac)
        return None if token_id is None else self._tokens.by_id[token_id]

    def update(self, step: Step = no_step) -> None:
        """Compute the HMACs of new tokens, after a start those of all: 15 µs each."""
        known = self._tokens.by_id
        for token_id in stepping(list(self._hmac_of.keys() - known.keys()), step):
            removed = self._hmac_of.pop(token_id, None)
            if removed is not None:  # else another request has removed it in a step
                del self._id_of[removed]
        for token_id in stepping(list(known.keys() - self._hmac_of.keys()), step):
            self._hmac_of[token_id] = self.of(token_id)
            self._id_of[self._hmac_of[token_id]] = token_id
