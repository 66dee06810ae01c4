"""Refuses configurations that ask for access control, which odradek does not have yet.

If such a key were ignored with a warning, a broker that its user wants to protect would be open to
everyone. So the broker does not start with an authorizer, with a listener that is not PLAINTEXT,
with any SASL key (it means that clients must log in), or with client certificates.

These are accepted: ssl.* keys if all listeners are PLAINTEXT, because a key store alone protects
nothing; and any controller's listener, because it is never opened.
"""

from collections.abc import Iterator

from .broker_config import BrokerConfig
from .broker_keys import without_listener
from .errors import ConfigError
from .listeners import SecurityProtocol


def refuse_unserved_protection(config: BrokerConfig) -> None:
    """Raise ConfigError for the first key that asks for access control."""
    for name, value, lack in _unserved(config):
        raise ConfigError(
            f"{name}={value}: {lack}, so this broker would be open to everyone;"
            " remove the key to start without protection"
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
