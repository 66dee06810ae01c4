"""What a secure broker of tests and its clients need: certificates, users and settings.

Clients log in by SCRAM over TLS. `admin` may do everything; other users may do what ACLs allow.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

ADMIN = "admin"
MECHANISM = "SCRAM-SHA-512"
PROTOCOL = "SASL_SSL"
Library = Literal["kafka-python", "aiokafka", "confluent-kafka", "java"]

_LOGIN_MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule"
_SETTINGS: Mapping[str, str] = {
    "listeners": f"{PROTOCOL}://127.0.0.1:0",
    "sasl.enabled.mechanisms": "SCRAM-SHA-256,SCRAM-SHA-512",
    "listener.name.sasl_ssl.scram-sha-256.sasl.jaas.config": f"{_LOGIN_MODULE} required;",
    "listener.name.sasl_ssl.scram-sha-512.sasl.jaas.config": f"{_LOGIN_MODULE} required;",
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": f"User:{ADMIN}",
    "ssl.keystore.type": "PEM",
}


def new_password() -> str:
    """A random password."""
    return os.urandom(16).hex()


class Security:
    """The certificates in a directory, and the passwords of users, by name."""

    def __init__(self, directory: Path) -> None:
        """Make the certificates."""
        from .certificates import write_certificates  # cryptography takes tens of milliseconds

        directory.mkdir(parents=True, exist_ok=True)
        self.authority_file = directory / "ca.pem"
        self._broker_file = directory / "broker.pem"
        write_certificates(self.authority_file, self._broker_file)
        self.passwords = {ADMIN: new_password()}

    def forget_users(self) -> None:
        """Forget all users but `admin`."""
        self.passwords = {ADMIN: self.passwords[ADMIN]}

    def settings(self) -> dict[str, str]:
        """The keys of server.properties."""
        return {
            **_SETTINGS,
            "ssl.keystore.location": str(self._broker_file),
            "delegation.token.secret.key": self.passwords[ADMIN],
        }

    def client_settings(self, library: Library, user: str) -> dict[str, Any]:
        """The settings with which a client of a library logs in as a user. Raises KeyError."""
        password = self.passwords[user]
        if library == "confluent-kafka":
            return {
                "security.protocol": PROTOCOL,
                "ssl.ca.location": str(self.authority_file),
                "sasl.mechanism": MECHANISM,
                "sasl.username": user,
                "sasl.password": password,
            }
        if library == "java":
            return {
                "security.protocol": PROTOCOL,
                "ssl.truststore.type": "PEM",
                "ssl.truststore.location": str(self.authority_file),
                "sasl.mechanism": MECHANISM,
                "sasl.jaas.config": (
                    f'{_LOGIN_MODULE} required username="{user}" password="{password}";'
                ),
            }
        in_python = {
            "security_protocol": PROTOCOL,
            "sasl_mechanism": MECHANISM,
            "sasl_plain_username": user,
            "sasl_plain_password": password,
        }
        if library == "aiokafka":
            import ssl  # here, because most brokers are not secure and need not load it

            context = ssl.create_default_context(cafile=str(self.authority_file))
            return {**in_python, "ssl_context": context}
        return {**in_python, "ssl_cafile": str(self.authority_file)}
