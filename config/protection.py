"""Refuses configurations that ask for access control that odradek does not have.

If such a key were ignored with a warning, a broker that its user wants to protect would be open to
everyone. So the broker does not start with a listener whose security protocol is not served, or
with client certificates.

These are accepted: ssl.* keys if no listener uses TLS, because a key store alone protects nothing;
sasl.* keys if no listener uses SASL, as in Kafka; and any controller's listener, because it is
never opened. sasl.py checks what a listener with SASL needs.
"""

from collections.abc import Iterator

from .broker_config import BrokerConfig
from .broker_keys import without_listener
from .errors import ConfigError
from .listeners import SecurityProtocol

UNSERVED = frozenset(
    {
        SecurityProtocol.SSL,
        SecurityProtocol.SASL_SSL,
    }
)
_DEFAULT_PRINCIPALS = "org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder"


def refuse_unserved_protection(config: BrokerConfig) -> None:
    """Raise ConfigError for the first key that asks for access control that is not served."""
    for name, value, lack in _unserved(config):
        raise ConfigError(
            f"{name}={value}: {lack}, so this broker would be open to everyone;"
            " remove the key to start without protection"
        )


def _unserved(config: BrokerConfig) -> Iterator[tuple[str, str, str]]:
    for listener in config.open_listeners:
        if listener.security_protocol in UNSERVED:
            yield "listeners", str(listener), f"{listener.security_protocol} is not served yet"
    if config.security_inter_broker_protocol in UNSERVED:
        protocol = config.security_inter_broker_protocol
        yield "security.inter.broker.protocol", protocol, "it is not served yet"
    for name, text in config.texts.items():
        base = without_listener(name)
        if base == "principal.builder.class" and text.strip() != _DEFAULT_PRINCIPALS:
            yield name, text, "Java classes cannot be run"
        if base == "ssl.client.auth" and text.strip() != "none":
            yield name, text, "client certificates are not served yet"
