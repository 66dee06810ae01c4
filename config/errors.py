"""The one way in which a configuration fails; of no weight, for whoever reads no configuration."""


class ConfigError(ValueError):
    """A configuration that cannot be used. `str()` of it is one line for the user."""


def invalid_value(name: str, value: object, allowed: str) -> ConfigError:
    """The one wording for a bad value, near enough to Kafka's for what greps for it."""
    shown = value if isinstance(value, str) and value.isprintable() else repr(value)
    return ConfigError(f"Invalid value {shown} for configuration {name}: {allowed}")
