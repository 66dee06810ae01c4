"""`odradek pipeline migrate-archive`: makes a Delta table of an archive of version 0.1."""

from typing import Annotated

import typer

from .options import archive_location


def command(
    archive: Annotated[str, typer.Argument(metavar="ARCHIVE", help="The directory.")],
) -> None:
    """Make a Delta table of an archive that version 0.1 has made.

    The data files stay where they are. The command can be run again if it was killed. Version 0.1
    can no longer use the archive afterwards.
    """
    from .running import run_job

    def job() -> int:
        from odradek.pipeline.jobs.archive.migration import migrate

        location = archive_location(archive, None)
        migrated = migrate(location)
        typer.echo(
            f"{location} is a Delta table of {migrated.records:,} records in {migrated.files:,} "
            f"files; {migrated.copied:,} files were written again"
        )
        return 0

    run_job(job)
