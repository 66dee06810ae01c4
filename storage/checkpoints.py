"""Reads and writes the small text files of the store. On disk: Kafka reads them too.

    *-offset-checkpoint        leader-epoch-checkpoint     partition.metadata
      0         version          0       version             version: 0
      2         entries          2       entries             topic_id: MkTRaEKlQ9eO8mYRrvUYuA
      orders 0 1500              0 0     epoch, start offset
      orders 1 42                3 1500

    .kafka_cleanshutdown       meta.properties
      {"version":0,              version=1
       "brokerEpoch":7}          cluster.id=4L6g3nShT-eMCtK--X86sw
                                 node.id=1
                                 directory.id=J8aAPcfLQt2bqs1JT_rMgQ

Files are replaced as a whole (Files.atomic_write), so a crash leaves the old or the new content. A
missing or empty file means no entries, as for Kafka. An invalid file raises CheckpointError, and so
does a file whose last line has no newline: some files are written without a sync, a power cut may
leave only the first part of them, and "1 10" cut to "1 1" still looks like an entry (Kafka accepts
it).

Kafka: CheckpointFile, OffsetCheckpointFile, LeaderEpochCheckpointFile, PartitionMetadataFile,
CleanShutdownFileHandler, MetaProperties.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from odradek.config.errors import ConfigError
from odradek.config.java_text import parse_integer
from odradek.config.properties import parse_properties, render_properties
from odradek.protocol.primitives import ZERO_UUID, uuid_from_text, uuid_text

from .filenames import CLEAN_SHUTDOWN, META_PROPERTIES
from .files import Files
from .topic_partition import TopicPartition

_VERSION = 0
_META_VERSION = "1"


class CheckpointError(Exception):
    """A small file of the store is invalid: its path, the line, and the reason."""

    def __init__(self, path: Path, line_number: int, why: str) -> None:
        super().__init__(f"{path}, line {line_number}: {why}")
        self.path = path
        self.line_number = line_number
        self.why = why


class MetaProperties(NamedTuple):
    """meta.properties: the ids of the cluster, of the node, and of the directory itself."""

    cluster_id: str
    node_id: int
    directory_id: bytes | None


def read_offsets(files: Files, path: Path) -> dict[TopicPartition, int]:
    """Read the offsets of a checkpoint; {} if it does not exist. Raises CheckpointError."""
    offsets: dict[TopicPartition, int] = {}
    for number, line in _entries(files, path):
        fields = line.split()
        if len(fields) != 3:
            raise CheckpointError(path, number, f"{line!r} is not 'topic partition offset'")
        topic, partition, offset = fields
        key = TopicPartition(topic, _integer(path, number, partition))
        offsets[key] = _integer(path, number, offset)
    return offsets


def write_offsets(files: Files, path: Path, offsets: Mapping[TopicPartition, int]) -> None:
    """Replace the checkpoint."""
    _write_entries(
        files,
        path,
        [f"{topic} {partition} {offset}" for (topic, partition), offset in offsets.items()],
    )


def read_epochs(files: Files, path: Path) -> list[tuple[int, int]]:
    """(epoch, start offset) in the file's order; [] without a file. Raises CheckpointError."""
    epochs = []
    for number, line in _entries(files, path):
        fields = line.split()
        if len(fields) != 2:
            raise CheckpointError(path, number, f"{line!r} is not 'epoch offset'")
        epoch, offset = (_integer(path, number, field) for field in fields)
        epochs.append((epoch, offset))
    return epochs


def write_epochs(
    files: Files, path: Path, epochs: Sequence[tuple[int, int]], *, sync: bool = True
) -> None:
    """Replace the checkpoint."""
    _write_entries(files, path, [f"{epoch} {offset}" for epoch, offset in epochs], sync=sync)


def _entries(files: Files, path: Path) -> list[tuple[int, str]]:
    """The lines after version and count, with their line numbers; their number equals the count."""
    lines = _lines(files, path, keep_ends=True)
    if lines and not lines[-1].endswith("\n"):
        raise CheckpointError(path, len(lines), f"{lines[-1]!r} is cut off")
    lines = [line.rstrip("\r\n") for line in lines]
    if len(lines) < 2:
        if lines:
            _check_version(path, lines[0])
        return []
    _check_version(path, lines[0])
    expected = _integer(path, 2, lines[1])
    entries = list(enumerate(lines[2:], start=3))
    if len(entries) != expected:
        raise CheckpointError(path, 2, f"{expected} entries announced, {len(entries)} found")
    return entries


def _lines(files: Files, path: Path, *, keep_ends: bool = False) -> list[str]:
    try:
        data = files.read(path)
    except FileNotFoundError:
        return []
    try:
        return data.decode().splitlines(keepends=keep_ends)
    except UnicodeDecodeError as error:
        raise CheckpointError(path, data.count(b"\n", 0, error.start) + 1, str(error)) from None


def _check_version(path: Path, line: str) -> None:
    version = _integer(path, 1, line)
    if version != _VERSION:
        raise CheckpointError(path, 1, f"version {version} is unknown, {_VERSION} was expected")


def _integer(path: Path, line_number: int, text: str) -> int:
    try:
        return parse_integer(text, 64)
    except ValueError:
        raise CheckpointError(path, line_number, f"{text!r} is not a number") from None


def _write_entries(files: Files, path: Path, entries: Iterable[str], *, sync: bool = True) -> None:
    lines = list(entries)
    text = "".join(f"{line}\n" for line in [str(_VERSION), str(len(lines)), *lines])
    files.atomic_write(path, text.encode(), sync=sync)


def read_topic_id(files: Files, path: Path) -> bytes | None:
    """The topic id in partition.metadata; None without a file. Raises CheckpointError."""
    if not (lines := _lines(files, path)):
        return None
    version = _integer(path, 1, _field(path, 1, lines, "version"))
    if version < _VERSION:
        raise CheckpointError(path, 1, f"version {version} is unknown")
    try:
        topic_id = uuid_from_text(_field(path, 2, lines, "topic_id"))
    except ValueError as error:
        raise CheckpointError(path, 2, str(error)) from None
    if topic_id == ZERO_UUID:
        raise CheckpointError(path, 2, "the zero id is not a topic id")
    return topic_id


def _field(path: Path, number: int, lines: Sequence[str], name: str) -> str:
    line = lines[number - 1] if len(lines) >= number else ""
    found, _, value = line.partition(":")
    if found != name or not value.strip():
        raise CheckpointError(path, number, f"{line!r} is not '{name}: ...'")
    return value.strip()


def write_topic_id(files: Files, path: Path, topic_id: bytes, *, sync: bool = True) -> None:
    """Write partition.metadata."""
    text = f"version: {_VERSION}\ntopic_id: {uuid_text(topic_id)}"
    files.atomic_write(path, text.encode(), sync=sync)


def write_clean_shutdown(files: Files, directory: Path, broker_epoch: int) -> None:
    """Record that every log of this log directory was closed and synced."""
    content = json.dumps({"version": _VERSION, "brokerEpoch": broker_epoch}, separators=(",", ":"))
    files.atomic_write(directory / CLEAN_SHUTDOWN, content.encode())


def read_clean_shutdown(files: Files, directory: Path) -> int | None:
    """The broker epoch at the last clean shutdown; None if the file is missing or invalid.

    The shutdown was clean if the file exists, whatever its content.
    """
    try:
        content = json.loads(files.read(directory / CLEAN_SHUTDOWN))
        epoch = content["brokerEpoch"]
    except (FileNotFoundError, ValueError, KeyError, TypeError, RecursionError):
        return None
    return epoch if isinstance(epoch, int) else None


def read_meta_properties(files: Files, directory: Path) -> MetaProperties | None:
    """Read meta.properties; None if the directory is not formatted. Raises CheckpointError."""
    path = directory / META_PROPERTIES
    try:
        data = files.read(path)
    except FileNotFoundError:
        return None
    try:
        pairs = parse_properties(data)
    except ConfigError as error:
        raise CheckpointError(path, 1, str(error)) from None
    version = pairs.get("version", "0")
    if version != _META_VERSION:
        line = _line_of(data, "version")
        raise CheckpointError(
            path, line, f"version {version} is not that of a KRaft node ({_META_VERSION})"
        )
    return MetaProperties(
        _required(path, data, pairs, "cluster.id"),
        _integer(path, _line_of(data, "node.id"), _required(path, data, pairs, "node.id")),
        _directory_id(path, data, pairs),
    )


def _directory_id(path: Path, data: bytes, pairs: Mapping[str, str]) -> bytes | None:
    if "directory.id" not in pairs:
        return None
    try:
        return uuid_from_text(pairs["directory.id"])
    except ValueError as error:
        raise CheckpointError(path, _line_of(data, "directory.id"), str(error)) from None


def _required(path: Path, data: bytes, pairs: Mapping[str, str], key: str) -> str:
    if key not in pairs:
        raise CheckpointError(path, data.count(b"\n") or 1, f"{key} is missing")
    return pairs[key]


def _line_of(data: bytes, key: str) -> int:
    return data[: max(data.find(key.encode()), 0)].count(b"\n") + 1


def write_meta_properties(files: Files, directory: Path, properties: MetaProperties) -> None:
    """Write meta.properties, which assigns the directory to a node."""
    pairs = {
        "cluster.id": properties.cluster_id,
        "node.id": str(properties.node_id),
        "version": _META_VERSION,
    }
    if properties.directory_id is not None:
        pairs["directory.id"] = uuid_text(properties.directory_id)
    files.atomic_write(directory / META_PROPERTIES, render_properties(dict(sorted(pairs.items()))))
