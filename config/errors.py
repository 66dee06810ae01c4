"""The error for invalid configurations.

It has a file of its own so that importing it does not load the tables of keys.
"""


class ConfigError(ValueError):
    """A configuration is invalid. The message is one line for the user."""


def invalid_value(name: str, value: object, allowed: str) -> ConfigError:
    """The error for a bad value. Its wording begins like Kafka's, because scripts search for it."""
    shown = value if isinstance(value, str) and value.isprintable() else repr(value)
    return ConfigError(f"Invalid value {shown} for configuration {name}: {allowed}")
