"""Command-line options that several jobs share."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from odradek.pipeline.registry.formats import RegistryFormat

if TYPE_CHECKING:
    from odradek.pipeline.jobs.archive.job import ArchiveSettings
    from odradek.pipeline.jobs.archive.parquet.storage import ArchiveLocation

_WHERE = "Where it runs"
_REGISTRY_CONF = "--registry-conf"
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
Archive = Annotated[
    str,
    typer.Argument(metavar="ARCHIVE", help="The directory or URL (s3://…) of the table."),
]
Isolation = Annotated[
    Literal["read_committed", "read_uncommitted"],
    typer.Option(
        "--isolation",
        help="Whether to archive records of open and aborted transactions (read_uncommitted).",
    ),
]
Schema = Annotated[
    Path | None,
    typer.Option(
        "--schema",
        metavar="FILE",
        help="Values are JSON objects: write their fields as columns, as this file describes. "
        "Records that do not match have the reason in the column error.",
    ),
]
ValueFormat = Annotated[
    RegistryFormat | None,
    typer.Option(
        "--value-format",
        help="Values were written with a schema registry: write their fields as columns, as the "
        "latest schema of the subject says. Values that cannot be decoded have the reason in the "
        "column error.",
    ),
]
Registry = Annotated[
    str | None, typer.Option("--registry", metavar="URL", help="The schema registry.")
]
RegistryConf = Annotated[
    list[str] | None,
    typer.Option(
        _REGISTRY_CONF,
        metavar="KEY=VALUE",
        help="A setting of the registry's client, like basic.auth.user.info; may be given several "
        "times.",
    ),
]
ValueSubject = Annotated[
    str,
    typer.Option(
        "--value-subject",
        metavar="SUBJECT",
        help="The subject of all values.  \\[default: TOPIC-value]",
        show_default=False,
    ),
]
DropValue = Annotated[
    bool,
    typer.Option(
        "--drop-value",
        help="With --schema or --value-format: do not keep the original value.",
    ),
]
SkipUnreadable = Annotated[
    bool,
    typer.Option(
        "--skip-unreadable",
        help="Leave out for good what cannot be read, like a damaged batch, and go on after it. "
        "Else what comes after it waits.",
    ),
]
VerifyCrc = Annotated[
    bool, typer.Option("--verify-crc/--no-verify-crc", help="Check each batch's checksum.")
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
IcebergCatalog = Annotated[
    Path | None,
    typer.Option(
        "--iceberg-catalog",
        metavar="FILE",
        help="Also list the table's files in this Iceberg catalog, a file of SQLite, for readers "
        "of Iceberg.",
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
        if settings.setdefault(key.strip(), value) != value:
            raise typer.BadParameter(f"{key.strip()} has two values", param_hint=hint)
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
    if master is not None and settings.get("spark.master", master) != master:
        raise typer.BadParameter("spark.master is not that of --master", param_hint="--conf")
    return Place(processes=processes, is_spark=is_spark, master=master, conf=settings)


def archive_location(text: str, storage: list[str] | None) -> "ArchiveLocation":
    """Return where an archive is: a path, a file: URI, or the URL of an object store.

    Raises BadParameter.
    """
    from odradek.pipeline.jobs import JobError
    from odradek.pipeline.jobs.archive.parquet.storage import ArchiveLocation

    try:
        return ArchiveLocation.named(text, settings_of(storage, "--storage"))
    except JobError as error:
        raise typer.BadParameter(str(error), param_hint="--storage") from error


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueOptions:
    """How values become columns, if they do."""

    schema: Path | None
    format: RegistryFormat | None
    registry: str | None
    registry_conf: list[str] | None
    subject: str
    drop_value: bool

    def __post_init__(self) -> None:
        """Raise BadParameter if options contradict each other, or one needs another."""
        if self.drop_value and self.schema is None and self.format is None:
            raise typer.BadParameter("needs --schema or --value-format", param_hint="--drop-value")
        of_registry = {
            "--registry": self.registry,
            _REGISTRY_CONF: self.registry_conf,
            "--value-subject": self.subject,
        }
        for hint, given in of_registry.items():
            if self.format is None and given:
                raise typer.BadParameter("needs --value-format", param_hint=hint)
        if "url" in settings_of(self.registry_conf, _REGISTRY_CONF):
            raise typer.BadParameter("name the URL by --registry", param_hint=_REGISTRY_CONF)
        if self.format is not None and self.registry is None:
            raise typer.BadParameter("needs --registry", param_hint="--value-format")
        if self.format is not None and self.schema is not None:
            raise typer.BadParameter("excludes --value-format", param_hint="--schema")


def archive_settings(
    location: "ArchiveLocation",
    directories: list[Path],
    values: ValueOptions,
    *,
    topic: list[str] | None,
    topics: str | None,
    isolation: str,
    verify_crc: bool,
    skip_unreadable: bool,
) -> "ArchiveSettings":
    """Return what to archive. Raises JobError if the schema cannot be read."""
    from odradek.pipeline.jobs.archive.job import ArchiveSettings
    from odradek.pipeline.jobs.archive.splitting.json_schema import read_json_schema
    from odradek.pipeline.jobs.archive.splitting.topic_schemas import RegistryChoice
    from odradek.pipeline.jobs.topic_choice import TopicChoice

    registry = None
    if values.format is not None:
        client = {"url": str(values.registry), **settings_of(values.registry_conf, _REGISTRY_CONF)}
        registry = RegistryChoice(format=values.format, client=client, subject=values.subject)
    return ArchiveSettings(
        log_directories=directories,
        archive=location,
        topics=TopicChoice(names=topic or (), pattern=topics),
        committed_only=isolation == "read_committed",
        values=None if values.schema is None else read_json_schema(values.schema),
        registry=registry,
        keep_value=not values.drop_value,
        verify_crc=verify_crc,
        skip_unreadable=skip_unreadable,
    )
