"""Translates settings of Kafka's Java client, as Spark's Kafka source takes them, to librdkafka's.

Options that begin with `kafka.` are settings of Kafka's Java client. librdkafka has most of them
under the same name; these are passed on. TRANSLATED have another name or form there. IGNORED
configure internals of the Java client, and are named once in a warning. REFUSED would change what a
job does if they were ignored, as a login or an interceptor.
"""

import functools
import logging
import re
from collections.abc import Mapping
from typing import Final

from .option_values import CLIENT_PREFIX, OptionError

_logger = logging.getLogger(__name__)

_RENAMED = {
    "fetch.max.wait.ms": "fetch.wait.max.ms",
    "max.request.size": "message.max.bytes",
    "receive.buffer.bytes": "socket.receive.buffer.bytes",
    "send.buffer.bytes": "socket.send.buffer.bytes",
    "request.timeout.ms": "socket.timeout.ms",
    "buffer.memory": "queue.buffering.max.kbytes",
}
_PEM = "A PEM file, or PKCS12 for a keystore; JKS is refused."
# Settings whose form changes, each with what becomes of it.
TRANSLATED: Final[Mapping[str, str]] = {
    **{java: f"Becomes {name}." for java, name in _RENAMED.items()},
    "compression.gzip.level": "Becomes compression.level, if compression.type is gzip.",
    "compression.lz4.level": "Becomes compression.level, if compression.type is lz4; 12 at most.",
    "compression.zstd.level": "Becomes compression.level, if compression.type is zstd; 12 at most, "
    "and a negative one is left out.",
    "partitioner.ignore.keys": "true becomes partitioner=random.",
    "sasl.jaas.config": "User and password of PlainLoginModule and ScramLoginModule; clientId, "
    "clientSecret and scope of OAuthBearerLoginModule.",
    "sasl.login.callback.handler.class": "Kafka's OAuthBearerLoginCallbackHandler becomes "
    "sasl.oauthbearer.method=oidc; others are refused.",
    "ssl.endpoint.identification.algorithm": "Empty becomes none.",
    "ssl.keystore.certificate.chain": "Becomes ssl.certificate.pem.",
    "ssl.keystore.key": "Becomes ssl.key.pem.",
    "ssl.keystore.location": _PEM,
    "ssl.keystore.password": "Of a PKCS12 keystore.",
    "ssl.keystore.type": _PEM,
    "ssl.truststore.certificates": "Becomes ssl.ca.pem.",
    "ssl.truststore.location": _PEM,
    "ssl.truststore.password": "Left out: a PEM file of certificates has none.",
    "ssl.truststore.type": _PEM,
}
IGNORED: Final = frozenset(
    {
        "auto.include.jmx.reporter",
        "default.api.timeout.ms",
        "exclude.internal.topics",
        "internal.throw.on.fetch.stable.offset.unsupported",
        "key.deserializer",
        "key.serializer",
        "max.block.ms",
        "max.poll.records",
        "metadata.max.idle.ms",
        "metric.reporters",
        "metrics.num.samples",
        "metrics.recording.level",
        "metrics.sample.window.ms",
        "partition.assignment.strategy",
        "partitioner.adaptive.partitioning.enable",
        "partitioner.availability.timeout.ms",
        "sasl.kerberos.ticket.renew.jitter",
        "sasl.kerberos.ticket.renew.window.factor",
        "sasl.login.connect.timeout.ms",
        "sasl.login.read.timeout.ms",
        "sasl.login.refresh.buffer.seconds",
        "sasl.login.refresh.min.period.seconds",
        "sasl.login.refresh.window.factor",
        "sasl.login.refresh.window.jitter",
        "sasl.login.retry.backoff.max.ms",
        "sasl.login.retry.backoff.ms",
        "sasl.oauthbearer.clock.skew.seconds",
        "sasl.oauthbearer.expected.audience",
        "sasl.oauthbearer.expected.issuer",
        "sasl.oauthbearer.header.urlencode",
        "sasl.oauthbearer.jwks.endpoint.refresh.ms",
        "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms",
        "sasl.oauthbearer.jwks.endpoint.retry.backoff.ms",
        "sasl.oauthbearer.jwks.endpoint.url",
        "sasl.oauthbearer.scope.claim.name",
        "security.providers",
        "share.acquire.mode",
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
)
_OIDC = (
    "use kafka.sasl.oauthbearer.method=oidc with kafka.sasl.oauthbearer.client.id, .client.secret "
    "and .token.endpoint.url"
)
_NO_JAVA = "the client cannot run Java classes"
# Settings that are errors, each with what to do.
REFUSED: Final[Mapping[str, str]] = {
    "config.providers": f"{_NO_JAVA}; give the values themselves",
    "interceptor.classes": f"{_NO_JAVA}; leave it out",
    "partitioner.class": f"{_NO_JAVA}; give rows a column 'partition', or set kafka.partitioner "
    "(murmur2_random, which is as Kafka's default, consistent_random, random)",
    "sasl.client.callback.handler.class": f"{_NO_JAVA}; {_OIDC}",
    "sasl.login.class": f"{_NO_JAVA}; {_OIDC}",
    "sasl.oauthbearer.assertion.template.file": _OIDC,
    "sasl.oauthbearer.jwt.retriever.class": f"{_NO_JAVA}; {_OIDC}",
    "sasl.oauthbearer.jwt.validator.class": f"{_NO_JAVA}; {_OIDC}",
    "ssl.engine.factory.class": f"{_NO_JAVA}; set kafka.ssl.truststore.… and kafka.ssl.keystore.…",
    "transaction.two.phase.commit.enable": "transactions are ended by the tasks that begin them",
}
_DEFAULT_PARTITIONERS = ("DefaultPartitioner", "UniformStickyPartitioner")
_OAUTH_HANDLER = "OAuthBearerLoginCallbackHandler"
_LARGEST_LEVEL = 12  # of librdkafka
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
    _refuse(java)
    ignored = sorted(java.keys() & IGNORED)
    if ignored:
        _warn_ignored(", ".join(CLIENT_PREFIX + name for name in ignored))
    config = _ssl_stores(java) | _compression(java)
    if java.get("partitioner.ignore.keys", "").lower() == "true":
        config["partitioner"] = "random"
    if "sasl.jaas.config" in java:
        config |= _credentials(java["sasl.jaas.config"])
    if "buffer.memory" in java:
        config[_RENAMED["buffer.memory"]] = str(max(1, int(java.pop("buffer.memory")) // 1024))
    if "ssl.endpoint.identification.algorithm" in java:
        name = "ssl.endpoint.identification.algorithm"
        config[name] = java[name] or "none"
    for name, value in java.items():
        if name in _RENAMED:
            config[_RENAMED[name]] = value
        elif name not in TRANSLATED and name not in IGNORED and name not in REFUSED:
            config[name] = value
    return config


def _refuse(java: Mapping[str, str]) -> None:
    """Raise ClientConfigError for a setting that must not be ignored."""
    for name, advice in REFUSED.items():
        value = java.get(name, "").strip()
        is_harmless = name == "partitioner.class" and value.endswith(_DEFAULT_PARTITIONERS)
        if value and value.lower() != "false" and not is_harmless:
            raise ClientConfigError(f"kafka.{name} is not supported: {advice}")
    handler = java.get("sasl.login.callback.handler.class", "").strip()
    if handler and not handler.endswith(f".{_OAUTH_HANDLER}"):
        raise ClientConfigError(
            f"kafka.sasl.login.callback.handler.class is not supported: {_NO_JAVA}; {_OIDC}"
        )


@functools.cache
def _warn_ignored(names: str) -> None:
    """Name them once in each process."""
    _logger.warning("ignored, because only Kafka's Java client has these settings: %s", names)


def _compression(java: Mapping[str, str]) -> dict[str, str]:
    """Return the level of the codec that is used."""
    level = java.get(f"compression.{java.get('compression.type', '').strip().lower()}.level")
    if level is None:
        return {}
    try:
        number = int(level)
    except ValueError:
        raise ClientConfigError(
            f"kafka.compression.….level must be a number, not {level!r}"
        ) from None
    return {} if number < 0 else {"compression.level": str(min(number, _LARGEST_LEVEL))}


def _credentials(jaas: str) -> dict[str, str]:
    """Return the login of the JAAS line of Kafka's PLAIN, SCRAM and OAUTHBEARER modules."""
    is_oauth = "OAuthBearerLoginModule" in jaas
    if not is_oauth and "PlainLoginModule" not in jaas and "ScramLoginModule" not in jaas:
        raise ClientConfigError(
            "kafka.sasl.jaas.config: only PlainLoginModule, ScramLoginModule and "
            "OAuthBearerLoginModule are understood; set librdkafka's own settings "
            "(kafka.sasl.username, kafka.sasl.kerberos.keytab, kafka.sasl.oauthbearer.config, …)"
        )
    options = {
        name: re.sub(r"\\(.)", r"\1", quoted) or single or bare
        for name, quoted, single, bare in _JAAS_OPTION.findall(jaas)
    }
    if is_oauth:
        found = {
            name: options[java]
            for java, name in (
                ("clientId", "sasl.oauthbearer.client.id"),
                ("clientSecret", "sasl.oauthbearer.client.secret"),
                ("scope", "sasl.oauthbearer.scope"),
            )
            if java in options
        }
        return found | {"sasl.oauthbearer.method": "oidc"} if found else {}
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
