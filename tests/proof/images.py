"""The directories that a power cut could leave: for each place in a journal, what may be missing.

What was synced is there. Of what was not, a disk may have kept any part, in any order; all parts
are too many. These are taken, each with all names and with the synced names only:

    all, or nothing; all but one file, or one file only; all but the names of one directory
    of the last write: as many sectors as were written before the cut, or the others only
    of one file: its length, but none of its bytes

A rename is done or not: file systems keep that promise. The same directory is made only once for
the same promises.
"""

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from .journal import ROOT, Entry, Lost, Mark, Name, Names, Resize, Sync, SyncNames, Write

SECTORS = (512, 4096)
# Of a large write so many places are enough.
TEARS = 4
# Of the files that are not synced, so many are left out in turn, beside the one that was written.
FILES = 2


class Content(NamedTuple):
    """The bytes of a file, but for a hole at its end: a log's indexes are made large."""

    data: bytes
    size: int

    def changed(self, entry: Write | Resize) -> "Content":
        if isinstance(entry, Resize):
            return Content(self.data[: entry.size], entry.size)
        end = entry.position + len(entry.data)
        before = self.data[: entry.position].ljust(entry.position, b"\0")
        return Content(before + entry.data + self.data[end:], max(self.size, end))

    def part(self, position: int, size: int) -> bytes:
        return self.data[position : position + size].ljust(size, b"\0")


EMPTY = Content(b"", 0)
Tree = dict[str, Content | None]


class Image(NamedTuple):
    """What is below a directory: contents by path, None for a directory.

    `at`: so many entries of the journal are done. `what`: which parts of them are on the disk.
    `promises`: so many of them were marks.
    """

    at: int
    what: str
    tree: Tree
    promises: int

    def write(self, root: Path) -> None:
        """Make the directory `root`, which does not exist."""
        root.mkdir()
        for name, content in sorted(self.tree.items()):
            path = root / name
            if content is None:
                path.mkdir()
            else:
                with path.open("wb") as file:
                    file.write(content.data)
                    file.truncate(content.size)


@dataclass
class _File:
    synced: Content = EMPTY
    now: Content = EMPTY
    before: Content = EMPTY
    """The content before the last change."""

    def change(self, entry: Write | Resize) -> None:
        self.before = self.now
        self.now = self.now.changed(entry)

    def lose(self, *, keeps_size: bool) -> None:
        """Forget what is not synced."""
        self.now = self.without_bytes if keeps_size else self.synced

    @property
    def without_bytes(self) -> Content:
        """Its length, but none of the bytes that were appended."""
        return Content(self.synced.data[: self.now.size], self.now.size)


@dataclass
class _Directory:
    synced: dict[str, Name] = field(default_factory=dict)
    now: dict[str, Name] = field(default_factory=dict)


Choice = Callable[[int, _File], Content]


def images(journal: Sequence[Entry], first: int = 0) -> Iterator[Image]:
    """Make the images of every prefix of a journal that has more than `first` entries."""
    seen: set[int] = set()
    disk, promises = _Disk(), 0
    for at, entry in enumerate(journal):
        if isinstance(entry, Mark):
            promises += 1
            continue
        disk.apply(entry)
        if at < first:
            continue
        for what, tree in disk.trees(entry):
            key = hash((promises, frozenset(tree.items())))
            if key not in seen:
                seen.add(key)
                yield Image(at + 1, what, tree, promises)


def last_image(journal: Sequence[Entry]) -> Image:
    """Make what is there after the whole journal: what a kill leaves."""
    disk, promises = _after(journal)
    return Image(len(journal), "all", disk.tree(_now, all_names=True), promises)


def some_image(journal: Sequence[Entry], chosen_by: random.Random) -> Image:
    """Make one of the images of the whole journal: what a power cut leaves."""
    disk, promises = _after(journal)
    last = next(entry for entry in reversed(journal) if not isinstance(entry, Mark))
    what, tree = chosen_by.choice(list(disk.trees(last)))
    return Image(len(journal), what, tree, promises)


def _after(journal: Sequence[Entry]) -> tuple["_Disk", int]:
    """Return the disk after the whole journal, and how many marks there were."""
    disk, promises = _Disk(), 0
    for entry in journal:
        if isinstance(entry, Mark):
            promises += 1
        else:
            disk.apply(entry)
    return disk, promises


class _Disk:
    """What is on a disk, and what was synced."""

    def __init__(self) -> None:
        self._files: dict[int, _File] = {}
        self._directories: dict[int, _Directory] = {ROOT: _Directory()}
        self._entries = 0

    def apply(self, entry: Entry) -> None:
        """Do one more thing."""
        self._entries += 1
        match entry:
            case Names(changes):
                for change in changes:
                    self._rename(change)
            case Sync(file):
                self._files[file].synced = self._files[file].now
            case Lost(file, keeps_size):
                self._files[file].lose(keeps_size=keeps_size)
            case SyncNames(directory):
                self._directories[directory].synced = dict(self._directories[directory].now)
            case Write(file) | Resize(file):
                self._files[file].change(entry)

    def _rename(self, change: Name) -> None:
        names = self._directories[change.directory].now
        if change.node is None:
            names.pop(change.name, None)
            return
        names[change.name] = change
        if change.is_directory:
            self._directories.setdefault(change.node, _Directory())
        else:
            self._files.setdefault(change.node, _File())

    def trees(self, last: Entry) -> Iterator[tuple[str, Tree]]:
        """Make what may be left if the power goes after the entry `last`."""
        for names in (True, False):
            with_names = "all names" if names else "synced names"
            for what, content in self._contents(last):
                yield f"{with_names}, {what}", self.tree(content, names)
        for number, directory in self._directories.items():
            if directory.now != directory.synced:
                yield f"names but those of directory {number}", self.tree(_now, True, number)

    def _contents(self, last: Entry) -> Iterator[tuple[str, Choice]]:
        yield "all content", _now
        yield "synced content", _synced
        unsynced = [number for number, file in self._files.items() if file.now != file.synced]
        some = random.Random(self._entries).sample(unsynced, min(FILES, len(unsynced)))
        if isinstance(last, Write | Resize) and last.file in unsynced:
            some.append(last.file)
        for number in dict.fromkeys(some):
            yield f"all but file {number}", _choose(number, _synced, _now)
            yield f"only file {number}", _choose(number, _now, _synced)
            lengths = _choose(number, lambda _, file: file.without_bytes, _now)
            yield f"the length only of file {number}", lengths
        if isinstance(last, Write) and last.file in unsynced:
            file = self._files[last.file]
            for where, data in _torn(last, file.before):
                yield (
                    f"{where} of the last write",
                    _choose(last.file, _of(file.now.changed(last._replace(data=data))), _now),
                )

    def tree(self, content: Choice, all_names: bool, synced_one: int | None = None) -> Tree:
        tree: Tree = {}

        def add(number: int, prefix: str) -> None:
            directory = self._directories[number]
            names = directory.now if all_names and number != synced_one else directory.synced
            for name, each in names.items():
                assert each.node is not None
                if each.is_directory:
                    tree[prefix + name] = None
                    add(each.node, f"{prefix}{name}/")
                else:
                    tree[prefix + name] = content(each.node, self._files[each.node])

        add(ROOT, "")
        return tree


def _now(_: int, file: _File) -> Content:
    return file.now


def _synced(_: int, file: _File) -> Content:
    return file.synced


def _of(content: Content) -> Choice:
    return lambda _, __: content


def _choose(number: int, of_it: Choice, of_others: Choice) -> Choice:
    return lambda each, file: (of_it if each == number else of_others)(each, file)


def _torn(write: Write, before: Content) -> Iterator[tuple[str, bytes]]:
    """The written bytes, but for the sectors that did not reach the disk."""
    size, start = len(write.data), write.position
    old = before.part(start, size)
    for sector in SECTORS:
        first = (start // sector + 1) * sector
        places = [*range(first, start + size, sector)]
        for place in places[:TEARS] + places[TEARS:][-1:]:
            cut = place - start
            yield f"{cut} bytes", write.data[:cut] + old[cut:]
            yield f"all but {cut} bytes", old[:cut] + write.data[cut:]
