"""A progress bar on standard error, if that is a terminal."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from odradek.pipeline.jobs.progress import NO_PROGRESS, Progress


@contextmanager
def progress_bar(unit: str) -> Iterator[Progress]:
    """A bar that counts in `unit`, like "segments"."""
    if not sys.stderr.isatty():
        yield NO_PROGRESS
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )
    from rich.progress import Progress as RichProgress

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn(unit),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with RichProgress(*columns, console=Console(stderr=True), transient=True) as shown:

        class Shown(Progress):
            """Shows one rich task at a time."""

            def __init__(self) -> None:
                self._task = shown.add_task("planning", total=None)

            def total(self, description: str, parts: int) -> None:
                shown.remove_task(self._task)
                self._task = shown.add_task(description, total=parts)

            def done(self, parts: int) -> None:
                shown.advance(self._task, parts)

        yield Shown()
