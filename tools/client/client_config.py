"""The settings by which a command reaches a broker: --bootstrap, and the file of --config.

The file may be one of librdkafka's (`sasl.username=…`) or one of the Java tools'. What only the
latter have (`sasl.jaas.config=…`, key stores) is translated.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from odradek.config.errors import ConfigError
from odradek.config.jaas import parse_jaas
from odradek.config.properties import parse_properties

from .failure import CommandError

DEFAULT_BOOTSTRAP = "localhost:9092"

# Java's name of a setting, and librdkafka's.
_SAME = {
    "ssl.truststore.location": "ssl.ca.location",
    "ssl.key.password": "ssl.key.password",
    "ssl.keystore.password": "ssl.keystore.password",
    "ssl.truststore.certificates": "ssl.ca.pem",
    "ssl.keystore.certificate.chain": "ssl.certificate.pem",
    "ssl.keystore.key": "ssl.key.pem",
    "max.request.size": "message.max.bytes",
    "fetch.max.wait.ms": "fetch.wait.max.ms",
    "receive.buffer.bytes": "socket.receive.buffer.bytes",
    "send.buffer.bytes": "socket.send.buffer.bytes",
    "request.timeout.ms": "socket.timeout.ms",
}
# Settings of Java clients that have no meaning for these commands.
_IGNORED = {
    "auto.include.jmx.reporter",
    "buffer.memory",
    "default.api.timeout.ms",
    "exclude.internal.topics",
    "interceptor.classes",
    "key.deserializer",
    "key.serializer",
    "max.block.ms",
    "max.poll.records",
    "metadata.max.idle.ms",
    "metric.reporters",
    "metrics.num.samples",
    "metrics.recording.level",
    "metrics.sample.window.ms",
    "partitioner.class",
    "security.providers",
    "socket.connection.setup.timeout.max.ms",
    "ssl.enabled.protocols",
    "ssl.keymanager.algorithm",
    "ssl.protocol",
    "ssl.provider",
    "ssl.secure.random.implementation",
    "ssl.trustmanager.algorithm",
    "value.deserializer",
    "value.serializer",
}


def client_settings(
    bootstrap: str | None, file: Path | None, *, default: str = DEFAULT_BOOTSTRAP
) -> dict[str, str]:
    """The settings for librdkafka. `default`: the broker if none is named. Raises CommandError."""
    given: Mapping[str, str] = {}
    if file is not None:
        try:
            given = parse_properties(file.read_bytes())
        except OSError as error:
            raise CommandError(f"{file} cannot be read: {error.strerror}") from None
        except ConfigError as error:
            raise CommandError(f"{file}: {error}") from None
    settings = {"bootstrap.servers": default, **_translated(given, file)}
    if bootstrap is not None:
        settings["bootstrap.servers"] = bootstrap
    return settings


def _translated(given: Mapping[str, str], file: Path | None) -> dict[str, str]:
    settings: dict[str, str] = {}
    for name, value in given.items():
        if name in _IGNORED:
            continue
        if name == "sasl.jaas.config":
            settings |= _credentials(value, file)
        elif name == "ssl.keystore.location" and given.get("ssl.keystore.type") == "PEM":
            settings |= {"ssl.certificate.location": value, "ssl.key.location": value}
        elif name in ("ssl.truststore.location", "ssl.keystore.location"):
            _check_pem(name, given, file)
            settings[_SAME.get(name, name)] = value
        elif name.endswith("store.type"):
            continue
        elif name != "ssl.truststore.password":
            settings[_SAME.get(name, name)] = value
    return settings


def _credentials(jaas: str, file: Path | None) -> dict[str, str]:
    """User and password of a JAAS configuration."""
    try:
        options = parse_jaas("sasl.jaas.config", jaas).options
    except ConfigError as error:
        raise CommandError(f"{file}: {error}") from None
    if "username" not in options or "password" not in options:
        raise CommandError(
            f"{file}: sasl.jaas.config has no username and password;"
            " write sasl.username and sasl.password instead"
        )
    if options.get("tokenauth") == "true":
        raise CommandError(
            f"{file}: these commands cannot log in by a delegation token (tokenauth)"
        )
    return {"sasl.username": options["username"], "sasl.password": options["password"]}


def _check_pem(name: str, given: Mapping[str, str], file: Path | None) -> None:
    """Java's own stores cannot be read by librdkafka; PKCS12 key stores can."""
    kind = given.get(name.replace("location", "type"), "JKS")
    if name == "ssl.truststore.location" and kind != "PEM":
        raise CommandError(
            f"{file}: {name} is a {kind} store; export its certificates as PEM and set"
            " ssl.truststore.type=PEM, or ssl.ca.location"
        )
    if name == "ssl.keystore.location" and kind not in ("PEM", "PKCS12"):
        raise CommandError(f"{file}: {name} is a {kind} store; convert it to PKCS12 or PEM")
