"""The libraries of the extra `registry`, without which schemas cannot be parsed."""

from importlib.util import find_spec

from odradek.config.errors import ConfigError

_LIBRARIES = ("google.protobuf", "referencing", "jsonschema_specifications")


def check_libraries() -> None:
    """Raise ConfigError if one is not installed."""
    missing = [name for name in _LIBRARIES if not _is_installed(name)]
    if missing:
        raise ConfigError(
            f"odradek.registry.listener needs {', '.join(missing)}: pip install 'odradek[registry]'"
        )


def _is_installed(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except ModuleNotFoundError:  # `google`, the package of google.protobuf, is missing too
        return False
