"""The manifest of an archive: entries that are added at its end, one file each, and never change.

An entry is written under another name, synced, and then linked to its own: it is there whole or not
at all, and of two that want the same number one fails. What was synced before it (the staged files
that it names) is there if it is.
"""

from dataclasses import dataclass, field
from typing import Self

import msgspec

from odradek.pipeline.jobs.job_error import JobError
from odradek.pipeline.jobs.offset_spans import Span, joined
from odradek.storage.files import TEMPORARY_SUFFIX, Files

from .entries import FORMAT, ArchivedFile, Entry, PartitionKey
from .layout import ArchiveLayout, entry_name, entry_number

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Entry).decode


class ManifestConflictError(JobError):
    """Somebody else has committed to this archive meanwhile."""


@dataclass(slots=True)
class ArchiveState:
    """What all entries together say."""

    last_number: int = 0
    covered: dict[PartitionKey, list[Span]] = field(default_factory=dict)
    files: dict[str, ArchivedFile] = field(default_factory=dict)
    partitions: dict[str, int] = field(default_factory=dict)

    @classmethod
    def of(cls, entries: list[Entry]) -> Self:
        """Of entries in the order of their numbers."""
        state = cls()
        for entry in entries:
            state.add(entry)
        return state

    def add(self, entry: Entry) -> None:
        """The next entry."""
        self.last_number = entry.number
        for each in entry.ranges:
            span = Span(each.start, each.end)
            self.covered[each.of] = joined([*self.covered.get(each.of, ()), span])
        for path in entry.replaced:
            self.files.pop(path, None)
        for file in entry.files:
            self.files[file.path] = file
        for topic, count in entry.partitions.items():
            self.partitions[topic] = max(count, self.partitions.get(topic, 0))


@dataclass(frozen=True, slots=True)
class Manifest:
    """The entries that lie in an archive."""

    layout: ArchiveLayout
    files: Files

    def entries(self) -> list[Entry]:
        """All of them, in their order; none where there is no archive. Raises JobError, OSError."""
        try:
            names = self.files.list_directory(self.layout.manifest)
        except FileNotFoundError:
            return []
        numbers = [number for number in map(entry_number, names) if number is not None]
        if numbers != list(range(1, len(numbers) + 1)):
            raise JobError(f"{self.layout.manifest}: an entry is missing: {_holes(numbers)}")
        return [self._entry(number) for number in numbers]

    def add(self, entry: Entry) -> None:
        """Commit. Raises ManifestConflictError, OSError."""
        path = self.layout.manifest / entry_name(entry.number)
        temporary = path.with_name(f"{path.name}.{entry.run_id}{TEMPORARY_SUFFIX}")
        self.files.write(temporary, _encode(entry))
        try:
            self.files.link(temporary, path)
        except (FileExistsError, FileNotFoundError):  # or what was written has been tidied away
            raise ManifestConflictError(
                f"another process archives into {self.layout.root}: it was first with {path.name}"
            ) from None
        finally:
            self.files.remove(temporary)
        self.files.fsync_directory(self.layout.manifest)

    def tidy(self) -> None:
        """Remove what killed runs have left beside the entries."""
        for name in self.files.list_directory(self.layout.manifest):
            if name.endswith(TEMPORARY_SUFFIX):
                self.files.remove(self.layout.manifest / name)

    def _entry(self, number: int) -> Entry:
        path = self.layout.manifest / entry_name(number)
        try:
            entry = _decode(self.files.read(path))
        except msgspec.DecodeError as error:
            raise JobError(f"{path} is no entry of a manifest: {error}") from error
        if entry.format != FORMAT:
            raise JobError(f"{path} has format {entry.format}; this odradek knows {FORMAT}")
        return entry


def _holes(numbers: list[int]) -> str:
    missing = sorted(set(range(1, numbers[-1] + 1)) - set(numbers))
    return ", ".join(map(str, missing[:10]))
