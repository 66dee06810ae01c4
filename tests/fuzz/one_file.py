"""A file system of one file, in memory: what readers and writers of small files need of one."""

from pathlib import Path

from odradek.protocol.compression import Buffer
from odradek.storage.files import Files, OpenFile


class OneFile(Files):
    """Every path is the same file; None while there is none."""

    def __init__(self, content: bytes | None = None) -> None:
        self.content = content

    def read(self, path: Path) -> bytes:
        if self.content is None:
            raise FileNotFoundError(path)
        return self.content

    def exists(self, path: Path) -> bool:
        return self.content is not None

    def pread(self, file: OpenFile, size: int, position: int) -> bytes:
        assert size >= 0, "the system would refuse it"
        assert position >= 0
        return (self.content or b"")[position : position + size]

    def write(self, path: Path, data: Buffer, *, sync: bool = True) -> None:
        self.content = bytes(data)

    def atomic_write(self, path: Path, data: Buffer, *, sync: bool = True) -> None:
        self.content = bytes(data)

    def remove(self, path: Path) -> None:
        self.content = None
