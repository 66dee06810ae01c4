"""Copies of a data directory, to which a test can return.

Segments that are closed are shared by hard links, because nobody writes to them again; other files
are copied. The indexes of active segments are left out: they are mostly holes, and the recovery
after a restart writes them again. The files of a running broker are consistent between two turns of
its event loop: they are what a killed broker leaves.
"""

import shutil
from pathlib import Path

from odradek.storage.filenames import (
    DirectoryState,
    FileKind,
    live_offsets,
    parse_partition_directory,
    segment_file,
)

INDEXES = (FileKind.OFFSET_INDEX, FileKind.TIME_INDEX)


def copy_directory(source: Path, target: Path) -> None:
    """Copy a data directory. `target` must not exist. Raises OSError."""
    target.mkdir(parents=True)
    for path in source.iterdir():
        if path.is_dir():
            if parse_partition_directory(path.name).state is not DirectoryState.DELETE:
                _copy_log(path, target / path.name)
        elif path.name != ".lock":
            shutil.copy2(path, target / path.name)


def _copy_log(source: Path, target: Path) -> None:
    target.mkdir()
    names = [path.name for path in source.iterdir()]
    *closed, active = sorted(live_offsets(names, FileKind.LOG))
    shared = {segment_file(offset, kind) for offset in closed for kind in FileKind}
    left_out = {segment_file(active, kind) for kind in INDEXES}
    for name in names:
        if name in shared:
            (target / name).hardlink_to(source / name)
        elif name not in left_out:
            shutil.copy2(source / name, target / name)
