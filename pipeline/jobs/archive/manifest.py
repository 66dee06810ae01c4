"""The manifest of an archive: a list of entries, one file each, that is only appended to.

An entry is written to a temporary name, synced, and then linked to its own name. So it exists
completely or not at all, and if two processes want the same number, one fails. The staged files
that it names are synced before it.
"""

from dataclasses import dataclass, field
from typing import Self

import msgspec

from odradek.pipeline.jobs import JobError
from odradek.pipeline.jobs.offset_spans import Span, merge_spans
from odradek.storage.files import TEMPORARY_SUFFIX, Files

from .entries import FORMAT, ArchivedFile, Entry, PartitionKey
from .layout import ArchiveLayout, entry_name, entry_number

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Entry).decode


class ManifestConflictError(JobError):
    """Another process has committed to this archive in the meantime."""


@dataclass(slots=True)
class ArchiveState:
    """The result of all entries."""

    last_number: int = 0
    covered: dict[PartitionKey, list[Span]] = field(default_factory=dict)
    files: dict[str, ArchivedFile] = field(default_factory=dict)
    partitions: dict[str, int] = field(default_factory=dict)

    @classmethod
    def of(cls, entries: list[Entry]) -> Self:
        """Return the state after these entries, in the order of their numbers."""
        state = cls()
        for entry in entries:
            state.add(entry)
        return state

    def add(self, entry: Entry) -> None:
        """Apply the next entry."""
        self.last_number = entry.number
        for each in entry.ranges:
            span = Span(each.start, each.end)
            self.covered[each.of] = merge_spans([*self.covered.get(each.of, ()), span])
        for path in entry.replaced:
            self.files.pop(path, None)
        for file in entry.files:
            self.files[file.path] = file
        for topic, count in entry.partitions.items():
            self.partitions[topic] = max(count, self.partitions.get(topic, 0))


@dataclass(frozen=True, slots=True)
class Manifest:
    """The entries of an archive."""

    layout: ArchiveLayout
    files: Files

    def entries(self) -> list[Entry]:
        """Return all entries in order; none if there is no archive. Raises JobError, OSError."""
        try:
            names = self.files.list_directory(self.layout.manifest)
        except FileNotFoundError:
            return []
        numbers = [number for number in map(entry_number, names) if number is not None]
        if numbers != list(range(1, len(numbers) + 1)):
            missing = sorted(set(range(1, numbers[-1] + 1)) - set(numbers))
            listed = ", ".join(map(str, missing[:10]))
            raise JobError(f"{self.layout.manifest}: missing entries: {listed}")
        return [self._entry(number) for number in numbers]

    def add(self, entry: Entry) -> None:
        """Commit an entry. Raises ManifestConflictError, OSError."""
        path = self.layout.manifest / entry_name(entry.number)
        temporary = path.with_name(f"{path.name}.{entry.run_id}{TEMPORARY_SUFFIX}")
        self.files.write(temporary, _encode(entry))
        try:
            self.files.link(temporary, path)
        except (FileExistsError, FileNotFoundError):  # FileNotFoundError: another run's takeover
            raise ManifestConflictError(
                f"another process is archiving to {self.layout.root}: it has committed {path.name}"
            ) from None
        finally:
            self.files.remove(temporary)
        self.files.fsync_directory(self.layout.manifest)

    def remove_temporary_files(self) -> None:
        """Remove unfinished entries of killed runs."""
        for name in self.files.list_directory(self.layout.manifest):
            if name.endswith(TEMPORARY_SUFFIX):
                self.files.remove(self.layout.manifest / name)

    def _entry(self, number: int) -> Entry:
        path = self.layout.manifest / entry_name(number)
        try:
            entry = _decode(self.files.read(path))
        except msgspec.DecodeError as error:
            raise JobError(f"{path} is not an entry of a manifest: {error}") from error
        if entry.format != FORMAT:
            raise JobError(f"{path} has format {entry.format}; this version supports {FORMAT}")
        return entry
