"""Which files this process has open."""

from contextlib import suppress
from pathlib import Path


def open_files(directory: Path) -> list[str]:
    """The open files below a directory, by the names they have, or had before their removal.

    A directory whose name begins with that one counts, too: one that was renamed to be deleted.
    """
    names = []
    for descriptor in Path("/proc/self/fd").iterdir():
        with suppress(FileNotFoundError):  # closed meanwhile, or the descriptor of this listing
            names.append(str(descriptor.readlink()))
    return [name for name in names if name.startswith(str(directory))]
