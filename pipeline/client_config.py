"""Translates settings of Kafka's Java client, as Spark's Kafka source takes them, to librdkafka's.

Options that begin with `kafka.` are settings of Kafka's Java client. librdkafka has most of them
under the same name. A few have another name there. A few have no counterpart, because they
configure internals of the Java client: these are ignored. What only Java can read (a JKS store) is
refused.
"""

import logging
import re
from collections.abc import Mapping

from .option_values import CLIENT_PREFIX, OptionError

_logger = logging.getLogger(__name__)

_RENAMED = {
    "fetch.max.wait.ms": "fetch.wait.max.ms",
    "receive.buffer.bytes": "socket.receive.buffer.bytes",
    "send.buffer.bytes": "socket.send.buffer.bytes",
    "request.timeout.ms": "socket.timeout.ms",
    "buffer.memory": "queue.buffering.max.kbytes",
}
_JAVA_ONLY = frozenset(
    {
        "auto.include.jmx.reporter",
        "default.api.timeout.ms",
        "exclude.internal.topics",
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
    }
)
# For a producer that sends much. Only the broker limits the size of a record.
PRODUCER_SETTINGS: Mapping[str, str | int] = {
    "linger.ms": 100,  # larger batches; a flush does not wait for it
    "reconnect.backoff.ms": 10,  # a producer lives for one task, and connects twice
    "log_level": 3,
    "message.max.bytes": 1_000_000_000,
    "queue.buffering.max.kbytes": 64 << 10,
    "queue.buffering.max.messages": 200_000,
}
_JAAS_OPTION = re.compile(r"""(\w+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|'([^']*)'|([^\s;"']+))""")
_RENAMED_STORES = {
    "ssl.truststore.location": "ssl.ca.location",
    "ssl.truststore.certificates": "ssl.ca.pem",
    "ssl.keystore.certificate.chain": "ssl.certificate.pem",
    "ssl.keystore.key": "ssl.key.pem",
}
_SSL_STORES = ("ssl.truststore.", "ssl.keystore.")


class ClientConfigError(OptionError):
    """A setting that librdkafka cannot use; the message says what to use instead."""


def client_config(options: Mapping[str, str]) -> dict[str, str]:
    """Return librdkafka's settings, from options whose names begin with `kafka.`, in any case.

    Raises ClientConfigError.
    """
    java = {
        name.lower().removeprefix(CLIENT_PREFIX): value
        for name, value in options.items()
        if name.lower().startswith(CLIENT_PREFIX)
    }
    config = _ssl_stores(java)
    jaas = java.pop("sasl.jaas.config", None)
    if jaas is not None:
        config |= _credentials(jaas)
    for name, value in java.items():
        if name in _JAVA_ONLY:
            _logger.info("kafka.%s has no counterpart in librdkafka and is ignored", name)
        elif name == "buffer.memory":
            config[_RENAMED[name]] = str(max(1, int(value) // 1024))
        elif name == "ssl.endpoint.identification.algorithm":
            config[name] = value or "none"
        elif not name.startswith(_SSL_STORES):
            config[_RENAMED.get(name, name)] = value
    return config


def _credentials(jaas: str) -> dict[str, str]:
    """Return user and password from the JAAS line of Kafka's PLAIN and SCRAM login modules."""
    if "PlainLoginModule" not in jaas and "ScramLoginModule" not in jaas:
        raise ClientConfigError(
            "kafka.sasl.jaas.config: only PlainLoginModule and ScramLoginModule are understood; "
            "set librdkafka's own settings (kafka.sasl.username, kafka.sasl.oauthbearer.config, …)"
        )
    options = {
        name: re.sub(r"\\(.)", r"\1", quoted) or single or bare
        for name, quoted, single, bare in _JAAS_OPTION.findall(jaas)
    }
    missing = [name for name in ("username", "password") if name not in options]
    if missing:
        raise ClientConfigError(f"kafka.sasl.jaas.config has no {' and no '.join(missing)}")
    return {"sasl.username": options["username"], "sasl.password": options["password"]}


def _ssl_stores(java: Mapping[str, str]) -> dict[str, str]:
    for store, formats in (("truststore", ("PEM",)), ("keystore", ("PEM", "PKCS12"))):
        kind = java.get(f"ssl.{store}.type", "JKS").upper()
        given = [f"ssl.{store}.location", f"ssl.{store}.certificates"]
        given += ["ssl.keystore.certificate.chain"] if store == "keystore" else []
        if kind not in formats and any(name in java for name in given):
            raise ClientConfigError(
                f"kafka.ssl.{store}.type is {kind}: librdkafka reads {' and '.join(formats)}"
            )
    config = {name: java[javas] for javas, name in _RENAMED_STORES.items() if javas in java}
    return config | _keystore(java) if "ssl.keystore.location" in java else config


def _keystore(java: Mapping[str, str]) -> dict[str, str]:
    """A PEM keystore holds certificate and key in one file; librdkafka has a setting for each."""
    location = java["ssl.keystore.location"]
    if java.get("ssl.keystore.type", "").upper() == "PEM":
        return {"ssl.certificate.location": location, "ssl.key.location": location}
    password = java.get("ssl.keystore.password")
    config = {"ssl.keystore.location": location}
    return config if password is None else config | {"ssl.keystore.password": password}
