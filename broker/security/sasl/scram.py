"""SCRAM (RFC 5802, RFC 7677): the client proves that it knows its password without sending it.

    client first   n,[a=authzid],n=name,r=client-nonce[,tokenauth=true]
    server first   r=client-nonce server-nonce,s=salt,i=iterations
    client final   c=channel binding,r=both nonces,p=proof
    server final   v=signature

The salted password is hashed by the client. The server has only the stored key and the server key,
so an exchange costs a few hashes.

An unknown name gets a salt and iterations too, and its proof is refused, so that a client cannot
find out which names exist. (Kafka refuses an unknown name at the first message.) They are the same
at each login, as those of a known name are.

Kafka: ScramSaslServer, ScramMessages, ScramFormatter.
"""

import base64
import binascii
import hmac
import re
import secrets
from typing import NamedTuple

from odradek.coordinator.metadata.scram_mechanisms import MIN_ITERATIONS, ScramMechanism, salt_of

from .exchange import NAME, Login, SaslError, Step, check_authorization_id
from .scram_credential import CredentialOf, DecoyIterations, ScramCredential

# A message is matched on the event loop, 100 ns a byte, before anybody is logged in.
MAX_MESSAGE_BYTES = 16 << 10
_VALUE = r"[\x01-\x2b\x2d-\x7f]+"
_NONCE = r"[\x21-\x2b\x2d-\x7e]+"
_BASE64 = "(?:[a-zA-Z0-9/+]{4})*(?:[a-zA-Z0-9/+]{3}=|[a-zA-Z0-9/+]{2}==)?"
_EXTENSIONS = f"(?:,[A-Za-z]+={_VALUE})*"
_CLIENT_FIRST = re.compile(
    f"n,(?:a=(?P<authzid>{NAME}))?,"
    f"(?P<bare>(?:m={_VALUE},)?n=(?P<name>{NAME}),r=(?P<nonce>{_NONCE})(?P<extensions>{_EXTENSIONS}))"
)
_CLIENT_FINAL = re.compile(
    f"(?P<without_proof>c={_BASE64},r=(?P<nonce>{_NONCE}){_EXTENSIONS}),p=(?P<proof>{_BASE64})"
)


class DecoyCredentials:
    """Makes up credentials for names that have none, so that clients cannot find out who exists.

    Salt and iterations look like a user's, and are the same at each login. Nobody can log in with
    such a credential.
    """

    def __init__(self, decoy_iterations: DecoyIterations) -> None:
        self._secret = secrets.token_bytes(32)
        self._decoy_iterations = decoy_iterations

    def credential_of(
        self, mechanism: ScramMechanism, name: str, is_token: bool
    ) -> ScramCredential:
        """A credential for a name; if `is_token`, for the id of a delegation token."""
        text = f"{mechanism} {name}".encode("utf-8", "surrogatepass")
        number = int.from_bytes(hmac.digest(self._secret, text, "sha256"))
        iterations = None if is_token else self._decoy_iterations(mechanism, number >> 130)
        return ScramCredential(
            salt_of(number), self._secret, self._secret, iterations or MIN_ITERATIONS, Login("")
        )


class ScramExchange:
    """A login with SCRAM."""

    def __init__(
        self, mechanism: ScramMechanism, credential_of: CredentialOf, decoys: DecoyCredentials
    ) -> None:
        self._mechanism = mechanism
        self._credential_of = credential_of
        self._decoys = decoys
        self._waiting: _ExpectedProof | None = None

    def evaluate(self, token: bytes) -> Step:
        """Evaluate the client's first or final message. Raises SaslError."""
        if len(token) > MAX_MESSAGE_BYTES:
            raise SaslError(f"a SCRAM message of {len(token)} bytes is too long")
        message = token.decode("utf-8", "replace")
        if self._waiting is None:
            self._waiting = self._first(message)
            return Step(self._waiting.server_first.encode())
        return self._waiting.check(message)

    def _first(self, message: str) -> "_ExpectedProof":
        match = _CLIENT_FIRST.fullmatch(message)
        if match is None:
            raise SaslError("Invalid SCRAM client first message format")
        name = user_name(match["name"])
        extensions = dict(part.split("=", 1) for part in match["extensions"].split(",")[1:])
        by_token = extensions.get("tokenauth", "").lower() == "true"
        found = self._credential_of(self._mechanism, name, by_token)
        # It is made for every name, so that an unknown one takes the same time as a known one.
        decoy = self._decoys.credential_of(self._mechanism, name, by_token)
        check_authorization_id(match["authzid"], name)
        if found is not None and found.iterations < MIN_ITERATIONS:
            raise SaslError(
                f"Iterations {found.iterations} is less than the minimum {MIN_ITERATIONS}"
            )
        nonce = match["nonce"] + secrets.token_urlsafe(18)
        credential = found or decoy
        salt = base64.b64encode(credential.salt).decode()
        return _ExpectedProof(
            mechanism=self._mechanism,
            credential=credential,
            is_known=found is not None,
            nonce=nonce,
            client_first_bare=match["bare"],
            server_first=f"r={nonce},s={salt},i={credential.iterations}",
        )


class _ExpectedProof(NamedTuple):
    """The state after the first two messages."""

    mechanism: ScramMechanism
    credential: ScramCredential
    is_known: bool
    nonce: str
    client_first_bare: str
    server_first: str

    def check(self, message: str) -> Step:
        """Check the client's proof, and return the server's signature. Raises SaslError."""
        match = _CLIENT_FINAL.fullmatch(message)
        if match is None:
            raise SaslError("Invalid SCRAM client final message format")
        if not hmac.compare_digest(match["nonce"].encode(), self.nonce.encode()):
            raise SaslError("Invalid client nonce in the final client message")
        credential, hash_name = self.credential, self.mechanism.hash_name
        signed = f"{self.client_first_bare},{self.server_first},{match['without_proof']}".encode()
        signature = hmac.digest(credential.stored_key, signed, hash_name)
        proof = _decoded(match["proof"])
        if len(proof) != len(signature):
            raise SaslError("Invalid client credentials")
        client_key = (int.from_bytes(signature) ^ int.from_bytes(proof)).to_bytes(len(proof))
        is_proved = hmac.compare_digest(self.mechanism.digest(client_key), credential.stored_key)
        if not (is_proved and self.is_known):
            raise SaslError("Invalid client credentials")
        verifier = base64.b64encode(hmac.digest(credential.server_key, signed, hash_name))
        return Step(b"v=" + verifier, credential.login)


def user_name(sasl_name: str) -> str:
    """The name that a client has escaped: =2C is a comma and =3D an equals sign."""
    return sasl_name.replace("=2C", ",").replace("=3D", "=")


def _decoded(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error:
        raise SaslError("Invalid base64 in the final client message") from None
