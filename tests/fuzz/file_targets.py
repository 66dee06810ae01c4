"""Targets: the small files of a data directory, and the syntax of server.properties.

The input is the file's content. A file that can be read is written as the broker would write what
it read, and must then be read as the same.
"""

import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from crc32c import crc32c

from odradek.config.errors import ConfigError
from odradek.config.properties import parse_properties, render_properties
from odradek.coordinator.metadata.quorum_state import (
    QuorumState,
    QuorumStateError,
    read_quorum_state,
    write_quorum_state,
)
from odradek.storage import checkpoints, txn_index
from odradek.storage.checkpoints import CheckpointError
from odradek.storage.producer_entry import BatchSpan, ProducerEntry
from odradek.storage.producer_snapshot import (
    CorruptSnapshotError,
    decode_snapshot,
    encode_snapshot,
)
from odradek.storage.txn_index import AbortedTransaction
from tests.fuzz.one_file import OneFile
from tests.fuzz.target import Target
from tests.support.golden import GOLDEN

PATH = Path("directory")
METADATA = GOLDEN.parent / "metadata"
EXAMPLE_CONFIG = GOLDEN.parents[2] / "server.properties"


def survives(
    read: Callable[..., Any], write: Callable[..., None], *errors: type[Exception]
) -> Callable[[bytes], None]:
    """A target of a reader and its writer, by `read(files, path)`, `write(files, path, value)`."""

    def one_input(data: bytes) -> None:
        try:
            value = read(OneFile(data), PATH)
        except errors:
            return
        if value is not None:
            written = OneFile()
            write(written, PATH, value)
            again = read(written, PATH)
            assert again == value, f"{again} was {value}"

    return one_input


def _of(*contents: bytes | Path) -> Callable[[], Iterator[bytes]]:
    """Seeds: these, and the content of these files."""

    def seeds() -> Iterator[bytes]:
        for content in contents:
            yield content.read_bytes() if isinstance(content, Path) else content

    return seeds


# --- the ones that are not as simple


def read_snapshot(data: bytes) -> None:
    """A producer snapshot, as it is and with the right checksum."""
    for content in (data, _with_checksum(data)):
        try:
            producers = decode_snapshot(content)
        except CorruptSnapshotError:
            continue
        again = decode_snapshot(encode_snapshot(producers))
        assert [_fields(each) for each in again] == [_fields(each) for each in producers]


def _with_checksum(data: bytes) -> bytes:
    return data[:2] + struct.pack(">I", crc32c(data[6:])) + data[6:]


def _fields(producer: ProducerEntry) -> list[object]:
    return [getattr(producer, name) for name in ProducerEntry.__slots__]


def snapshot_seeds() -> Iterator[bytes]:
    """None, and three producers, one of them in a transaction; and Kafka's own."""
    yield (GOLDEN / "00000000000000000131.snapshot").read_bytes()
    producers = [ProducerEntry(number, 1, 5, txn_first_offset=number - 2) for number in range(3)]
    producers[2].add_span(1, BatchSpan(9, 19, 4, 77))
    yield encode_snapshot(producers)
    yield encode_snapshot([])


def read_properties(data: bytes) -> None:
    """The syntax of server.properties."""
    try:
        pairs = parse_properties(data)
    except ConfigError:
        return
    assert parse_properties(render_properties(pairs, ("a comment",))) == pairs


def aborted_seeds() -> Iterator[bytes]:
    """One entry, and two with a torn third."""
    file = OneFile()
    txn_index.rewrite_aborted(file, PATH, [AbortedTransaction(1, 2, 3, 4)] * 2)
    assert file.content is not None
    yield file.content[:34]
    yield file.content + b"torn"


def quorum_seeds() -> Iterator[bytes]:
    """Both forms, Kafka's and ours."""
    for form in ("static", "dynamic"):
        yield (METADATA / form / "__cluster_metadata-0" / "quorum-state").read_bytes()
    yield QuorumState(leader_id=1, leader_epoch=7, voters=(1, 2)).to_json().encode()
    yield b'{"leaderId":-1e9,"leaderEpoch":"7","votedId":NaN,"currentVoters":null,"data_version":0}'
    yield QuorumState(leader_id=1, leader_epoch=7).to_json().encode()


TARGETS = {
    "producer_snapshot": Target(read_snapshot, snapshot_seeds),
    "properties": Target(
        read_properties,
        _of(
            GOLDEN / "meta.properties",
            b"a=b\n\n# c\n! d\ne\\:f : g\\\n  h\\u00e9\\n\r\nlast",
            EXAMPLE_CONFIG.read_bytes()[:400],
        ),
    ),
    "offset_checkpoint": Target(
        survives(checkpoints.read_offsets, checkpoints.write_offsets, CheckpointError),
        _of(GOLDEN / "recovery-point-offset-checkpoint", b"0\n1\nt 0 5\n", b"0\n0\n"),
    ),
    "epoch_checkpoint": Target(
        survives(checkpoints.read_epochs, checkpoints.write_epochs, CheckpointError),
        _of(GOLDEN / "leader-epoch-checkpoint", b"0\n2\n0 0\n3 1500\n"),
    ),
    "topic_id": Target(
        survives(checkpoints.read_topic_id, checkpoints.write_topic_id, CheckpointError),
        _of(GOLDEN / "partition.metadata"),
    ),
    "clean_shutdown": Target(
        survives(checkpoints.read_clean_shutdown, checkpoints.write_clean_shutdown),
        _of(b'{"version":0,"brokerEpoch":7}', b""),
    ),
    "meta_properties": Target(
        survives(
            checkpoints.read_meta_properties, checkpoints.write_meta_properties, CheckpointError
        ),
        _of(GOLDEN / "meta.properties", METADATA / "dynamic" / "meta.properties"),
    ),
    "quorum_state": Target(
        survives(read_quorum_state, write_quorum_state, QuorumStateError), quorum_seeds
    ),
    "aborted_transactions": Target(
        survives(txn_index.read_aborted, txn_index.rewrite_aborted), aborted_seeds
    ),
}
