"""Command-line options that several jobs share."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from odradek.pipeline.jobs.archive.storage import ArchiveLocation

_WHERE = "Where it runs"
Processes = Annotated[
    int | None,
    typer.Option(
        "--processes",
        metavar="N",
        min=1,
        help="How many processes of this machine work.  \\[default: one for each core]",
        rich_help_panel=_WHERE,
    ),
]
Master = Annotated[
    str | None,
    typer.Option(
        "--master",
        metavar="URL",
        help="Run on Spark: local[*], spark://HOST:PORT, yarn, k8s://…"
        "  \\[default: in processes of this machine, without Spark]",
        rich_help_panel=_WHERE,
    ),
]
SparkMaster = Annotated[
    str | None,
    typer.Option(
        "--master",
        metavar="URL",
        help="Where Spark runs: local[*] (the default), spark://HOST:PORT, yarn, k8s://…",
        rich_help_panel=_WHERE,
    ),
]
Conf = Annotated[
    list[str] | None,
    typer.Option(
        "--conf",
        metavar="KEY=VALUE",
        help="A Spark setting; may be given several times.",
        rich_help_panel=_WHERE,
    ),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only print what would be done.")]
LogDirs = Annotated[
    list[Path],
    typer.Option(
        "--path",
        "--log-dirs",
        metavar="DIR",
        help="The log directories of a node (log.dirs): comma-separated, or given several times.",
    ),
]
Storage = Annotated[
    list[str] | None,
    typer.Option(
        "--storage",
        metavar="KEY=VALUE",
        help="An option of the archive's object store, like aws_endpoint_url=https://…; may be "
        "given several times. Those of the environment (AWS_…) need not be given.",
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
        help="Topics whose whole name matches this regular expression."
        " \\[default: all but internal]",
    ),
]


def log_directories(given: list[Path], hint: str = "--path") -> list[Path]:
    """The given directories as absolute paths. Raises BadParameter if one does not exist."""
    found = [Path(part) for path in given for part in str(path).split(",") if part]
    for path in found:
        if not path.is_dir():
            raise typer.BadParameter(f"{path} is not a directory", param_hint=hint)
    return [path.absolute() for path in found]


def settings_of(pairs: list[str] | None, hint: str = "--conf") -> dict[str, str]:
    """Parse KEY=VALUE pairs. Raises BadParameter."""
    settings: dict[str, str] = {}
    for pair in pairs or ():
        key, equals, value = pair.partition("=")
        if not equals or not key:
            raise typer.BadParameter(f"{pair!r} is not KEY=VALUE", param_hint=hint)
        settings[key.strip()] = value
    return settings


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where the parts of a job run: in processes of this machine, or on Spark with settings."""

    processes: int | None
    is_spark: bool
    master: str | None
    conf: dict[str, str]


def place_of(processes: int | None, master: str | None, conf: list[str] | None) -> Place:
    """Return the place that the options name. Raises BadParameter."""
    from odradek.pipeline.session import SPARK_SUBMIT

    settings = settings_of(conf)
    is_spark = master is not None or SPARK_SUBMIT in os.environ
    if is_spark and processes is not None:
        raise typer.BadParameter(
            "is not for Spark: use --master local[N]", param_hint="--processes"
        )
    if settings and not is_spark:
        raise typer.BadParameter("needs --master, e.g. local[*]", param_hint="--conf")
    return Place(processes=processes, is_spark=is_spark, master=master, conf=settings)


def archive_location(text: str, storage: list[str] | None) -> "ArchiveLocation":
    """Return where an archive is: a path, a file: URI, or the URL of an object store."""
    from odradek.pipeline.jobs.archive.storage import ArchiveLocation

    options = settings_of(storage, "--storage")
    scheme, separator, rest = text.partition("://")
    if separator and scheme != "file":
        return ArchiveLocation(text.rstrip("/"), options)
    path = f"/{rest.lstrip('/')}" if separator else text.removeprefix("file:")
    return ArchiveLocation(str(Path(path).absolute()))
