"""Runs `odradek verify`: checks the directories, and prints the findings of each log.

On a terminal the findings are collected into a table and printed at the end.
Exit codes: 0 no problems (there may be notes), 1 problems, 2 wrong usage.
"""

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import typer

from odradek.storage.filenames import FileKind
from odradek.storage.files import Files
from odradek.tools.broken_pipe import handle_broken_pipe

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

EXIT_OK = 0
EXIT_PROBLEMS = 1
MAX_TABLE_ROWS = 1000


def run(directories: Sequence[Path], *, deep: bool, as_json: bool) -> int:
    """Check the directories; returns the exit code."""
    try:
        totals = _verify(directories, deep=deep, as_json=as_json)
        sys.stdout.flush()
    except BrokenPipeError:
        return handle_broken_pipe()
    return EXIT_PROBLEMS if totals.problems else EXIT_OK


def _verify(directories: Sequence[Path], *, deep: bool, as_json: bool) -> Totals:
    rows: list[Finding] = []
    in_table = sys.stdout.isatty() and not as_json

    def report(finding: Finding) -> None:
        if in_table and len(rows) < MAX_TABLE_ROWS:
            rows.append(finding)
        else:
            typer.echo(finding_json(finding) if as_json else finding_line(finding))

    findings = Findings(report)
    files = Files()
    with _progress_bar(files, directories) as advance_bar:
        now_ms = time.time_ns() // 1_000_000
        check = DirectoriesCheck(files, findings, Progress(advance_bar), deep=deep, now_ms=now_ms)
        check.run([path.absolute() for path in directories])
    if in_table:
        show_on_terminal(rows, findings.totals)
    else:
        typer.echo((totals_json if as_json else totals_line)(findings.totals))
    return findings.totals


@contextmanager
def _progress_bar(
    files: Files, directories: Sequence[Path]
) -> Iterator[Callable[[int], object] | None]:
    """A progress bar if stderr is a terminal; yields a function that advances it by bytes."""
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
