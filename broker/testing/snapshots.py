"""Copies of a data directory, to which a test can return.

A copy is made in one turn of the event loop. Disk threads may be at work meanwhile: they create,
rename and remove files. So a copy holds what a broker leaves that is killed at that moment, and the
next start recovers it. A copy from which a file has vanished is made again.

A broker of one node writes no more to the `.log` files of closed segments, so these are shared by
hard links, with their indexes, which are only written again with the same entries. The leader of a
cluster may be elected without the newest records; then its log is truncated, also in segments that
were closed. So of a cluster all files are copied. The indexes of active segments are left out: they
are mostly holes, and the recovery after a restart writes them again.
"""

import os
import shutil
from pathlib import Path

from odradek.storage.filenames import (
    LOCK,
    DirectoryState,
    FileKind,
    FileState,
    is_foreign_directory,
    live_offsets,
    parse_partition_directory,
    segment_file,
)

INDEXES = (FileKind.OFFSET_INDEX, FileKind.TIME_INDEX)
ATTEMPTS = 20


def copy_directory(source: Path, target: Path, *, shares_segments: bool) -> None:
    """Copy a data directory. `target` must not exist. Raises OSError.

    `shares_segments`: whether closed segments are shared by hard links.
    """
    for attempt in range(1, ATTEMPTS + 1):
        try:
            _copy(source, target, shares_segments)
            return
        except FileNotFoundError:
            if attempt == ATTEMPTS:
                raise
            shutil.rmtree(target)


def restored_directory(data: Path) -> Path:
    """Where the copy that replaces the data directory is made.

    It is complete before the data directory is removed.
    """
    return data.parent / f"{data.name}.snapshot-new"


def end_restore(data: Path) -> None:
    """Put the copy in the place of a data directory that is gone. Raises OSError.

    A start does it after a restore that was killed before.
    """
    new = restored_directory(data)
    if new.exists() and not data.exists():
        new.rename(data)


def _copy(source: Path, target: Path, shares_segments: bool) -> None:
    target.mkdir(parents=True)
    with os.scandir(source) as entries:
        for entry in entries:
            if not entry.is_dir():
                if entry.name != LOCK:
                    shutil.copy2(entry, target)
            elif not _is_left_out(entry.name):
                _copy_log(Path(entry), target / entry.name, shares_segments)


def _is_left_out(name: str) -> bool:
    """Whether a directory is no log, or one that is being deleted."""
    if is_foreign_directory(name):
        return True
    return parse_partition_directory(name).state is DirectoryState.DELETE


def _copy_log(source: Path, target: Path, shares_segments: bool) -> None:
    target.mkdir()
    names = [path.name for path in source.iterdir() if path.suffix != FileState.DELETED]
    offsets = sorted(live_offsets(names, FileKind.LOG))  # none in a log that is being created
    closed = offsets[:-1] if shares_segments else ()
    shared = {segment_file(offset, kind) for offset in closed for kind in FileKind}
    left_out = {segment_file(offset, kind) for offset in offsets[-1:] for kind in INDEXES}
    for name in names:
        if name in shared:
            (target / name).hardlink_to(source / name)
        elif name not in left_out:
            shutil.copy2(source / name, target / name)
