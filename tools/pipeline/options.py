"""Options that the jobs share, each with one meaning in all of them."""

from pathlib import Path
from typing import Annotated

import typer

Master = Annotated[
    str | None,
    typer.Option(
        "--master",
        metavar="URL",
        help="Where Spark runs: local[*] (the default), spark://HOST:PORT, yarn, k8s://…",
        rich_help_panel="Spark",
    ),
]
Conf = Annotated[
    list[str] | None,
    typer.Option(
        "--conf",
        metavar="KEY=VALUE",
        help="A setting of Spark's; may be given several times.",
        rich_help_panel="Spark",
    ),
]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Only say what would be done; Spark is not started.")
]
LogDirs = Annotated[
    list[Path],
    typer.Option(
        "--path",
        "--log-dirs",
        metavar="DIR",
        help="The log directories of a node (log.dirs): several, or by commas.",
    ),
]
Topic = Annotated[
    list[str] | None,
    typer.Option("--topic", metavar="NAME", help="A topic; may be given several times."),
]
Topics = Annotated[
    str | None,
    typer.Option(
        "--topics",
        metavar="PATTERN",
        help="Topics whose whole name matches this regular expression. [default: all but internal]",
    ),
]


def log_directories(given: list[Path]) -> list[Path]:
    """The directories that were given. Raises BadParameter where one is none."""
    found = [Path(part) for path in given for part in str(path).split(",") if part]
    for path in found:
        if not path.is_dir():
            raise typer.BadParameter(f"{path} is no directory", param_hint="--path")
    return [path.absolute() for path in found]


def settings_of(pairs: list[str] | None, hint: str = "--conf") -> dict[str, str]:
    """KEY=VALUE pairs. Raises BadParameter."""
    settings: dict[str, str] = {}
    for pair in pairs or ():
        key, equals, value = pair.partition("=")
        if not equals or not key:
            raise typer.BadParameter(f"{pair!r} is not KEY=VALUE", param_hint=hint)
        settings[key.strip()] = value
    return settings


def local_path(text: str, hint: str) -> Path:
    """A path, or a URI of one. Raises BadParameter for other kinds of places."""
    scheme, separator, rest = text.partition(":")
    if separator and scheme == "file":
        text = "/" + rest.lstrip("/")
    elif separator and rest.startswith("//"):
        raise typer.BadParameter(
            f"{text}: a directory that this machine and Spark's workers see is needed; "
            f"mount {scheme} storage, or copy what lies there",
            param_hint=hint,
        )
    return Path(text).absolute()
