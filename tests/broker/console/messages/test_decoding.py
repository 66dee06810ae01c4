"""Records of internal topics and JSON: what is long is decoded without holding up others."""

import json
import pickle
import struct
import tracemalloc
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from odradek.broker.console.messages.decoding import AUTO, Decoder
from odradek.broker.console.messages.filters import parse_path
from odradek.broker.console.messages.picking import Picked
from odradek.coordinator.runtime.steps import no_step
from odradek.protocol.record import Record
from odradek.protocol.records.consumer_offsets import (
    GroupMemberMetadata,
    GroupMetadataKey,
    GroupMetadataValue,
)
from odradek.protocol.records.consumer_protocol import (
    ConsumerProtocolSubscription,
    encode_versioned,
)
from odradek.storage.record_walk import SHORT

KEY = struct.pack(">h", 2) + GroupMetadataKey(group="g").encode(0)
GROUP_VERSION = 3
MANY = 300


class Walks:
    """The service of the other process, without the process. Counts what it is given."""

    count = 0

    async def run(self, walk: Callable[..., object], batch: bytes, _client: object) -> object:
        self.count += 1
        return pickle.loads(pickle.dumps(walk))(batch, limits=SHORT)  # of this test


@pytest.fixture
def walks() -> Walks:
    return Walks()


def decoder(walks: Walks, topic: str) -> Decoder:
    broker = SimpleNamespace(fetching=SimpleNamespace(walks=walks))
    call: Any = SimpleNamespace(
        observed=SimpleNamespace(broker=broker),
        session=SimpleNamespace(client="c"),
        slices=SimpleNamespace(step=no_step),
    )
    schemas: Any = None
    return Decoder(call, topic, AUTO, 1 << 20, schemas)


def group_of(member_count: int) -> bytes:
    """The value of a classic group."""
    subscription = encode_versioned(ConsumerProtocolSubscription(topics=["t"]), 1)
    members = [
        GroupMemberMetadata(
            member_id=f"m-{number}",
            client_id="c",
            client_host="/h",
            session_timeout=10,
            subscription=subscription,
            assignment=b"",
        )
        for number in range(member_count)
    ]
    group = GroupMetadataValue(
        protocol_type="consumer", generation=2, protocol="range", leader="m-0", members=members
    )
    return struct.pack(">h", GROUP_VERSION) + group.encode(GROUP_VERSION)


def picked(value: bytes) -> Picked:
    header: Any = SimpleNamespace(is_control=False)
    return Picked(0, 7, 0, KEY, value, (), 0, 0, len(KEY), len(value), header)


@pytest.mark.parametrize(("member_count", "walk_count"), [(1, 0), (MANY, 1)])
async def test_the_record_of_a_large_group_is_shown_by_another_process(
    walks: Walks, member_count: int, walk_count: int
) -> None:
    offsets = decoder(walks, "__consumer_offsets")
    key, value = await offsets.key_and_value(picked(group_of(member_count)))
    assert key is not None
    assert value is not None
    assert (key.format, json.loads(key.text)["data"]) == ("internal", {"group": "g"})
    members = json.loads(value.text)["data"]["members"]
    assert [each["subscription"]["topics"] for each in members] == [["t"]] * member_count
    assert walks.count == walk_count


@pytest.mark.parametrize(("member_count", "walk_count"), [(1, 0), (MANY, 1)])
async def test_a_path_into_the_record_of_a_large_group_is_followed_by_another_process(
    walks: Walks, member_count: int, walk_count: int
) -> None:
    offsets = decoder(walks, "__consumer_offsets")
    record = Record(KEY, group_of(member_count), 0, offset=7)
    last = f"$.data.members[*].memberId=m-{member_count - 1}"
    assert await offsets.matches_path(record, parse_path(last))
    assert walks.count == walk_count
    assert not await offsets.matches_path(record, parse_path("$.data.members[*].memberId=another"))


async def test_a_long_record_that_cannot_be_read_has_no_path(walks: Walks) -> None:
    offsets = decoder(walks, "__consumer_offsets")
    record = Record(None, group_of(MANY), 0, offset=7)
    assert not await offsets.matches_path(record, parse_path("$.data"))


@pytest.mark.parametrize(
    ("end", "format_"), [(b"1]", "json"), (b"1", "text"), (b",]", "text"), (b"1]]", "text")]
)
async def test_whether_a_long_text_is_json_is_found_without_making_objects(
    walks: Walks, end: bytes, format_: str
) -> None:
    text = b"[" + b"[]," * 80_000 + end
    tracemalloc.start()
    shown = await decoder(walks, "t").header(text)
    _, held_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert shown is not None
    assert shown.format == format_
    assert held_bytes < 4 * len(text), "the text itself, and no lists"
