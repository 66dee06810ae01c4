"""What the broker knows of one SCRAM user, or of a token that is used as one."""

from collections.abc import Callable
from typing import NamedTuple

from odradek.coordinator.metadata.scram_mechanisms import ScramMechanism

from .exchange import Login


class ScramCredential(NamedTuple):
    """The keys of a name, and the login that they prove."""

    salt: bytes
    stored_key: bytes
    server_key: bytes
    iterations: int
    login: Login


CredentialOf = Callable[[ScramMechanism, str, bool], ScramCredential | None]
"""Finds the credential of a mechanism and a name. If the last is True, the name is a token's id."""

IterationsLikeAUser = Callable[[ScramMechanism, int], int | None]
"""The iterations of one of the mechanism's users, chosen by a number; None if it has no users."""
