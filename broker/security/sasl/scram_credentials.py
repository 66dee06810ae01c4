"""Finds the credential of a SCRAM user or of a delegation token in the metadata.

Kafka: ScramServerCallbackHandler.
"""

from odradek.coordinator.metadata.cluster_metadata import ClusterMetadata
from odradek.coordinator.metadata.scram_mechanisms import ScramMechanism

from .exchange import Login
from .scram_credential import ScramCredential
from .token_credentials import TokenCredentials


def credential_of(
    metadata: ClusterMetadata,
    tokens: TokenCredentials,
    mechanism: ScramMechanism,
    name: str,
    is_token: bool,
) -> ScramCredential | None:
    """Return the credential of a user, or of a token if the client says that `name` is one's id."""
    if is_token:
        return tokens.credential_of(mechanism, name)
    record = metadata.scram_credentials.by_user.get((mechanism, name))
    if record is None:
        return None
    return ScramCredential(
        record.salt, record.stored_key, record.server_key, record.iterations, Login(name)
    )
