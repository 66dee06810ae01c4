"""Commits staged files, in steps that can be interrupted anywhere and repeated.

    1  add the entry     which ranges are archived, the final name of each staged file; atomic
    2  publish           delete replaced files, rename staged files; repeating it is harmless
    3  clean up          delete the run's staging directory

While the staging directory of a run exists, steps of its commits may be missing. `take_over`
does them. A reader that lists directories never sees a record twice. Between step 1 and the
end of step 2 it does not see all of the records.
"""

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from msgspec.structs import replace

from odradek.storage.files import Files

from .entries import FORMAT, ArchivedFile, ArchivedRange, Entry
from .layout import ArchiveLayout, data_file_name, date_directory
from .manifest import ArchiveState, Manifest

_logger = logging.getLogger(__name__)


@dataclass(slots=True)
class Committer:
    """Commits what one run has staged, and keeps `state` up to date."""

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
        """Commit ranges that were read, and their files. Raises JobError, OSError."""
        return self._commit("archive", files, ranges=tuple(ranges), partitions=partitions)

    def compaction(self, files: Sequence[ArchivedFile], replaced: Sequence[str]) -> Entry:
        """Commit files that replace others with the same records. Raises JobError, OSError."""
        return self._commit("compaction", files, replaced=tuple(replaced))

    def take_over(self, entries: Sequence[Entry]) -> int:
        """Complete the commits of killed runs, delete their other files; return the number of runs.

        The first step is an entry of its own. After it, a run that is still alive can no longer
        commit, so its files can be deleted.
        Raises JobError, OSError.
        """
        files, layout = self.manifest.files, self.manifest.layout
        runs = files.list_directory(layout.staging)
        if runs:
            self._commit("takeover")
        for entry in entries:
            if entry.run_id in runs:
                self._publish_again(entry)
        for run_id in runs:
            self.delete_staging(run_id)
        self.manifest.remove_temporary_files()
        return len(runs)

    def delete_staging(self, run_id: str) -> None:
        """Delete what a run has staged and not committed.

        If an abandoned task still writes to the directory, the next run deletes it.
        """
        directory = self.manifest.layout.run(run_id)
        try:
            self.manifest.files.remove_tree(directory)
        except OSError as error:
            _logger.warning(
                "%s could not be deleted; the next run will do it: %s", directory, error
            )

    def _commit(
        self,
        kind: Literal["archive", "compaction", "takeover"],
        files: Sequence[ArchivedFile] = (),
        **changes: Any,  # fields of Entry
    ) -> Entry:
        number = self.state.last_number + 1
        entry = Entry(
            format=FORMAT,
            number=number,
            run_id=self.run_id,
            created_ms=self.now_ms(),
            kind=kind,
            files=tuple(replace(file, path=_path(file, number)) for file in files),
            **changes,
        )
        self.manifest.add(entry)
        self.state.add(entry)
        publish(self.manifest.files, self.manifest.layout, entry)
        return entry

    def _publish_again(self, entry: Entry) -> None:
        """Publish files that have not been renamed or replaced since."""
        files, run = self.manifest.files, self.manifest.layout.run(entry.run_id)
        left = [
            file
            for file in entry.files
            if file.path in self.state.files and files.exists(run / file.staged)
        ]
        publish(files, self.manifest.layout, replace(entry, files=tuple(left)))


def _path(file: ArchivedFile, number: int) -> str:
    """Return the final path of a file in the entry with that number."""
    directory = date_directory(file.of.topic, file.date, dead_letters=file.is_dead_letters)
    name = data_file_name(file.of.partition, file.first_offset, file.last_offset, number)
    return f"{directory}/{name}"


def publish(files: Files, layout: ArchiveLayout, entry: Entry) -> None:
    """Delete and rename the files that the entry lists. Raises OSError."""
    touched: set[Path] = set()
    for path in entry.replaced:
        files.remove(layout.root / path)
        touched.add((layout.root / path).parent)
    for file in entry.files:
        staged, target = layout.run(entry.run_id) / file.staged, layout.root / file.path
        files.make_directory(target.parent)
        files.rename(staged, target)
        touched.add(target.parent)
    # The directories between these and the archive's root may be new, too.
    with_parents = {directory for each in touched for directory in (each, *each.parents)}
    for directory in sorted(with_parents):
        if directory.is_relative_to(layout.root):
            files.fsync_directory(directory)
