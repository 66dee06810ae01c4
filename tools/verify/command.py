"""`odradek verify`: walks the directories, and tells what it finds as it finds it.

Exit codes: 0 all is sound (there may be notes), 1 there are problems, 2 usage.
"""

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import typer

from odradek.storage.filenames import FileKind
from odradek.storage.files import Files
from odradek.tools.broken_pipe import leave_quietly

from .directories import DirectoriesCheck
from .findings import Finding, Findings, Totals
from .progress import Progress
from .report import (
    finding_json,
    finding_line,
    show_on_terminal,
    totals_json,
    totals_line,
)

EXIT_SOUND = 0
EXIT_PROBLEMS = 1
MOST_IN_TABLE = 1000


def run(directories: Sequence[Path], *, deep: bool, as_json: bool) -> int:
    """Look at the directories; returns the exit code."""
    try:
        totals = _verified(directories, deep=deep, as_json=as_json)
        sys.stdout.flush()
    except BrokenPipeError:
        return leave_quietly()
    return EXIT_PROBLEMS if totals.problems else EXIT_SOUND


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
