"""ListOffsets v0, OffsetCommit v0-1 and OffsetFetch v0-1, and who coordinates."""

from odradek.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from odradek.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from odradek.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestTopic
from tests.conformance.legacy.requests import MODERN, produce
from tests.conformance.legacy.talk import LegacyTalk
from tests.conformance.requests import START_MS, batch_of
from tests.support.message_sets import message_set

HOUR_MS = 3600 * 1000
LATEST, EARLIEST = -1, -2
FOR_EVER = 1 << 60


def segments_are_listed(talk: LegacyTalk) -> None:
    """Each batch is an hour younger and begins a segment: 0, 2 and 4 of the log that ends at 6."""
    talk.modern.create_topic("segments", 2, segment_ms="60000")
    for hour, values in enumerate(("ab", "cd", "ef")):
        batch = bytes(batch_of(*values, at_ms=START_MS + hour * HOUR_MS))
        produce(talk, f"segment {hour}", "segments", batch, MODERN)
    places = (LATEST, EARLIEST, -3, -4, -5, 0, START_MS, START_MS + HOUR_MS, FOR_EVER)
    for at in places:
        for count in (1, 2, 3, 4, 10, 0, -1):
            _list_offsets(talk, "segments", at, count)
    for at in places:
        _list_offsets(talk, "segments", at, 3, partition=1)
        _list_offsets(talk, "segments", at, 3, partition=7)
        _list_offsets(talk, "segments-never", at, 3)
        _list_offsets(talk, "segments", at, 3, replica=-2)
    _list_offsets(talk, "not legal", LATEST, 1)
    _list_several(talk)


def _list_offsets(
    talk: LegacyTalk, topic: str, at: int, count: int, *, partition: int = 0, replica: int = -1
) -> None:
    wanted = ListOffsetsPartition(partition_index=partition, timestamp=at, max_num_offsets=count)
    request = ListOffsetsRequest(
        replica_id=replica, topics=[ListOffsetsTopic(name=topic, partitions=[wanted])]
    )
    talk.ask(f"{count} offsets of {topic}-{partition} before {at}", request, 0)


def _list_several(talk: LegacyTalk) -> None:
    wanted = [
        ListOffsetsPartition(partition_index=index, timestamp=at, max_num_offsets=5)
        for index, at in ((0, LATEST), (1, EARLIEST), (9, LATEST), (0, EARLIEST))
    ]
    request = ListOffsetsRequest(
        replica_id=-1, topics=[ListOffsetsTopic(name="segments", partitions=wanted)]
    )
    talk.ask("several partitions", request, 0)


def one_segment_is_listed(talk: LegacyTalk) -> None:
    talk.modern.create_topic("one-segment")
    produce(talk, "magic 0", "one-segment", message_set(b"a", b"b", magic=0), 0)
    produce(talk, "magic 1", "one-segment", message_set(b"c", magic=1), 2)
    for at in (LATEST, EARLIEST, 0, START_MS, FOR_EVER):
        for count in (1, 3):
            _list_offsets(talk, "one-segment", at, count)
    for version in (1, 2):
        for at in (LATEST, EARLIEST, 0, START_MS, START_MS + 1, FOR_EVER):
            wanted = ListOffsetsPartition(partition_index=0, timestamp=at)
            request = ListOffsetsRequest(
                replica_id=-1, topics=[ListOffsetsTopic(name="one-segment", partitions=[wanted])]
            )
            talk.ask(f"the offset at {at}", request, version)


def offsets_are_committed_and_fetched(talk: LegacyTalk) -> None:
    talk.modern.create_topic("committed", 3)
    for group in ("group-v0", "group-v1", "group-new"):
        talk.modern.wait_for_coordinator(group)
    for version in (0, 1, 2):
        group = f"group-v{version}" if version < 2 else "group-new"
        _fetch(talk, group, "committed")
        _commit(talk, version, group, {0: 5, 1: 0})
        _commit(talk, version, group, {0: 6}, metadata=None)
        _commit(talk, version, group, {0: 7, 9: 8})
        _commit(talk, version, group, {0: -1})
        _commit(talk, version, group, {2: 1 << 40}, metadata="µ" * 40)
        _commit(talk, version, group, {0: 1}, topic="committed-never")
        _commit(talk, version, group, {0: 1}, topic="not legal")
        _commit(talk, version, group, {0: 1}, metadata="x" * 5000)
        _commit(talk, version, "", {0: 3})
        request = OffsetCommitRequest(group_id=group, topics=[])
        talk.ask("nothing", request, version)
        _fetch(talk, group, "committed")
    for timestamp_ms in (-1, 0, 1, START_MS, FOR_EVER):
        _commit(talk, 1, "group-v1", {1: 11}, timestamp_ms=timestamp_ms)
        _fetch(talk, "group-v1", "committed")
    for generation, member in ((-1, "somebody"), (0, ""), (3, ""), (3, "somebody")):
        _commit(talk, 1, "group-v1", {0: 12}, member=member, generation=generation)
    _fetch(talk, "group-v1", "committed-never")
    _fetch(talk, "group-v1", "not legal")
    _fetch(talk, "", "committed")
    for version in (0, 1):
        nothing = OffsetFetchRequest(group_id="group-v1", topics=[])
        talk.ask("no topics", nothing, version)


def _commit(
    talk: LegacyTalk,
    version: int,
    group: str,
    offsets: dict[int, int],
    *,
    topic: str = "committed",
    metadata: str | None = "noted",
    timestamp_ms: int = -1,
    generation: int = -1,
    member: str = "",
) -> None:
    partitions = [
        OffsetCommitRequestPartition(
            partition_index=index,
            committed_offset=offset,
            commit_timestamp=timestamp_ms if version == 1 else -1,
            committed_metadata=metadata,
        )
        for index, offset in offsets.items()
    ]
    request = OffsetCommitRequest(
        group_id=group,
        generation_id_or_member_epoch=generation,
        member_id=member,
        topics=[OffsetCommitRequestTopic(name=topic, partitions=partitions)],
    )
    talk.ask(f"{group!r} commits {offsets} of {topic} in v{version}", request, version)


def _fetch(talk: LegacyTalk, group: str, topic: str) -> None:
    wanted = OffsetFetchRequestTopic(name=topic, partition_indexes=[0, 1, 2, 9])
    for version in (0, 1, 2):
        request = OffsetFetchRequest(group_id=group, topics=[wanted])
        talk.ask(f"what {group!r} committed of {topic}, v{version}", request, version)
