"""Keys by which a user protects a broker, and odradek's refusal to run as if they were not there.

Ignoring such a key with a warning would open to everyone what the user has locked. So the start is
refused: for an authorizer, for a listener that is not PLAINTEXT, for anything about SASL (whoever
writes it means clients to log in), and for client certificates. Not refused: ssl.* keys beside
PLAINTEXT listeners only (a key store protects nothing by itself), and a controller's listener,
which is never opened.
"""

from collections.abc import Iterator

from .broker_config import BrokerConfig
from .broker_keys import without_listener
from .errors import ConfigError
from .listeners import SecurityProtocol


def refuse_unserved_protection(config: BrokerConfig) -> None:
    """ConfigError for the first key that asks for protection which odradek cannot give."""
    for name, value, lack in _unserved(config):
        raise ConfigError(
            f"{name}={value}: {lack}, so this broker would be open to everyone;"
            " allowed is only to leave it out"
        )


def _unserved(config: BrokerConfig) -> Iterator[tuple[str, str, str]]:
    for listener in config.open_listeners:
        if listener.security_protocol is not SecurityProtocol.PLAINTEXT:
            yield (
                "listeners",
                str(listener),
                f"{listener.security_protocol} is not served yet, only PLAINTEXT",
            )
    if config.security_inter_broker_protocol != SecurityProtocol.PLAINTEXT:
        protocol = config.security_inter_broker_protocol
        yield "security.inter.broker.protocol", protocol, "only PLAINTEXT is served yet"
    for name, text in config.texts.items():
        base = without_listener(name)
        if base == "authorizer.class.name" and text.strip():
            yield name, text, "no authorizer is served yet"
        if base.startswith("sasl.") or ".sasl." in base:
            yield name, "...", "SASL is not served yet"
        if base == "ssl.client.auth" and text.strip() != "none":
            yield name, text, "client certificates are not served yet"
