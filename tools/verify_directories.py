"""The options of `odradek verify`; what it looks at is in `verify/`.

Exit codes: 0 all is sound (there may be notes), 1 there are problems, 2 usage.
"""

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from ..storage.filenames import FileKind
from ..storage.files import Files
from .broken_pipe import leave_quietly
from .verify.directories import DirectoriesCheck
from .verify.findings import Finding, Findings, Totals
from .verify.progress import Progress
from .verify.report import (
    finding_json,
    finding_line,
    show_on_terminal,
    totals_json,
    totals_line,
)

EXIT_SOUND = 0
EXIT_PROBLEMS = 1
MOST_IN_TABLE = 1000


def verify(
    *,
    directories: Annotated[
        list[Path],
        typer.Argument(metavar="DIR...", help="The log directories of one node (log.dirs)."),
    ],
    deep: Annotated[
        bool, typer.Option("--deep", help="Read every record, not only those of internal logs.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="One JSON object per finding.")] = False,
) -> None:
    """Look at whole data directories: what is wrong, and what a start would do about it.

    Nothing is changed, and nothing is locked: a broker may be running, Apache Kafka's too. Ends
    with 0 where all is sound, with 1 where there are problems.
    """
    for path in directories:
        if not path.is_dir():
            raise typer.BadParameter(f"{path} is no directory", param_hint="DIR")
    try:
        totals = _verified(directories, deep=deep, as_json=json)
        sys.stdout.flush()
    except BrokenPipeError:
        raise typer.Exit(leave_quietly()) from None
    raise typer.Exit(EXIT_PROBLEMS if totals.problems else EXIT_SOUND)


def _verified(directories: Sequence[Path], *, deep: bool, as_json: bool) -> Totals:
    listed: list[Finding] = []
    in_table = sys.stdout.isatty() and not as_json

    def tell(finding: Finding) -> None:
        if in_table and len(listed) < MOST_IN_TABLE:
            listed.append(finding)
        else:
            typer.echo(finding_json(finding) if as_json else finding_line(finding))

    findings = Findings(tell)
    files = Files()
    with _progress(files, directories) as told:
        check = DirectoriesCheck(files, findings, Progress(told), deep=deep)
        check.run([path.absolute() for path in directories])
    if in_table:
        show_on_terminal(listed, findings.totals)
    else:
        typer.echo((totals_json if as_json else totals_line)(findings.totals))
    return findings.totals


@contextmanager
def _progress(
    files: Files, directories: Sequence[Path]
) -> Iterator[Callable[[int], object] | None]:
    """Something to tell bytes to, where somebody looks at a terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TimeRemainingColumn

    columns = ("verifying", BarColumn(), DownloadColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("verifying", total=_log_bytes(files, directories))
        yield lambda size: bar.advance(task, size)


def _log_bytes(files: Files, directories: Sequence[Path]) -> int:
    return sum(
        files.size(path / name / file)
        for path in directories
        for name in files.list_directory(path)
        if files.is_directory(path / name)
        for file in files.list_directory(path / name)
        if file.endswith(FileKind.LOG)
    )
