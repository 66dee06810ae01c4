"""Typed records and their bytes, in both of Kafka's layouts."""

import pytest

from odradek.coordinator.runtime.outcome import JournalRecord
from odradek.coordinator.runtime.record_codec import CoordinatorRecordCodec, MetadataRecordCodec
from odradek.protocol.primitives import uuid_from_text
from odradek.protocol.records.cluster_metadata import (
    BrokerRegistrationChangeRecord,
    FeatureLevelRecord,
    TopicRecord,
)
from odradek.protocol.schema import DecodeError, Int32, Message, String

METADATA = MetadataRecordCodec.of_cluster()


class Key(Message, versions="0"):
    group: String


class Value(Message, versions="0-1"):
    generation: Int32


COORDINATOR = CoordinatorRecordCodec({2: (Key, Value)})


def test_a_metadata_record_has_the_bytes_that_kafka_writes() -> None:
    """Dumped from a `__cluster_metadata-0` of Apache Kafka 4.3."""
    _, value = METADATA.encode(
        JournalRecord(FeatureLevelRecord(name="metadata.version", feature_level=30))
    )
    assert value == bytes.fromhex("010c00116d657461646174612e76657273696f6e001e00")


@pytest.mark.parametrize(
    ("message", "version"),
    [
        (TopicRecord(name="t", topic_id=uuid_from_text("n3v-FT2uQIiPrqbM4UpMLA")), 0),
        (BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=11, fenced=-1), 0),
        (BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=11, cordoned_log_dirs=[]), 3),
    ],
)
def test_a_metadata_record_is_read_as_it_was_written(message: Message, version: int) -> None:
    record = JournalRecord(message, version)
    assert METADATA.decode(*METADATA.encode(record)) == record


@pytest.mark.parametrize("value", ["01a70100", "010c0100", "011e00"], ids=repr)
def test_a_metadata_record_of_unknown_type_or_version_is_handed_on_as_it_is(value: str) -> None:
    stored = bytes.fromhex(value)
    record = METADATA.decode(None, stored)
    assert record == JournalRecord(None, unread=stored)
    assert METADATA.encode(record) == (None, stored)


@pytest.mark.parametrize("value", [None, b"", b"\x01", b"\x00\x0c\x00", b"\x02\x0c\x00\x01a"])
def test_a_broken_frame_is_an_error(value: bytes | None) -> None:
    with pytest.raises(DecodeError):
        METADATA.decode(None, value)


def test_a_metadata_record_cut_anywhere_is_an_error() -> None:
    _, value = METADATA.encode(JournalRecord(FeatureLevelRecord(name="a", feature_level=1)))
    for end in range(len(value)):
        with pytest.raises(DecodeError):
            METADATA.decode(None, value[:end])


def test_bytes_after_a_metadata_record_are_an_error() -> None:
    _, value = METADATA.encode(JournalRecord(FeatureLevelRecord(name="a", feature_level=1)))
    with pytest.raises(DecodeError, match="1 byte"):
        METADATA.decode(None, value + b"\0")


def test_a_coordinator_record_carries_its_type_in_the_key_and_its_version_in_the_value() -> None:
    record = JournalRecord(Value(generation=7), 1, Key(group="g"))
    key, value = COORDINATOR.encode(record)
    assert key == b"\x00\x02\x00\x01g"
    assert value == b"\x00\x01\x00\x00\x00\x07"
    assert COORDINATOR.decode(key, value) == record


def test_a_tombstone_has_a_key_and_no_value() -> None:
    record = JournalRecord(None, key=Key(group="g"))
    assert COORDINATOR.encode(record) == (b"\x00\x02\x00\x01g", None)
    assert COORDINATOR.decode(b"\x00\x02\x00\x01g", None) == record


def test_a_coordinator_record_of_unknown_type_or_version_is_none() -> None:
    assert COORDINATOR.decode(b"\x00\x09anything", b"\x00\x00") is None
    assert COORDINATOR.decode(b"\x00\x02\x00\x01g", b"\x00\x02\x00\x00\x00\x07") is None


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (None, b"\x00\x00"),
        (b"\x00", None),
        (b"\x00\x02\x00\x05g", None),
        (b"\x00\x02\x00\x01g", b""),
    ],
)
def test_a_broken_coordinator_record_is_an_error(key: bytes | None, value: bytes | None) -> None:
    with pytest.raises(DecodeError):
        COORDINATOR.decode(key, value)
