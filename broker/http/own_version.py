"""The version of odradek, for pages and API descriptions."""

from importlib.metadata import PackageNotFoundError, version


def own_version() -> str:
    """Return the version of the installed package; "0" if it is run without being installed."""
    try:
        return version("odradek")
    except PackageNotFoundError:
        return "0"
