"""The settings by which a command reaches a broker: --bootstrap, and the file of --config.

The file may be one of librdkafka's (`sasl.username=…`) or one of the Java tools'
(`sasl.jaas.config=…`, key stores), which is translated (config/java_client.py).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from odradek.config.errors import ConfigError
from odradek.config.java_client import librdkafka_settings
from odradek.config.properties import parse_properties

from .failure import CommandError

DEFAULT_BOOTSTRAP = "localhost:9092"

_PORT = re.compile(":[0-9]+")

# Settings that have no effect on any command: positions and partitions are options of commands.
_WITHOUT_EFFECT = {
    "auto.offset.reset",
    "interceptor.classes",
    "partitioner.class",
    "transaction.two.phase.commit.enable",
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
    servers = settings["bootstrap.servers"] if bootstrap is None else bootstrap
    settings["bootstrap.servers"] = ",".join(map(_address, servers.split(",")))
    return settings


def _address(text: str) -> str:
    """HOST:PORT. Java's clients also take a protocol before it, and a port alone (`:9092`)."""
    address = text.strip().rpartition("://")[2]
    return f"localhost{address}" if _PORT.fullmatch(address) else address


def _translated(given: Mapping[str, str], file: Path | None) -> dict[str, str]:
    used = {name: value for name, value in given.items() if name not in _WITHOUT_EFFECT}
    try:
        return librdkafka_settings(used)
    except ConfigError as error:
        raise CommandError(f"{file}: {error}") from None
