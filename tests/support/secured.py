"""Listeners with SASL for a broker process, odradek's or Apache Kafka's, from the same settings.

PLAINTEXT   open, for the administrator
IN          PLAIN, SCRAM-SHA-256, SCRAM-SHA-512; alice and bob have passwords of PLAIN
OAUTH       OAUTHBEARER with unsecured tokens
SHORT       PLAIN and SCRAM-SHA-256; a login is valid for MAX_REAUTH_MS
TLS         all mechanisms, over TLS
"""

import socket
import time
from pathlib import Path

from tests.support.broker_process import READY_SECONDS, BrokerProcess, free_ports
from tests.support.certificates import TlsFiles
from tests.support.sasl import OAUTH_MODULE, PLAIN_MODULE, SCRAM_MODULE

MAX_REAUTH_MS = 3_000
PASSWORDS = {"admin": "admin-secret", "alice": "alice-secret", "bob": "bob-secret"}
MECHANISMS = {
    "IN": ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"),
    "OAUTH": ("OAUTHBEARER",),
    "SHORT": ("PLAIN", "SCRAM-SHA-256"),
    "TLS": ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"),
}
_USERS = " ".join(f'user_{name}="{password}"' for name, password in PASSWORDS.items())
JAAS = {
    "PLAIN": f"{PLAIN_MODULE} required {_USERS};",
    "SCRAM-SHA-256": f"{SCRAM_MODULE} required;",
    "SCRAM-SHA-512": f"{SCRAM_MODULE} required;",
    "OAUTHBEARER": f'{OAUTH_MODULE} required unsecuredLoginStringClaim_sub="admin"'
    ' unsecuredValidatorRequiredScope="kafka";',
}


def wait_until_open(ports: dict[str, int]) -> None:
    """Return when every listener accepts connections: Kafka opens one after the other."""
    for port in ports.values():
        deadline = time.monotonic() + READY_SECONDS
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), 5).close()
                break
            except OSError:
                assert time.monotonic() < deadline, f"nobody listens on port {port}"
                time.sleep(0.02)


def authority_of(broker: BrokerProcess) -> Path:
    """The file of the authority that has signed the broker's certificate."""
    return broker.directory / "ca.pem"


def secure(broker: BrokerProcess) -> dict[str, int]:
    """Add the listeners to a broker that is not started yet. Returns their ports."""
    ports = dict(zip(MECHANISMS, free_ports(len(MECHANISMS) + 1)[1:], strict=True))
    server_pem = TlsFiles(broker.directory).server_pem
    added = [f"{name}://127.0.0.1:{port}" for name, port in ports.items()]
    for key in ("listeners", "advertised.listeners"):
        broker.settings[key] = ",".join([broker.settings[key], *added])
    protocols = ["PLAINTEXT:PLAINTEXT", "CONTROLLER:PLAINTEXT"]
    protocols += [f"{name}:SASL_{'SSL' if name == 'TLS' else 'PLAINTEXT'}" for name in ports]
    broker.settings |= {
        "listener.security.protocol.map": ",".join(protocols),
        "inter.broker.listener.name": "PLAINTEXT",
        "listener.name.short.connections.max.reauth.ms": str(MAX_REAUTH_MS),
        "sasl.server.max.receive.size": "50000",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(server_pem),
    }
    for name, mechanisms in MECHANISMS.items():
        prefix = f"listener.name.{name.lower()}"
        broker.settings[f"{prefix}.sasl.enabled.mechanisms"] = ",".join(mechanisms)
        for mechanism in mechanisms:
            broker.settings[f"{prefix}.{mechanism.lower()}.sasl.jaas.config"] = JAAS[mechanism]
    return ports | {"PLAINTEXT": broker.port}
