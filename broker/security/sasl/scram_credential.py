"""The stored SCRAM credential of a user, or of a delegation token that logs in by SCRAM."""

from collections.abc import Callable
from typing import NamedTuple

from odradek.coordinator.metadata.scram_mechanisms import ScramMechanism

from .exchange import Login


class ScramCredential(NamedTuple):
    """The salt and the keys of a name (RFC 5802). `login`: who a client with these keys is."""

    salt: bytes
    stored_key: bytes
    server_key: bytes
    iterations: int
    login: Login


CredentialOf = Callable[[ScramMechanism, str, bool], ScramCredential | None]
"""(mechanism, name, is_token) -> the credential; None if there is none.

If `is_token`, the name is the id of a delegation token, else that of a user.
"""

DecoyIterations = Callable[[ScramMechanism, int], int | None]
"""(mechanism, number) -> the iterations of one of the mechanism's users; None if it has no users.

The number chooses the user. A name without a credential is answered with these iterations
(DecoyCredentials in scram.py).
"""
