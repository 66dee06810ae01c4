"""A broker with an authorizer, delegation tokens, and listeners of each security protocol."""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tests.support.broker_process import ApacheKafkaProcess, BrokerProcess, free_ports
from tests.support.certificates import Authority

PASSWORD = "admin-secret"
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
_PLAIN_MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"
_SCRAM_MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule"
_PLAIN_USERS = {"admin": PASSWORD, "alice": "alice-secret"}


class SecuredBroker:
    """The broker, and the files of settings with which clients reach it.

    `admin` may do everything; `alice` has a password for PLAIN, too. Whoever connects to the
    listener without authentication is ANONYMOUS, and may do everything.
    """

    def __init__(
        self, name: str, directory: Path, *, tls: bool = True, authorizer: bool = True
    ) -> None:
        """`name` is `kafka` or `odradek`. The directory may be another broker's that has ended."""
        self.directory = directory
        directory.mkdir(parents=True, exist_ok=True)
        kind = {"kafka": ApacheKafkaProcess, "odradek": BrokerProcess}[name]
        sasl_port, tls_port = free_ports(2)
        self.sasl_servers = f"127.0.0.1:{sasl_port}"
        self.tls_servers = f"127.0.0.1:{tls_port}"
        self.authority_file = directory / "authority.pem"
        settings = {**SETTINGS, **(AUTHORIZER if authorizer else {}), **_login_modules(tls=tls)}
        self.process: BrokerProcess = kind(directory / "broker", settings)
        self._add_listener(f"SASL_PLAINTEXT://{self.sasl_servers}")
        if tls:
            self._add_listener(f"SASL_SSL://{self.tls_servers}")
            self.process.settings |= self._make_certificates()

    def _add_listener(self, listener: str) -> None:
        for key in ("listeners", "advertised.listeners"):
            self.process.settings[key] += f",{listener}"

    def _make_certificates(self) -> dict[str, str]:
        authority = Authority()
        self.authority_file.write_text(authority.pem)
        store = self.directory / "broker.pem"
        signed = authority.sign("localhost")
        store.write_text(signed.key_pem() + signed.pem)
        return {"ssl.keystore.type": "PEM", "ssl.keystore.location": str(store)}

    @property
    def plain_servers(self) -> str:
        """The listener without authentication."""
        return self.process.bootstrap

    def client_file(
        self,
        user: str,
        password: str,
        mechanism: str = "PLAIN",
        *,
        tls: bool = False,
        by_token: bool = False,
    ) -> Path:
        """The settings of a client, as Java's tools read them.

        If it logs in `by_token`, the user is a token's id and the password its HMAC.
        """
        module = _PLAIN_MODULE if mechanism == "PLAIN" else _SCRAM_MODULE
        options = f'username="{user}" password="{password}"'
        options += ' tokenauth="true"' if by_token else ""
        settings = {
            "bootstrap.servers": self.tls_servers if tls else self.sasl_servers,
            "security.protocol": "SASL_SSL" if tls else "SASL_PLAINTEXT",
            "sasl.mechanism": mechanism,
            "sasl.jaas.config": f"{module} required {options};",
        }
        if tls:
            settings["ssl.truststore.type"] = "PEM"
            settings["ssl.truststore.location"] = str(self.authority_file)
        file = self.directory / f"{user}-{mechanism}-{tls}.properties"
        text = "".join(f"{key}={value}\n" for key, value in settings.items())
        file.write_text(re.sub(r"[^ -~\n]", lambda found: f"\\u{ord(found[0]):04x}", text))
        return file


SETTINGS = {
    "delegation.token.secret.key": "the secret of tokens",
    "sasl.enabled.mechanisms": ",".join(MECHANISMS),
    "listener.security.protocol.map": (
        "PLAINTEXT:PLAINTEXT,SASL_PLAINTEXT:SASL_PLAINTEXT,SASL_SSL:SASL_SSL,CONTROLLER:PLAINTEXT"
    ),
}
AUTHORIZER = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:admin;User:ANONYMOUS",
}


def _login_modules(*, tls: bool) -> Mapping[str, str]:
    users = " ".join(f'user_{name}="{password}"' for name, password in _PLAIN_USERS.items())
    settings = {}
    for listener in ("sasl_plaintext", "sasl_ssl")[: 2 if tls else 1]:
        prefix = f"listener.name.{listener}"
        settings[f"{prefix}.plain.sasl.jaas.config"] = f"{_PLAIN_MODULE} required {users};"
        for mechanism in MECHANISMS[1:]:
            key = f"{prefix}.{mechanism.lower()}.sasl.jaas.config"
            settings[key] = f"{_SCRAM_MODULE} required;"
    return settings


@contextmanager
def secured_broker(
    name: str, directory: Path, *, tls: bool = True, authorizer: bool = True
) -> Iterator[SecuredBroker]:
    """A running broker: `kafka` or `odradek`."""
    broker = SecuredBroker(name, directory, tls=tls, authorizer=authorizer)
    try:
        broker.process.start()
        yield broker
    finally:
        broker.process.stop()
