"""Which files this process has open."""

from contextlib import suppress
from pathlib import Path


def open_links() -> list[str]:
    """What the open descriptors of this process refer to: paths, and for example socket:[1234]."""
    links = []
    for descriptor in Path("/proc/self/fd").iterdir():
        with suppress(FileNotFoundError):  # closed meanwhile, or the descriptor of this listing
            links.append(str(descriptor.readlink()))
    return links


def open_files(directory: Path) -> list[str]:
    """The open files below a directory, by the names they have, or had before their removal.

    A directory whose name begins with that one counts, too: one that was renamed to be deleted.
    """
    return [link for link in open_links() if link.startswith(str(directory))]
