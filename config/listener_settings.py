"""The settings of one listener: a key with the listener's prefix overrides the key without it.

The prefix is `listener.name.NAME.`, with the name in lower case. A setting of one SASL mechanism
has the mechanism's name, in lower case, after that: `listener.name.NAME.plain.sasl.jaas.config`.

Kafka: AbstractConfig.valuesWithPrefixOverride, ChannelBuilders.channelBuilderConfigs.
"""

from collections.abc import Mapping
from functools import cache

from odradek.config import keys_sasl, keys_tls

from .key import Key, Value
from .key_table import read_table


@cache
def listener_keys() -> Mapping[str, Key]:
    """The keys of TLS and SASL, by name, without a listener's prefix."""
    return read_table(keys_tls.TABLE) | read_table(keys_sasl.TABLE)


class ListenerSettings:
    """What a configuration says about one listener. `texts` are its keys and values as written."""

    def __init__(self, texts: Mapping[str, str], listener_name: str) -> None:
        self.prefix = f"listener.name.{listener_name.lower()}."
        self._texts = texts

    def text(self, name: str) -> str | None:
        """The value of a key as written, or None if neither form of the key is set."""
        return self._texts.get(self.prefix + name, self._texts.get(name))

    def value(self, name: str) -> Value:
        """The value of a key of TLS or SASL, or its default. Raises ConfigError."""
        key, text = listener_keys()[name], self.text(name)
        return (
            key.default if text is None else key._replace(name=self.written_name(name)).parse(text)
        )

    def mechanism_value(self, mechanism: str, name: str) -> Value:
        """The value of a key for one SASL mechanism, or else the listener's. Raises ConfigError."""
        text = self.mechanism_text(mechanism, name)
        if text is None:
            return self.value(name)
        return listener_keys()[name]._replace(name=self.mechanism_key(mechanism, name)).parse(text)

    def mechanism_key(self, mechanism: str, name: str) -> str:
        """The name of a key of one SASL mechanism, with the prefixes."""
        return f"{self.prefix}{mechanism.lower()}.{name}"

    def mechanism_text(self, mechanism: str, name: str) -> str | None:
        """The value of a key of one SASL mechanism as written, or None if it is not set."""
        return self._texts.get(self.mechanism_key(mechanism, name))

    def written_name(self, name: str) -> str:
        """The form of a key that is set, or would be used if it were: for messages."""
        return self.prefix + name if self.prefix + name in self._texts else name
