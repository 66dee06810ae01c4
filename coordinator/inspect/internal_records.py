"""Decodes the records of internal topics, and control records, to JSON values.

A decoder returns a key and a value: each is None, a text, or a message as JSON. It raises
UnreadableError where Kafka's tool would stop. If one record of an internal log cannot be decoded,
the decoder returns the error message in place of the record.

Kafka: DumpLogSegments.MessageParser and its subclasses.
"""

import struct
from collections.abc import Callable, Mapping
from typing import NamedTuple, Protocol

from odradek.coordinator.transactions.states import TransactionState
from odradek.protocol.declaration import present_fields
from odradek.protocol.primitives import read_uvarint
from odradek.protocol.records import (
    cluster_metadata,
    consumer_offsets,
    share_group_state,
    transaction_state,
)
from odradek.protocol.records.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
)
from odradek.protocol.records.control import (
    QUORUM_RECORDS,
    ControlRecordType,
    control_type,
    coordinator_epoch_of,
)
from odradek.protocol.records.metadata_frame import check_end
from odradek.protocol.schema import DecodeError, Message, Struct, codec_for
from odradek.storage.inspect.raw_message import UnreadableError

from .kafka_json import Json, as_json

_INT16 = struct.Struct(">h")
_FRAME_VERSION = 1
_LARGEST_NUMBER = 0x7FFF
_UNKNOWN_TYPE = "org.apache.kafka.common.errors.UnsupportedVersionException: Unknown metadata id "


class AnyRecord(Protocol):
    """A record of any format."""

    @property
    def offset(self) -> int: ...

    @property
    def key(self) -> bytes | None: ...

    @property
    def value(self) -> bytes | None: ...


class Decoded(NamedTuple):
    """The key and the value of one record; None for null."""

    key: Json
    value: Json


RecordDecoder = Callable[[AnyRecord], Decoded]
# The classes of key and value, by record type.
_Pairs = Mapping[int, tuple[type[Message], type[Message]]]


# --- the coordinators' logs


class _RecordError(Exception):
    """One record cannot be decoded. The message has Kafka's wording."""


def coordinator_decoder(types: _Pairs) -> RecordDecoder:
    """Make a decoder for a coordinator's log.

    These are `__consumer_offsets`, `__transaction_state` and `__share_group_state`. `types` maps
    the record type at the start of each key to the classes of key and value.
    """

    def decode(record: AnyRecord) -> Decoded:
        key, offset = record.key, record.offset
        if key is None:
            raise UnreadableError(
                f"Failed to decode message at offset {offset} using the specified decoder "
                "(message had a missing key)"
            )
        try:
            number = _leading_int16(key, "key")
            if number not in types:
                return Decoded(f"Unknown record type {number} at offset {offset}, skipping.", None)
            return _decode_typed(types, number, key, record.value)
        except _RecordError as error:
            return Decoded(f"Error at offset {offset}, skipping. {error}", None)

    return decode


def _decode_typed(types: _Pairs, number: int, key: bytes, value: bytes | None) -> Decoded:
    key_type, value_type = types[number]
    decoded_key = _decode_message(key_type, 0, number, key, "key")
    shown_key: Json = {"type": str(number), "data": as_json(decoded_key, 0)}
    if value is None:
        return Decoded(shown_key, "<DELETE>")
    version = _leading_int16(value, "value")
    if version not in value_type.SPEC.versions:
        raise _RecordError(f"Found an unknown record version {version} for {number} type")
    decoded = _decode_message(value_type, version, version, value, "value")
    data = as_json(decoded, version)
    if isinstance(decoded, consumer_offsets.GroupMetadataValue):
        _decode_member_fields(decoded, data)
    elif isinstance(decoded, transaction_state.TransactionLogValue):
        data["transactionStatus"] = _status_name(decoded.transaction_status)
    return Decoded(shown_key, {"version": str(version), "data": data})


def _decode_message(
    declared: type[Message], version: int, shown_version: int, data: bytes, part: str
) -> Message:
    """Decode a key or value after its leading int16. Raises _RecordError.

    `shown_version` is what Kafka's message calls the version: for a key, the record type.
    """
    try:
        return declared.decode(data, version, _INT16.size)
    except DecodeError as error:
        raise _RecordError(
            f"Could not read record with version {shown_version} from {part}'s buffer due to: "
            f"{error}."
        ) from None


def _leading_int16(data: bytes, part: str) -> int:
    if len(data) < _INT16.size:
        raise _RecordError(f"Could not read version from {part}'s buffer.")
    number: int = _INT16.unpack_from(data)[0]
    return number


def _decode_member_fields(
    group: consumer_offsets.GroupMetadataValue, shown: dict[str, Json]
) -> None:
    """Replace the bytes of members' subscriptions and assignments in `shown` by their content.

    Only for groups of consumers; bytes that cannot be decoded are left as they are.
    """
    members = shown["members"]
    if group.protocol_type != "consumer" or not isinstance(members, list):
        return
    for member, shown_member in zip(group.members, members, strict=True):
        assert isinstance(shown_member, dict)
        for field, data, declared in (
            ("subscription", member.subscription, ConsumerProtocolSubscription),
            ("assignment", member.assignment, ConsumerProtocolAssignment),
        ):
            decoded = _decoded_or_none(declared, data)
            if decoded is not None:
                shown_member[field] = decoded


def _status_name(number: int) -> str:
    """The name of a transaction's state, as Kafka 4.4 prints it; the number if it is not known."""
    known = number in TransactionState.__members__.values()
    return TransactionState(number).client_name if known else str(number)


def _decoded_or_none(declared: type[Message], data: bytes) -> Json:
    if len(data) < _INT16.size:
        return None
    (version,) = _INT16.unpack_from(data)
    try:
        message, known, _ = _decode_nearest_version(declared, version, data, _INT16.size)
    except DecodeError:
        return None
    return as_json(message, known)


def _decode_nearest_version(
    declared: type[Message], version: int, data: bytes, position: int
) -> tuple[Message, int, int]:
    """Decode a message whose version may be unknown, as Kafka does. Raises DecodeError.

    Returns the message, the version it was decoded with, and the position after it. Kafka's readers
    use the nearest version that they know. But a nested struct is refused in an unknown version.
    """
    versions = declared.SPEC.versions
    known = max(versions.lowest, min(version, versions.highest))
    message, end = codec_for(declared, known).decode(data, position)
    if known != version and _has_nested_structs(message, known):
        raise DecodeError(f"{declared.__name__} has versions {versions}, not {version}")
    return message, known, end


def _has_nested_structs(message: Message, version: int) -> bool:
    for field, _ in present_fields(type(message), version):
        value = getattr(message, field.name)
        first = value[0] if isinstance(value, list) and value else value
        if isinstance(first, Struct):
            return True
    return False


# --- the metadata log


def metadata_decoder(record: AnyRecord) -> Decoded:
    """Decode a record of `__cluster_metadata` or its snapshots; they have no keys."""
    try:
        return Decoded(None, _decode_metadata(record.value))
    except (_RecordError, DecodeError) as error:
        return Decoded(None, f"Error at {record.offset}, skipping. {error}")


def _decode_metadata(value: bytes | None) -> Json:
    data = value or b""
    frame, position = _read_number(data, 0, "frame version")
    if frame == 0:
        raise _RecordError(
            "Could not deserialize metadata record with frame version 0. Note that upgrades from "
            "the preview release of KRaft in 2.8 to newer versions are not supported."
        )
    if frame != _FRAME_VERSION:
        raise _RecordError(
            f"Could not deserialize metadata record due to unknown frame version {frame}(only "
            f"frame version {_FRAME_VERSION} is supported)"
        )
    number, position = _read_number(data, position, "type")
    version, position = _read_number(data, position, "version")
    declared = cluster_metadata.RECORD_TYPES.get(number)
    if declared is None:
        raise _RecordError(f"{_UNKNOWN_TYPE}{number}")
    try:
        message, known, position = _decode_nearest_version(declared, version, data, position)
    except DecodeError:
        raise _RecordError(f"Failed to deserialize record with type {number}") from None
    check_end(data, position, number)
    # "PartitionRecord" becomes "PARTITION_RECORD".
    name = "".join(f"_{c}" if c.isupper() else c.upper() for c in declared.__name__)[1:]
    return {"type": name, "version": version, "data": as_json(message, known)}


def _read_number(data: bytes, position: int, what: str) -> tuple[int, int]:
    try:
        number, position = read_uvarint(data, position)
    except (IndexError, ValueError):
        raise _RecordError(f"Error while reading {what}") from None
    if number > _LARGEST_NUMBER:
        raise _RecordError(f"Value for {what} was too large.")
    return number, position


OFFSETS: RecordDecoder = coordinator_decoder(consumer_offsets.RECORD_TYPES)
TRANSACTIONS: RecordDecoder = coordinator_decoder(transaction_state.RECORD_TYPES)
SHARE_STATE: RecordDecoder = coordinator_decoder(share_group_state.RECORD_TYPES)


# --- control records


class Control(NamedTuple):
    """The content of a control record. `name` is the label that Kafka's tool prints before it."""

    name: str
    kind: ControlRecordType | None
    type_id: int
    coordinator_epoch: int = 0
    message: dict[str, Json] | None = None


_NAMES = {
    ControlRecordType.LEADER_CHANGE: "LeaderChange:",
    ControlRecordType.SNAPSHOT_HEADER: "SnapshotHeader",
    ControlRecordType.SNAPSHOT_FOOTER: "SnapshotFooter",
    ControlRecordType.KRAFT_VERSION: "KRaftVersion",
    ControlRecordType.KRAFT_VOTERS: "KRaftVoters",
}
_ENDS = (ControlRecordType.ABORT, ControlRecordType.COMMIT)  # markers of transactions


def decode_control(key: bytes | None, value: bytes | None) -> Control:
    """Decode a control record. Raises UnreadableError."""
    try:
        kind = control_type(key)
        assert key is not None  # it had a type
        (type_id,) = _INT16.unpack_from(key, _INT16.size)
        if kind is None:
            return Control("controlType:", None, type_id)
        if value is None or (kind in _ENDS and _leading_int16(value, "value") < 0):
            raise DecodeError(f"a {kind.name} record without a value, or of a version below 0")
        if kind in _ENDS:
            return Control("endTxnMarker:", kind, type_id, coordinator_epoch_of(value))
        # Like Kafka: decode as version 0, but print the version that the record names.
        message = QUORUM_RECORDS[kind].decode(value, 0)
        version: int = _INT16.unpack_from(value)[0]
        return Control(_NAMES[kind], kind, type_id, message=as_json(message, version))
    except (DecodeError, _RecordError, struct.error) as error:
        raise UnreadableError(f"a control record: {error}") from None
