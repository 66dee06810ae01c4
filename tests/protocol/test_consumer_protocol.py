"""What consumers tell each other: versions in front, newer ones understood."""

import pytest

from odradek.protocol.records.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    ConsumerTopicPartitions,
    decode_versioned,
    encode_versioned,
    subscribed_topics,
    version_for,
)
from odradek.protocol.schema import DecodeError

OWNED = [ConsumerTopicPartitions(topic="a", partitions=[0, 2])]


@pytest.mark.parametrize("version", range(4))
def test_a_subscription_comes_back_with_what_its_version_can_say(version: int) -> None:
    told = ConsumerProtocolSubscription(
        topics=["a", "b"], user_data=b"u", owned_partitions=OWNED, generation_id=7, rack_id="r"
    )
    data = encode_versioned(told, version)
    read = decode_versioned(ConsumerProtocolSubscription, data)
    assert (read.topics, read.user_data) == (["a", "b"], b"u")
    assert read.owned_partitions == (OWNED if version >= 1 else [])
    assert read.generation_id == (7 if version >= 2 else -1)
    assert read.rack_id == ("r" if version >= 3 else None)
    assert subscribed_topics(data) == {"a", "b"}


def test_an_assignment_has_the_bytes_that_kafkas_consumer_writes() -> None:
    data = encode_versioned(ConsumerProtocolAssignment(assigned_partitions=OWNED), 0)
    assert data == (
        b"\x00\x00" b"\x00\x00\x00\x01" b"\x00\x01a" b"\x00\x00\x00\x02" b"\x00\x00\x00\x00"
        b"\x00\x00\x00\x02" b"\xff\xff\xff\xff"
    )  # fmt: skip
    assert decode_versioned(ConsumerProtocolAssignment, data).assigned_partitions == OWNED


def test_a_version_of_the_future_is_read_as_the_newest_that_is_known() -> None:
    told = encode_versioned(ConsumerProtocolSubscription(topics=["a"], rack_id="r"), 3)
    future = b"\x00\x09" + told[2:] + b"what later versions append"
    assert decode_versioned(ConsumerProtocolSubscription, future).rack_id == "r"
    assert subscribed_topics(future) == {"a"}


@pytest.mark.parametrize(
    "data", [b"", b"\x00", b"\x00\x00", b"\xff\xff" + bytes(8), b"\x00\x00\x7f"]
)
def test_what_is_no_subscription_is_refused(data: bytes) -> None:
    with pytest.raises(DecodeError):
        subscribed_topics(data)


@pytest.mark.parametrize(("theirs", "ours"), [(0, 0), (2, 2), (3, 3), (9, 3)])
def test_whoever_speaks_a_version_is_answered_in_it_or_in_the_newest(
    theirs: int, ours: int
) -> None:
    data = theirs.to_bytes(2, "big") + b"whatever it says"
    assert version_for(ConsumerProtocolAssignment, data) == ours


@pytest.mark.parametrize("data", [b"", b"\x00", b"\xff\xff"])
def test_there_is_no_answer_to_what_has_no_version(data: bytes) -> None:
    with pytest.raises(DecodeError):
        version_for(ConsumerProtocolAssignment, data)
