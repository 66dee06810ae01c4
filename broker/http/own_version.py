"""The version of odradek, for pages and API descriptions."""

from importlib.metadata import PackageNotFoundError, version


def _installed() -> str:
    """Read it from the installed package's files; "0" if odradek runs without being installed."""
    try:
        return version("odradek")
    except PackageNotFoundError:
        return "0"


OWN_VERSION = _installed()
