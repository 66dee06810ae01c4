"""What a configuration says about SASL: the mechanisms of each listener, with their login modules.

A mechanism is enabled by `sasl.enabled.mechanisms` and needs a JAAS configuration,
`listener.name.NAME.MECHANISM.sasl.jaas.config`. As in Kafka, `sasl.jaas.config` without the
mechanism's name is only for clients. Java classes other than Kafka's own cannot be run, so they are
refused.

Kafka: JaasContext, SaslChannelBuilder, BrokerSecurityConfigs.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from .broker_config import BrokerConfig
from .errors import ConfigError, invalid_value
from .jaas import JaasEntry, parse_jaas
from .key import INT_MAX
from .listener_settings import ListenerSettings, listener_keys
from .listeners import Listener

PLAIN, SCRAM_SHA_256, SCRAM_SHA_512 = "PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"
OAUTHBEARER = "OAUTHBEARER"

NO_LIMIT = -1

_SECURITY = "org.apache.kafka.common.security"
_OAUTH = f"{_SECURITY}.oauthbearer"
_SCRAM_MODULE = f"{_SECURITY}.scram.ScramLoginModule"
_LOGIN_MODULES = {
    PLAIN: f"{_SECURITY}.plain.PlainLoginModule",
    SCRAM_SHA_256: _SCRAM_MODULE,
    SCRAM_SHA_512: _SCRAM_MODULE,
    OAUTHBEARER: f"{_OAUTH}.OAuthBearerLoginModule",
}
_SIGNED_TOKENS = f"{_OAUTH}.OAuthBearerValidatorCallbackHandler"
_UNSECURED_TOKENS = f"{_OAUTH}.internals.unsecured.OAuthBearerUnsecuredValidatorCallbackHandler"
_CALLBACK_HANDLERS = {
    PLAIN: (f"{_SECURITY}.plain.internals.PlainServerCallbackHandler",),
    OAUTHBEARER: (_SIGNED_TOKENS, _UNSECURED_TOKENS),
}
_VALIDATORS = (f"{_OAUTH}.DefaultJwtValidator", f"{_OAUTH}.BrokerJwtValidator")

_ENABLED = "sasl.enabled.mechanisms"
_JAAS = "sasl.jaas.config"
_CALLBACK_HANDLER = "sasl.server.callback.handler.class"
_VALIDATOR = "sasl.oauthbearer.jwt.validator.class"
_JWKS_URL = "sasl.oauthbearer.jwks.endpoint.url"


@dataclass(frozen=True, slots=True, kw_only=True)
class SaslMechanism:
    """A mechanism of a listener.

    `max_reauth_ms` is the longest time between two logins of a connection; 0: no limit.
    `verifies_signatures`, for OAUTHBEARER, is whether tokens must be signed.
    """

    name: str
    jaas: JaasEntry
    max_reauth_ms: int
    verifies_signatures: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SaslListener:
    """A listener whose clients log in; `settings` has the keys that mechanisms read themselves."""

    name: str
    mechanisms: tuple[SaslMechanism, ...]
    max_receive_bytes: int
    settings: ListenerSettings


def sasl_listeners(config: BrokerConfig) -> tuple[SaslListener, ...]:
    """Check and return the open listeners that use SASL. Raises ConfigError."""
    return tuple(sasl_listener(config, listener) for listener in with_logins(config))


def with_logins(config: BrokerConfig) -> Iterator[Listener]:
    """The open listeners that use SASL."""
    return (each for each in config.open_listeners if each.security_protocol.uses_sasl)


def sasl_listener(config: BrokerConfig, listener: Listener) -> SaslListener:
    """Check and return one listener that uses SASL. Raises ConfigError."""
    settings = config.of_listener(listener.name)
    enabled = settings.value(_ENABLED)
    max_receive_bytes = settings.value("sasl.server.max.receive.size")
    assert isinstance(enabled, tuple)
    assert isinstance(max_receive_bytes, int)
    if not enabled:
        raise invalid_value(_ENABLED, "", f"{listener.name} needs at least one mechanism")
    return SaslListener(
        name=listener.name,
        mechanisms=tuple(_mechanism(name, settings) for name in enabled),
        max_receive_bytes=INT_MAX if max_receive_bytes == NO_LIMIT else max_receive_bytes,
        settings=settings,
    )


def texts_of(settings: ListenerSettings) -> Mapping[str, str | None]:
    """The settings of SASL as written: the listener's, and those of its mechanisms."""
    names = [name for name in listener_keys() if not name.startswith("ssl.")]
    texts = {name: settings.text(name) for name in names}
    for mechanism in _LOGIN_MODULES:
        for name in names:
            key = settings.mechanism_key(mechanism, name)
            texts[key] = settings.mechanism_text(mechanism, name)
    return texts


def _mechanism(name: str, settings: ListenerSettings) -> SaslMechanism:
    if name == "GSSAPI":
        raise invalid_value(
            _ENABLED,
            name,
            f"Kerberos is not served; set {settings.prefix}{_ENABLED} to some of:"
            f" {', '.join(_LOGIN_MODULES)}",
        )
    if name not in _LOGIN_MODULES:
        raise invalid_value(_ENABLED, name, f"must be some of: {', '.join(_LOGIN_MODULES)}")
    max_reauth_ms = settings.mechanism_value(name, "connections.max.reauth.ms")
    assert isinstance(max_reauth_ms, int)
    return SaslMechanism(
        name=name,
        jaas=_jaas(name, settings),
        max_reauth_ms=max_reauth_ms,
        verifies_signatures=_verifies_signatures(name, settings),
    )


def _jaas(mechanism: str, settings: ListenerSettings) -> JaasEntry:
    key = settings.mechanism_key(mechanism, _JAAS)
    text = settings.mechanism_text(mechanism, _JAAS)
    if text is None:
        raise ConfigError(
            f"{mechanism} is in {_ENABLED}, but {key} is not set"
            f" ({_JAAS} without the mechanism's name is for clients, and JAAS files are not read)"
        )
    entry = parse_jaas(key, text)
    needed = _LOGIN_MODULES[mechanism]
    if entry.login_module != needed:
        raise ConfigError(
            f"Invalid value [hidden] for configuration {key}: the login module must be {needed};"
            " other Java classes cannot be run"
        )
    return entry


def _verifies_signatures(mechanism: str, settings: ListenerSettings) -> bool:
    """Whether tokens are verified with the keys of an issuer. Raises ConfigError."""
    handler = settings.mechanism_text(mechanism, _CALLBACK_HANDLER)
    key = settings.mechanism_key(mechanism, _CALLBACK_HANDLER)
    if handler is not None and handler.strip() not in _CALLBACK_HANDLERS.get(mechanism, ()):
        known = " or ".join(_CALLBACK_HANDLERS.get(mechanism, ("unset",)))
        raise invalid_value(key, handler, f"must be {known}; other Java classes cannot be run")
    if handler is None or handler.strip() != _SIGNED_TOKENS:
        return False
    validator = settings.value(_VALIDATOR)
    if validator not in _VALIDATORS:
        allowed = f"must be {' or '.join(_VALIDATORS)}; other Java classes cannot be run"
        raise invalid_value(_VALIDATOR, validator, allowed)
    if not settings.mechanism_value(mechanism, _JWKS_URL):
        # In Kafka the tokens' signatures are then not verified: any client could make a token.
        raise ConfigError(f"{key} needs {_JWKS_URL}, with the keys that verify the tokens")
    return True
