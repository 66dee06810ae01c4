"""Translates settings of Kafka's Java clients to librdkafka's.

librdkafka has most of them under the same name; these are passed on, and so are its own. TRANSLATED
have another name or form there. IGNORED configure internals of the Java client. REFUSED would
change what a client does if they were ignored, as a login or an interceptor. A number outside of
librdkafka's range becomes the nearest one in it.

Sources: ProducerConfig, ConsumerConfig, SaslConfigs, SslConfigs; CONFIGURATION.md of librdkafka.
"""

from collections.abc import Mapping
from typing import Final

from .errors import ConfigError
from .jaas import parse_jaas

_RENAMED = {
    "fetch.max.wait.ms": "fetch.wait.max.ms",
    "max.request.size": "message.max.bytes",
    "receive.buffer.bytes": "socket.receive.buffer.bytes",
    "send.buffer.bytes": "socket.send.buffer.bytes",
    "request.timeout.ms": "socket.timeout.ms",
}
_RENAMED_STORES = {
    "ssl.truststore.location": "ssl.ca.location",
    "ssl.truststore.certificates": "ssl.ca.pem",
    "ssl.keystore.certificate.chain": "ssl.certificate.pem",
    "ssl.keystore.key": "ssl.key.pem",
}
_PEM = "A PEM file, or PKCS12 for a keystore; JKS is refused."
# Settings whose form changes, each with what becomes of it.
TRANSLATED: Final[Mapping[str, str]] = {
    **{java: f"Becomes {name}." for java, name in _RENAMED.items()},
    "buffer.memory": "Becomes queue.buffering.max.kbytes.",
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
    "use {prefix}sasl.oauthbearer.method=oidc with {prefix}sasl.oauthbearer.client.id, "
    ".client.secret and .token.endpoint.url"
)
_NO_JAVA = "the client cannot run Java classes"
_REFUSED = {
    "config.providers": f"{_NO_JAVA}; give the values themselves",
    "interceptor.classes": f"{_NO_JAVA}; leave it out",
    "partitioner.class": f"{_NO_JAVA}; give rows a column 'partition', or set {{prefix}}partitioner"
    " (murmur2_random, which is as Kafka's default, consistent_random, random)",
    "sasl.client.callback.handler.class": f"{_NO_JAVA}; {_OIDC}",
    "sasl.login.class": f"{_NO_JAVA}; {_OIDC}",
    "sasl.oauthbearer.assertion.template.file": _OIDC,
    "sasl.oauthbearer.jwt.retriever.class": f"{_NO_JAVA}; {_OIDC}",
    "sasl.oauthbearer.jwt.validator.class": f"{_NO_JAVA}; {_OIDC}",
    "ssl.engine.factory.class": f"{_NO_JAVA}; set {{prefix}}ssl.truststore.… and"
    " {prefix}ssl.keystore.…",
    "transaction.two.phase.commit.enable": "transactions are ended by the tasks that begin them",
}
# The least and the largest value of librdkafka's settings where Java's clients accept others.
_RANGES = {
    "batch.size": (1, (1 << 31) - 1),
    "connections.max.idle.ms": (0, (1 << 31) - 1),  # 0: not closed, as a negative one of Java
    "fetch.max.bytes": (1_000_000, (1 << 31) - 513),  # at least message.max.bytes, its default here
    "fetch.min.bytes": (1, 100_000_000),
    "fetch.wait.max.ms": (0, 300_000),
    "linger.ms": (0, 900_000),
    "max.in.flight.requests.per.connection": (1, 1_000_000),
    "max.partition.fetch.bytes": (1, 1_000_000_000),
    "max.poll.interval.ms": (1, 86_400_000),
    "message.max.bytes": (1000, 1_000_000_000),
    "metadata.max.age.ms": (1, 86_400_000),
    "reconnect.backoff.max.ms": (0, 3_600_000),
    "reconnect.backoff.ms": (0, 3_600_000),
    "retry.backoff.max.ms": (1, 300_000),
    "retry.backoff.ms": (1, 300_000),
    "session.timeout.ms": (1, 3_600_000),
    "socket.connection.setup.timeout.ms": (1000, (1 << 31) - 1),
    "socket.receive.buffer.bytes": (0, 100_000_000),  # 0: the system's default, as Java's -1
    "socket.send.buffer.bytes": (0, 100_000_000),
    "socket.timeout.ms": (10, 300_000),
}
_DEFAULT_PARTITIONERS = ("DefaultPartitioner", "UniformStickyPartitioner")
_OAUTH_HANDLER = "OAuthBearerLoginCallbackHandler"
_LARGEST_LEVEL = 12  # of librdkafka


def refused_settings(prefix: str = "") -> dict[str, str]:
    """The settings that are errors, each with what to do. `prefix`: see `librdkafka_settings`."""
    return {name: advice.format(prefix=prefix) for name, advice in _REFUSED.items()}


def librdkafka_settings(java: Mapping[str, str], prefix: str = "") -> dict[str, str]:
    """Translate settings of a Java client, whose names may also be librdkafka's own.

    `prefix` is what stands before each name where the user wrote it; messages repeat it. Raises
    ConfigError, which says what to use instead.
    """
    _refuse(java, prefix)
    settings = _ssl_stores(java, prefix) | _compression(java, prefix)
    if java.get("partitioner.ignore.keys", "").lower() == "true":
        settings["partitioner"] = "random"
    if "sasl.jaas.config" in java:
        settings |= _login(f"{prefix}sasl.jaas.config", java["sasl.jaas.config"])
    if "buffer.memory" in java:
        bytes_ = _number(f"{prefix}buffer.memory", java["buffer.memory"])
        settings["queue.buffering.max.kbytes"] = str(max(1, bytes_ // 1024))
    if "ssl.endpoint.identification.algorithm" in java:
        name = "ssl.endpoint.identification.algorithm"
        settings[name] = java[name].strip() or "none"
    for name, value in java.items():
        if name in _RENAMED or not (name in TRANSLATED or name in IGNORED or name in _REFUSED):
            settings[_RENAMED.get(name, name)] = value
    if not settings.get("group.id", "-").strip():
        del settings["group.id"]  # librdkafka would abort the process
    return {name: _in_range(name, value) for name, value in settings.items()}


def _refuse(java: Mapping[str, str], prefix: str) -> None:
    """Raise ConfigError for a setting that must not be ignored."""
    for name, advice in refused_settings(prefix).items():
        value = java.get(name, "").strip()
        is_harmless = name == "partitioner.class" and value.endswith(_DEFAULT_PARTITIONERS)
        if value and value.lower() != "false" and not is_harmless:
            raise ConfigError(f"{prefix}{name} is not supported: {advice}")
    handler = java.get("sasl.login.callback.handler.class", "").strip()
    if handler and not handler.endswith(f".{_OAUTH_HANDLER}"):
        advice = f"{_NO_JAVA}; {_OIDC.format(prefix=prefix)}"
        raise ConfigError(f"{prefix}sasl.login.callback.handler.class is not supported: {advice}")


def _in_range(name: str, value: str) -> str:
    """The nearest number that librdkafka accepts. It refuses what is no number itself."""
    if name not in _RANGES:
        return value
    try:
        number = int(value)
    except ValueError:
        return value
    least, largest = _RANGES[name]
    return str(min(max(number, least), largest))


def _number(name: str, value: str) -> int:
    try:
        return int(value)
    except ValueError:
        raise ConfigError(f"{name} must be a number, not {value!r}") from None


def _compression(java: Mapping[str, str], prefix: str) -> dict[str, str]:
    """The level of the codec that is used."""
    name = f"compression.{java.get('compression.type', '').strip().lower()}.level"
    if name not in java:
        return {}
    number = _number(f"{prefix}{name}", java[name])
    return {} if number < 0 else {"compression.level": str(min(number, _LARGEST_LEVEL))}


def _login(name: str, jaas: str) -> dict[str, str]:
    """The login of the JAAS line of Kafka's PLAIN, SCRAM and OAUTHBEARER modules."""
    module, options = parse_jaas(name, jaas)
    if module.endswith("OAuthBearerLoginModule"):
        found = {
            theirs: options[java]
            for java, theirs in (
                ("clientId", "sasl.oauthbearer.client.id"),
                ("clientSecret", "sasl.oauthbearer.client.secret"),
                ("scope", "sasl.oauthbearer.scope"),
            )
            if java in options
        }
        return found | {"sasl.oauthbearer.method": "oidc"} if found else {}
    if not module.endswith(("PlainLoginModule", "ScramLoginModule")):
        raise ConfigError(
            f"{name}: only PlainLoginModule, ScramLoginModule and OAuthBearerLoginModule are"
            " understood; set librdkafka's own settings (sasl.username, sasl.kerberos.keytab,"
            " sasl.oauthbearer.config, …)"
        )
    missing = [option for option in ("username", "password") if option not in options]
    if missing:
        raise ConfigError(
            f"{name} has no {' and no '.join(missing)}; they can also be written as sasl.username"
            " and sasl.password"
        )
    if options.get("tokenauth", "").lower() == "true":
        raise ConfigError(f"{name}: clients cannot log in by a delegation token (tokenauth) here")
    return {"sasl.username": options["username"], "sasl.password": options["password"]}


def _ssl_stores(java: Mapping[str, str], prefix: str) -> dict[str, str]:
    for store, formats in (("truststore", ("PEM",)), ("keystore", ("PEM", "PKCS12"))):
        kind = java.get(f"ssl.{store}.type", "JKS").upper()
        if kind not in formats and f"ssl.{store}.location" in java:
            raise ConfigError(
                f"{prefix}ssl.{store}.type is {kind}: librdkafka reads {' and '.join(formats)};"
                " convert the store and set its type"
            )
    config = {theirs: java[name] for name, theirs in _RENAMED_STORES.items() if name in java}
    return config | _keystore(java) if "ssl.keystore.location" in java else config


def _keystore(java: Mapping[str, str]) -> dict[str, str]:
    """A PEM keystore holds certificate and key in one file; librdkafka has a setting for each."""
    location = java["ssl.keystore.location"]
    if java.get("ssl.keystore.type", "").upper() == "PEM":
        return {"ssl.certificate.location": location, "ssl.key.location": location}
    password = java.get("ssl.keystore.password")
    config = {"ssl.keystore.location": location}
    return config if password is None else config | {"ssl.keystore.password": password}
