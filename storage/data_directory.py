"""One log directory of the node: its lock and its identity.

`.lock` keeps a second broker out, odradek or Apache Kafka. `meta.properties` holds the identity. An
empty directory gets one; an existing one is never overwritten, except that a missing directory id
is added, as Kafka does. All directories of a node share cluster id and node id; each has its own
directory id. `.kafka_cleanshutdown` says that every log in the directory was closed and synced. It
is read once at start and removed, so that a crash during the start counts as an unclean stop. A
start that is refused before it has opened a log puts it back.

Kafka: LogManager.lockLogDirs, MetaPropertiesEnsemble, CleanShutdownFileHandler.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from odradek.protocol.primitives import random_uuid, uuid_text
from odradek.storage.checkpoints import (
    CheckpointError,
    MetaProperties,
    read_clean_shutdown,
    read_meta_properties,
    write_clean_shutdown,
    write_meta_properties,
)
from odradek.storage.filenames import (
    CLEAN_SHUTDOWN,
    LOCK,
    META_PROPERTIES,
    is_foreign_directory,
    parse_partition_directory,
)
from odradek.storage.files import FileLock, Files, LockHeldError

# Checks the locked directories and their meta.properties before anything is written to them.
Inspection = Callable[[Mapping[Path, MetaProperties | None]], object]


class DirectoryError(Exception):
    """A log directory that this node must not use. The message is one line for the user."""


class DataDirectory:
    """A locked log directory with its identity. Made by `open_directories`."""

    def __init__(
        self,
        files: Files,
        path: Path,
        lock: FileLock,
        cluster_id: str,
        directory_id: bytes,
        *,
        had_clean_shutdown: bool,
        broker_epoch: int | None = None,
    ) -> None:
        """`broker_epoch` is that of the clean shutdown; None if it is not known."""
        self.path = path
        self.cluster_id = cluster_id
        self.directory_id = directory_id
        self.offline_reason: str | None = None
        # Whether a log is on disk that is not closed at a stop, so the stop is not clean: it could
        # not be renamed for its removal and is no longer in the log table.
        self.has_lost_log = False
        self.had_clean_shutdown = had_clean_shutdown
        self.broker_epoch = broker_epoch
        self._files = files
        self._lock = lock

    def __repr__(self) -> str:
        return f"DataDirectory({str(self.path)!r})"

    @property
    def is_online(self) -> bool:
        return self.offline_reason is None

    def mark_clean(self, broker_epoch: int) -> None:
        """Write the mark of a clean shutdown: every log in the directory is closed and synced."""
        write_clean_shutdown(self._files, self.path, broker_epoch)

    def restore_mark(self) -> None:
        """Write the mark that was found at the start again, if there was one. Raises OSError."""
        if self.had_clean_shutdown:
            self.mark_clean(-1 if self.broker_epoch is None else self.broker_epoch)

    def unlock(self) -> None:
        """Release the lock. May be called twice."""
        self._lock.release()


class OpenedDirectories:
    """The directories that were opened, and the others with the reasons."""

    def __init__(self) -> None:
        self.online: list[DataDirectory] = []
        self.offline: dict[Path, str] = {}


def open_directories(
    files: Files,
    paths: Sequence[Path],
    *,
    node_id: int,
    cluster_id: str | None = None,
    inspect: Inspection = lambda _: None,
) -> OpenedDirectories:
    """Lock every directory, give the empty ones an identity, and check that of the others.

    A directory with a disk error is left out. Raises DirectoryError if one is locked, named in two
    ways, of another cluster or node, or holds logs without an identity, and if none is left. Also
    raises what `inspect` raises. After an error all directories are unlocked. Those that were
    missing have been made; nothing else has changed, unless disk errors have left none.
    """
    opened = OpenedDirectories()
    locks: dict[Path, FileLock] = {}
    try:
        for path in dict.fromkeys(path.absolute() for path in paths):
            try:
                locks[path] = _lock(files, path, locks)
            except OSError as error:
                opened.offline[path] = str(error)
        _identify(files, locks, opened, node_id, cluster_id, inspect)
        if not opened.online:
            reasons = "; ".join(f"{path}: {why}" for path, why in opened.offline.items())
            raise DirectoryError(f"no log directory can be used: {reasons}")
    except BaseException:
        for lock in locks.values():
            lock.release(as_found=True)
        raise
    return opened


def _lock(files: Files, path: Path, locked: Iterable[Path]) -> FileLock:
    """Make and lock a directory. `locked`: those that have been locked before it."""
    if not files.is_directory(path):
        files.make_directory(path)
        files.make_private(path)
        files.fsync_directory(path.parent)
    try:
        return files.lock(path / LOCK)
    except LockHeldError:
        for other in locked:
            if other.samefile(path):
                raise DirectoryError(
                    f"log directories {other} and {path} are the same directory"
                ) from None
        raise DirectoryError(
            f"log directory {path} is in use: another broker, odradek or Apache Kafka, holds "
            f"{path / LOCK}"
        ) from None


def _identify(
    files: Files,
    locks: dict[Path, FileLock],
    opened: OpenedDirectories,
    node_id: int,
    cluster_id: str | None,
    inspect: Inspection,
) -> None:
    metas: dict[Path, MetaProperties | None] = {}
    for path in locks:
        try:
            metas[path] = _read_meta(files, path)
        except OSError as error:
            opened.offline[path] = str(error)
    cluster_id = _agreed_cluster_id(metas, node_id, cluster_id)
    inspect(metas)
    for path, meta in metas.items():
        directory_id = meta.directory_id if meta else None
        try:
            if directory_id is None:
                directory_id = random_uuid()
                new_meta = MetaProperties(cluster_id, node_id, directory_id)
                write_meta_properties(files, path, new_meta)
            opened.online.append(_claim(files, path, locks[path], cluster_id, directory_id))
        except OSError as error:
            opened.offline[path] = str(error)
    for path in opened.offline.keys() & locks.keys():
        locks[path].release()


def _claim(
    files: Files, path: Path, lock: FileLock, cluster_id: str, directory_id: bytes
) -> DataDirectory:
    """Read the mark of a clean shutdown and remove it. Raises OSError."""
    had_clean_shutdown = files.exists(path / CLEAN_SHUTDOWN)
    broker_epoch = read_clean_shutdown(files, path)
    files.remove(path / CLEAN_SHUTDOWN)
    if had_clean_shutdown:  # a power cut must not bring it back when logs have been written
        files.fsync_directory(path)
    return DataDirectory(
        files,
        path,
        lock,
        cluster_id,
        directory_id,
        had_clean_shutdown=had_clean_shutdown,
        broker_epoch=broker_epoch,
    )


def _read_meta(files: Files, path: Path) -> MetaProperties | None:
    try:
        meta = read_meta_properties(files, path)
    except CheckpointError as error:
        raise DirectoryError(str(error)) from None
    if meta is None:
        for name in files.list_directory(path):
            if files.is_directory(path / name) and _is_log_directory(name):
                raise DirectoryError(
                    f"{path} holds the log {name} but no {META_PROPERTIES}: restore that file, or "
                    "name an empty directory"
                )
    return meta


def _is_log_directory(name: str) -> bool:
    if is_foreign_directory(name):
        return False
    try:
        parse_partition_directory(name)
    except ValueError:
        return False
    return True


def _agreed_cluster_id(
    metas: dict[Path, MetaProperties | None], node_id: int, cluster_id: str | None
) -> str:
    origin = "the configuration"
    directory_ids: dict[bytes, Path] = {}
    for path, meta in metas.items():
        if meta is None:
            continue
        file = path / META_PROPERTIES
        if meta.node_id != node_id:
            raise DirectoryError(
                f"{file}: node.id is {meta.node_id}, the configuration says {node_id}"
            )
        if cluster_id is not None and meta.cluster_id != cluster_id:
            raise DirectoryError(
                f"{file}: cluster.id is {meta.cluster_id}, {origin} says {cluster_id}"
            )
        cluster_id, origin = meta.cluster_id, str(file)
        if meta.directory_id is not None:
            twin = directory_ids.setdefault(meta.directory_id, path)
            if twin != path:
                raise DirectoryError(
                    f"{file}: directory.id is {uuid_text(meta.directory_id)}, which "
                    f"{twin / META_PROPERTIES} has too: one is a copy of the other"
                )
    return uuid_text(random_uuid()) if cluster_id is None else cluster_id
