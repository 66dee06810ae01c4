"""Records of internal topics as JSON values, those that cannot be decoded among them."""

import struct
from typing import Any

import pytest

from odradek.coordinator.inspect.internal_records import (
    OFFSETS,
    TRANSACTIONS,
    Decoded,
    decode_control,
    metadata_decoder,
)
from odradek.coordinator.transactions.states import TransactionState
from odradek.protocol.record import Record
from odradek.protocol.records.consumer_offsets import (
    GroupMemberMetadata,
    GroupMetadataKey,
    GroupMetadataValue,
    OffsetCommitKey,
)
from odradek.protocol.records.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    ConsumerTopicPartitions,
    encode_versioned,
)
from odradek.protocol.records.control import ControlRecordType, control_key, end_txn_value
from odradek.protocol.records.transaction_state import TransactionLogKey, TransactionLogValue
from odradek.protocol.schema import Message
from odradek.storage.inspect.raw_message import UnreadableError

OFFSET = 7
GROUP_VERSION = 3
PARTITIONS = [ConsumerTopicPartitions(topic="t", partitions=[0, 1])]
SUBSCRIPTION = encode_versioned(ConsumerProtocolSubscription(topics=["t"]), 1)
ASSIGNMENT = encode_versioned(ConsumerProtocolAssignment(assigned_partitions=PARTITIONS), 0)


def numbered(number: int, message: Message, version: int = 0) -> bytes:
    return struct.pack(">h", number) + message.encode(version)


def record(key: bytes | None, value: bytes | None) -> Record:
    return Record(key, value, 0, offset=OFFSET)


def shown_group(protocol_type: str, subscription: bytes, assignment: bytes) -> Any:
    """The value of a classic group with one member."""
    group = GroupMetadataValue(
        protocol_type=protocol_type,
        generation=2,
        protocol="range",
        leader="m",
        members=[
            GroupMemberMetadata(
                member_id="m",
                client_id="c",
                client_host="/h",
                session_timeout=10,
                subscription=subscription,
                assignment=assignment,
            )
        ],
    )
    key = numbered(2, GroupMetadataKey(group="g"))
    decoded = OFFSETS(record(key, numbered(GROUP_VERSION, group, GROUP_VERSION)))
    assert decoded.key == {"type": "2", "data": {"group": "g"}}
    assert isinstance(decoded.value, dict)
    assert decoded.value["version"] == str(GROUP_VERSION)
    return decoded.value["data"]


def test_what_consumers_subscribe_and_are_assigned_is_shown() -> None:
    (member,) = shown_group("consumer", SUBSCRIPTION, ASSIGNMENT)["members"]
    assert member["subscription"] == {"topics": ["t"], "userData": None, "ownedPartitions": []}
    assert member["assignment"] == {
        "assignedPartitions": [{"topic": "t", "partitions": [0, 1]}],
        "userData": None,
    }


def test_bytes_of_members_that_are_no_consumers_are_left_as_they_are() -> None:
    (member,) = shown_group("connect", b"\0\0ab", b"")["members"]
    assert (member["subscription"], member["assignment"]) == ("AABhYg==", "")


@pytest.mark.parametrize("damaged", [b"", b"\0", SUBSCRIPTION[:-1]])
def test_a_subscription_that_cannot_be_decoded_is_left_as_it_is(damaged: bytes) -> None:
    (member,) = shown_group("consumer", damaged, ASSIGNMENT)["members"]
    assert isinstance(member["subscription"], str)
    assert member["assignment"]["userData"] is None


def test_a_subscription_of_a_newer_version_is_read_if_it_has_no_nested_fields() -> None:
    def in_version_9(partitions: list[ConsumerTopicPartitions]) -> bytes:
        plain = ConsumerProtocolSubscription(topics=["t"], owned_partitions=partitions)
        return struct.pack(">h", 9) + plain.encode(3)

    (member,) = shown_group("consumer", in_version_9([]), ASSIGNMENT)["members"]
    assert member["subscription"]["topics"] == ["t"]
    (member,) = shown_group("consumer", in_version_9(PARTITIONS), ASSIGNMENT)["members"]
    assert isinstance(member["subscription"], str)


def test_a_tombstone_is_shown_as_a_deletion() -> None:
    key = numbered(1, OffsetCommitKey(group="g", topic="t", partition=3))
    shown_key = {"type": "1", "data": {"group": "g", "topic": "t", "partition": 3}}
    assert OFFSETS(record(key, None)) == Decoded(shown_key, "<DELETE>")


@pytest.mark.parametrize(
    ("key", "value", "text"),
    [
        (b"\x00", None, "Error at offset 7, skipping. Could not read version from key's buffer."),
        (struct.pack(">h", 99), None, "Unknown record type 99 at offset 7, skipping."),
        (
            numbered(2, GroupMetadataKey(group="g")),
            struct.pack(">h", 99),
            "Error at offset 7, skipping. Found an unknown record version 99 for 2 type",
        ),
        (
            numbered(2, GroupMetadataKey(group="g")),
            b"",
            "Error at offset 7, skipping. Could not read version from value's buffer.",
        ),
    ],
)
def test_a_record_that_cannot_be_decoded_is_named(
    key: bytes, value: bytes | None, text: str
) -> None:
    assert OFFSETS(record(key, value)) == Decoded(text, None)


def test_a_record_without_a_key_ends_the_decoding() -> None:
    with pytest.raises(UnreadableError, match="missing key"):
        OFFSETS(record(None, b""))


@pytest.mark.parametrize(("status", "shown"), [(TransactionState.ONGOING, "Ongoing"), (77, "77")])
def test_the_state_of_a_transaction_has_a_name(status: int, shown: str) -> None:
    value = TransactionLogValue(
        producer_id=1,
        producer_epoch=0,
        transaction_timeout_ms=5,
        transaction_status=status,
        transaction_partitions=None,
        transaction_last_update_timestamp_ms=6,
        transaction_start_timestamp_ms=7,
    )
    key = numbered(0, TransactionLogKey(transactional_id="x"))
    decoded: Any = TRANSACTIONS(record(key, numbered(0, value)))
    assert decoded.value["data"]["transactionStatus"] == shown


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "Error while reading frame version"),
        (b"\0", "frame version 0"),
        (b"\2", "unknown frame version 2"),
        (b"\xff\xff\xff\x0f", "Value for frame version was too large."),
        (b"\1\xff\x07\0", "Unknown metadata id 1023"),
        (b"\1\2\0", "Failed to deserialize record with type 2"),
        (b"\1\x14\0\0\0", "Found 1 byte(s) of garbage after 20"),
    ],
)
def test_a_record_of_the_metadata_log_that_cannot_be_decoded_is_named(
    value: bytes | None, text: str
) -> None:
    decoded = metadata_decoder(record(None, value))
    assert isinstance(decoded.value, str)
    assert decoded.value.startswith("Error at 7, skipping. ")
    assert text in decoded.value


def test_the_end_of_a_transaction_has_the_epoch_of_its_coordinator() -> None:
    control = decode_control(control_key(ControlRecordType.COMMIT), end_txn_value(5))
    assert (control.name, control.coordinator_epoch) == ("endTxnMarker:", 5)
    assert control.kind is ControlRecordType.COMMIT
    unknown = decode_control(struct.pack(">hh", 0, 50), b"")
    assert (unknown.kind, unknown.type_id) == (None, 50)


@pytest.mark.parametrize("value", [None, b"", struct.pack(">h", -1)])
def test_a_control_record_without_its_value_is_refused(value: bytes | None) -> None:
    with pytest.raises(UnreadableError):
        decode_control(control_key(ControlRecordType.ABORT), value)
