"""Control records: records about the log itself, stored between the users' records.

They are in batches with the control bit. The key is `int16 version = 0 | int16 type`, the value a
message of that type. The ends of transactions occur in every log, all other types only in the
metadata log and its snapshots. On disk: never renumber.

Kafka: ControlRecordType, ControlRecordUtils.
"""

import struct
from collections.abc import Mapping
from enum import IntEnum
from typing import Annotated

from odradek.protocol.primitives import ZERO_UUID
from odradek.protocol.schema import (
    DecodeError,
    Int16,
    Int32,
    Int64,
    Message,
    String,
    Struct,
    Uint16,
    Uuid,
    since,
)


class ControlRecordType(IntEnum):
    """The type of a control record."""

    ABORT = 0
    COMMIT = 1
    LEADER_CHANGE = 2
    SNAPSHOT_HEADER = 3
    SNAPSHOT_FOOTER = 4
    KRAFT_VERSION = 5
    KRAFT_VOTERS = 6


_KINDS = {int(kind): kind for kind in ControlRecordType}
_VERSION = struct.Struct(">h")


class ControlRecordTypeSchema(Message, versions="0"):
    """The key without the int16 version before it; see `control_key`."""

    type: Int16


def control_key(kind: ControlRecordType) -> bytes:
    """The key of a control record of this kind."""
    return _VERSION.pack(0) + ControlRecordTypeSchema(type=kind).encode(0)


def control_type(key: bytes | memoryview | None) -> ControlRecordType | None:
    """Return the type in a control record's key, or None if the type is unknown.

    Raises DecodeError if the key is not one of a control record. A later version of the key is read
    as version 0, because Kafka guarantees that its fields stay.
    """
    if key is None or len(key) < _VERSION.size:
        raise DecodeError(f"the key of a control record has a version, not {key!r}")
    version = _VERSION.unpack_from(key)[0]
    if version < 0:
        raise DecodeError(f"version {version} of a control record's key")
    return _KINDS.get(ControlRecordTypeSchema.decode(key, 0, _VERSION.size).type)


class EndTxnMarker(Message, versions="0"):
    """The value of ABORT and COMMIT without the int16 version before it; see `end_txn_value`."""

    coordinator_epoch: Int32


def end_txn_value(coordinator_epoch: int) -> bytes:
    """The value of an ABORT or COMMIT record."""
    return _VERSION.pack(0) + EndTxnMarker(coordinator_epoch=coordinator_epoch).encode(0)


def coordinator_epoch_of(value: bytes | memoryview) -> int:
    """The coordinator epoch in the value of an ABORT or COMMIT record. Raises DecodeError."""
    if len(value) < _VERSION.size:
        raise DecodeError(f"the value of an end-of-transaction marker of {len(value)} bytes")
    return EndTxnMarker.decode(value, 0, _VERSION.size).coordinator_epoch


class LeaderChangeVoter(Struct):
    voter_id: Int32
    voter_directory_id: Annotated[Uuid, since(1)] = ZERO_UUID


class LeaderChangeMessage(Message, versions="0-1", flexible="0+"):
    """The first record of a quorum epoch; `version` repeats the message's version."""

    version: Int16
    leader_id: Int32
    voters: list[LeaderChangeVoter]
    granting_voters: list[LeaderChangeVoter]


class SnapshotHeaderRecord(Message, versions="0", flexible="0+"):
    """The first record of a snapshot."""

    version: Int16
    last_contained_log_timestamp: Int64


class SnapshotFooterRecord(Message, versions="0", flexible="0+"):
    """The last record of a snapshot. A snapshot without it is incomplete."""

    version: Int16


class KRaftVersionRecord(Message, versions="0", flexible="0+"):
    """The finalised `kraft.version`."""

    version: Int16
    kraft_version: Int16


class VoterEndpoint(Struct):
    name: String
    host: String
    port: Uint16


class KRaftVersionFeature(Struct):
    min_supported_version: Int16
    max_supported_version: Int16


class Voter(Struct):
    voter_id: Int32
    voter_directory_id: Uuid
    endpoints: list[VoterEndpoint]
    kraft_version_feature: KRaftVersionFeature


class VotersRecord(Message, versions="0", flexible="0+"):
    """The voters of the quorum. Written if kraft.version is 1 or higher."""

    version: Int16
    voters: list[Voter]


# The first field of each message is its version.
QUORUM_RECORDS: Mapping[ControlRecordType, type[Message]] = {
    ControlRecordType.LEADER_CHANGE: LeaderChangeMessage,
    ControlRecordType.SNAPSHOT_HEADER: SnapshotHeaderRecord,
    ControlRecordType.SNAPSHOT_FOOTER: SnapshotFooterRecord,
    ControlRecordType.KRAFT_VERSION: KRaftVersionRecord,
    ControlRecordType.KRAFT_VOTERS: VotersRecord,
}


def decode_quorum_record(kind: ControlRecordType, value: bytes) -> Message:
    """Decode the value of a quorum control record. Raises DecodeError."""
    if len(value) < _VERSION.size:
        raise DecodeError(f"the value of a {kind.name} record of {len(value)} bytes")
    version = _VERSION.unpack_from(value)[0]
    return QUORUM_RECORDS[kind].decode(value, version)
