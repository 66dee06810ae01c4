"""What a stranger sends: every message cut at every byte, and with lies in every length."""

import re

import pytest

from odradek.protocol.messages.create_topics import CreateTopicsRequest
from odradek.protocol.messages.metadata import MetadataRequest
from odradek.protocol.messages.offset_fetch import OffsetFetchRequest
from odradek.protocol.schema import DecodeError, Message
from tests.support.hostile_bytes import MEMORY_BASE, MEMORY_PER_BYTE, feed, lies, peak_memory
from tests.support.messages import LONG, all_messages, layouts, sample
from tests.support.reference_codec import ReferenceWriter

EVERY_MESSAGE = pytest.mark.parametrize("message", all_messages(), ids=lambda made: made.__name__)

REQUESTS = [message for message in all_messages() if message.__name__.endswith("Request")]


@EVERY_MESSAGE
def test_hostile_bytes_are_a_value_or_one_error(message: type[Message]) -> None:
    for version in layouts(message):
        written = ReferenceWriter(sample(message, version), version)
        said = re.compile(rf"{message.__name__} v{version}: field [\w.]+( \w+)? at byte \d+: .")
        for error in feed(
            lambda data, version=version: message.decode(data, version),
            bytes(written.out),
            DecodeError,
            written.lengths,
        ):
            assert said.match(str(error)), error


@pytest.mark.parametrize("message", REQUESTS, ids=lambda made: made.__name__)
def test_lies_cost_no_memory(message: type[Message]) -> None:
    version = message.SPEC.versions.highest
    written = ReferenceWriter(sample(message, version), version)
    every = max(1, len(written.lengths) // (200 if LONG else 5))
    lied = list(lies(bytes(written.out), written.lengths[::every]))

    def decode_all(_: bytes) -> None:
        for data in lied:
            try:
                message.decode(data, version)
            except DecodeError:
                continue

    decode_all(b"")  # what is compiled at first use is not the decoder's doing
    longest = max(map(len, lied), default=0)
    assert peak_memory(decode_all, b"", DecodeError) < MEMORY_BASE + MEMORY_PER_BYTE * longest


@pytest.mark.parametrize(
    ("message", "version", "data"),
    [
        # The smallest items there are, as many as fit.
        (MetadataRequest, 0, (25_000).to_bytes(4, "big") + bytes(50_000)),
        (OffsetFetchRequest, 1, b"\0\1g" + (8_333).to_bytes(4, "big") + bytes(50_000)),
        (CreateTopicsRequest, 5, b"\x89\x27" + b"\x01\0\0\0\0\0\0\x01\x01\0" * 5_001),
    ],
    ids=lambda value: value.__name__ if isinstance(value, type) else "",
)
def test_memory_is_in_proportion_to_the_bytes(
    message: type[Message], version: int, data: bytes
) -> None:
    message.decode(sample(message, version).encode(version), version)
    peak = peak_memory(lambda data: message.decode(data, version), data, DecodeError)
    assert 5 * len(data) < peak < MEMORY_BASE + MEMORY_PER_BYTE * len(data)


def test_an_error_names_the_field_in_which_the_data_ends() -> None:
    data = MetadataRequest(topics=[]).encode(8)
    with pytest.raises(DecodeError) as caught:
        MetadataRequest.decode(data[:5], 8)
    assert str(caught.value) == (
        "MetadataRequest v8: field include_cluster_authorized_operations at byte 5: "
        "the data ends inside it"
    )


def test_a_count_is_held_against_the_bytes_left() -> None:
    with pytest.raises(DecodeError, match=r"field topics at byte 4: a count of 2147483647 "):
        MetadataRequest.decode(b"\x7f\xff\xff\xff", 1)


def test_a_varint_of_more_than_five_bytes_is_refused() -> None:
    with pytest.raises(DecodeError, match=r"topics.*varint is longer than 5 bytes"):
        MetadataRequest.decode(b"\xff" * 20, 9)
