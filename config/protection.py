"""Refuses Java classes that would decide who a client is, because they cannot be run.

If such a key were ignored with a warning, clients would have other rights than its user expects.
The other keys that protect a broker are checked by what serves them: sasl.py, authorization.py and
the listeners' TLS.
"""

from collections.abc import Iterable

from .broker_keys import without_listener
from .errors import ConfigError

_DEFAULT_PRINCIPALS = "org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder"


def refuse_unserved_protection(settings: Iterable[tuple[str, str]]) -> None:
    """Raise ConfigError for the first key that names such a class."""
    for name, text in settings:
        is_builder = without_listener(name) == "principal.builder.class"
        if is_builder and text.strip() != _DEFAULT_PRINCIPALS:
            raise ConfigError(
                f"{name}={text}: Java classes cannot be run; remove the key, and clients have the"
                " names that Kafka gives them by default"
            )
