"""From staged files to files that readers see, in steps that may end anywhere and be done again.

    1  the entry     which ranges are archived now, which staged file gets which name: all or none
    2  publishing    replaced files go, staged files get their names; doing it again is harmless
    3  sweeping      the run's staging directory goes

As long as the staging directory of a run is there, its entries may not be published; `take_over`
does what is left to do. A reader that lists directories sees no record twice at any time; between 1
and the end of 2 it does not see all of them yet.
"""

import logging
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from msgspec.structs import replace

from odradek.storage.files import Files

from .entries import FORMAT, ArchivedFile, ArchivedRange, Entry
from .layout import ArchiveLayout, data_file_name, date_directory
from .manifest import ArchiveState, Manifest

_logger = logging.getLogger(__name__)


@dataclass(slots=True)
class Committer:
    """Commits what one run has staged. Holds `state` up to date."""

    manifest: Manifest
    run_id: str
    state: ArchiveState
    now_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000

    def archive(
        self,
        ranges: Sequence[ArchivedRange],
        files: Sequence[ArchivedFile],
        partitions: dict[str, int],
    ) -> Entry:
        """Ranges that were read, and what was found in them. Raises JobError, OSError."""
        entry = self._next("archive")
        return self._commit(
            replace(
                entry,
                ranges=tuple(ranges),
                files=_named(files, entry.number),
                partitions=partitions,
            )
        )

    def compaction(self, files: Sequence[ArchivedFile], replaced: Sequence[str]) -> Entry:
        """Files in place of others, with the same records. Raises JobError, OSError."""
        entry = self._next("compaction")
        return self._commit(
            replace(entry, files=_named(files, entry.number), replaced=tuple(replaced))
        )

    def take_over(self, entries: Sequence[Entry]) -> int:
        """Finish what killed runs have committed and sweep out the rest; how many runs those were.

        Should one of them live still, it cannot commit any more before its files are swept out.
        Raises JobError, OSError.
        """
        files, layout = self.manifest.files, self.manifest.layout
        runs = files.list_directory(layout.staging)
        if runs:
            self._commit(self._next("takeover"))
        for entry in entries:
            if entry.run_id in runs:
                self._publish_again(entry)
        for run_id in runs:
            self._sweep(run_id)
        self.manifest.tidy()
        return len(runs)

    def sweep(self) -> None:
        """The run is over: what it has staged and not committed goes."""
        self._sweep(self.run_id)

    def _sweep(self, run_id: str) -> None:
        """Where a task that nobody waits for any more still writes there, the next run does it."""
        directory = self.manifest.layout.run(run_id)
        try:
            self.manifest.files.remove_tree(directory)
        except OSError as error:
            _logger.warning("%s is left to the next run: %s", directory, error)

    def _next(self, kind: Literal["archive", "compaction", "takeover"]) -> Entry:
        return Entry(
            format=FORMAT,
            number=self.state.last_number + 1,
            run_id=self.run_id,
            created_ms=self.now_ms(),
            kind=kind,
        )

    def _commit(self, entry: Entry) -> Entry:
        self.manifest.add(entry)
        self.state.add(entry)
        publish(self.manifest.files, self.manifest.layout, entry)
        return entry

    def _publish_again(self, entry: Entry) -> None:
        """What of its files is still to be there, and has not got its name."""
        files, run = self.manifest.files, self.manifest.layout.run(entry.run_id)
        left = [
            file
            for file in entry.files
            if file.path in self.state.files and files.exists(run / file.staged)
        ]
        publish(files, self.manifest.layout, replace(entry, files=tuple(left)))


def _named(files: Iterable[ArchivedFile], number: int) -> tuple[ArchivedFile, ...]:
    """With the paths that they are to have."""
    return tuple(replace(file, path=_path(file, number)) for file in files)


def _path(file: ArchivedFile, number: int) -> str:
    directory = date_directory(file.of.topic, file.date, dead_letters=file.is_dead_letters)
    name = data_file_name(file.of.partition, file.first_offset, file.last_offset, number)
    return f"{directory}/{name}"


def publish(files: Files, layout: ArchiveLayout, entry: Entry) -> None:
    """Do what the entry says. Raises OSError."""
    touched: set[Path] = set()
    for path in entry.replaced:
        files.remove(layout.root / path)
        touched.add((layout.root / path).parent)
    for file in entry.files:
        staged, target = layout.run(entry.run_id) / file.staged, layout.root / file.path
        files.make_directory(target.parent)
        files.rename(staged, target)
        touched.add(target.parent)
    for directory in sorted({place for each in touched for place in _up_to(layout.root, each)}):
        files.fsync_directory(directory)


def _up_to(root: Path, directory: Path) -> Iterable[Path]:
    """A directory and those above it, up to the archive's: each may be new."""
    while directory != root:
        yield directory
        directory = directory.parent
    yield root
