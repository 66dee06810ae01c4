"""The interface that a job reports its progress to, and a progress bar for it."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec


class Progress:
    """A job calls these methods while it runs. This class ignores the calls."""

    def total(self, description: str, parts: int) -> None:
        """Begin a phase with this many parts."""

    def done(self, parts: int) -> None:
        """Add parts that are done."""


NO_PROGRESS = Progress()


@contextmanager
def progress_bar(unit: str) -> Iterator[Progress]:
    """Show a bar that counts in `unit`, like "tasks", if there is a terminal or a notebook."""
    if not sys.stderr.isatty() and not _has_widgets():
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


def _has_widgets() -> bool:
    """Whether this is a kernel of Jupyter that can show a bar."""
    return "ipykernel" in sys.modules and find_spec("ipywidgets") is not None
