"""Refuses Java classes that decide who a client is or what it may do: they cannot be run.

If such a key were ignored with a warning, clients would have other rights than its user expects.
The other keys that protect a broker are checked by what serves them: sasl.py, authorization.py and
the listeners' TLS.
"""

from collections.abc import Iterable

from .broker_keys import without_listener
from .errors import ConfigError

_DEFAULT_PRINCIPALS = "org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder"
# What is true without the class.
_WITHOUT = {
    "principal.builder.class": "clients have the names that Kafka gives them by default",
    "create.topic.policy.class.name": "topics are created without its check",
    "alter.config.policy.class.name": "configurations are changed without its check",
}


def refuse_unserved_protection(settings: Iterable[tuple[str, str]]) -> None:
    """Raise ConfigError for the first key that names such a class."""
    for name, text in settings:
        consequence = _WITHOUT.get(without_listener(name))
        if consequence is not None and text.strip() != _DEFAULT_PRINCIPALS:
            raise ConfigError(
                f"{name}={text}: Java classes cannot be run; remove the key, and {consequence}"
            )
