"""Records written, read and looked up."""

import struct
from collections.abc import Iterable
from functools import partial
from typing import Any

import lz4.frame
from msgspec.structs import replace

from odradek.protocol.batch_header import HEADER_BYTES
from odradek.protocol.compression import CompressionType
from odradek.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from odradek.protocol.messages.delete_topics import DeleteTopicsRequest
from odradek.protocol.messages.fetch import FetchRequest, ForgottenTopic
from odradek.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from odradek.protocol.messages.metadata import MetadataResponseTopic
from odradek.protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from odradek.protocol.messages.produce import (
    ProducePartitionData,
    ProduceRequest,
    ProduceTopicData,
)
from odradek.protocol.primitives import ZERO_UUID
from odradek.protocol.record import Record
from odradek.protocol.record_batch import build_batch
from tests.conformance.conversation import Change, Conversation, unknown_id
from tests.conformance.requests import (
    BY_NAME,
    START_MS,
    batch_of,
    changed,
    fetch_request,
    produce,
    request_with,
)
from tests.conformance.transactional_producer import new_producer
from tests.support.hostile_batches import batch_around


def records_come_back_in_every_version(talk: Conversation) -> None:
    for version in talk.versions_of(ProduceRequest):
        if version < 3:
            continue
        name = f"written-{version}"
        topic = talk.create_topic(name)
        batch = bytes(batch_of("one", "two", "three"))
        for acks in (-1, 1):
            request = request_with(name, batch, acks=acks, topic_id=topic.topic_id)
            talk.ask(request, version)
        talk.tell(request_with(name, batch, acks=0, topic_id=topic.topic_id), version)
        talk.ask(fetch_request(name, 0), BY_NAME)
    topic = talk.create_topic("read")
    produce(talk, "read", batch_of("one", "two"))
    produce(talk, "read", batch_of("three", "four", at_ms=START_MS + 10_000))
    for version in talk.versions_of(FetchRequest):
        for offset in (0, 1, 2, 3, 4):
            talk.ask(fetch_request("read", offset, topic_id=topic.topic_id), version)


def records_are_stored_as_they_came(talk: Conversation) -> None:
    talk.create_topic("codecs")
    for codec in CompressionType:
        produce(talk, "codecs", batch_of("a" * 100, "b" * 100, "c", compression=codec))
    for version in (3, 6, 7):
        for codec in (CompressionType.LZ4, CompressionType.ZSTD):
            produce(talk, "codecs", batch_of("x", compression=codec), version=version)
    talk.ask(fetch_request("codecs", 0), BY_NAME)
    talk.create_topic("stamped", message_timestamp_type="LogAppendTime")
    produce(talk, "stamped", batch_of("a", "b"))
    produce(talk, "stamped", batch_of("c", compression=CompressionType.GZIP), version=3)
    _list_offsets(talk, "stamped", -1, -2)


def _lz4_frame(*, linked: bool) -> bytes:
    """A record in two blocks; a single one would not be linked."""
    content = batch_of("a" * 70_000)[HEADER_BYTES:]
    packed: bytes = lz4.frame.compress(
        content, block_size=lz4.frame.BLOCKSIZE_MAX64KB, block_linked=linked
    )
    return packed


def _broken_batches() -> dict[str, bytes]:
    """What Kafka refuses, and some oddities that it takes."""
    good = batch_of("one", "two")
    flipped = bytearray(good)
    flipped[-1] ^= 1
    lz4 = batch_of("one", "two", compression=CompressionType.LZ4)
    cases = {
        "nothing": b"",
        "a few bytes": bytes(good[:11]),
        "a header cut": bytes(good[:60]),
        "a header alone": bytes(good[:61]),
        "a byte missing": bytes(good[:-1]),
        "a byte too many": bytes(good) + b"\x00",
        "a tail": bytes(good) + bytes(good[:30]),
        "two batches": bytes(good) + bytes(good),
        "a wrong checksum": flipped,
        "magic 0": changed(good, 16, "b", 0),
        "magic 1": changed(good, 16, "b", 1),
        "magic 3": changed(good, 16, "b", 3),
        "magic -1": changed(good, 16, "b", -1),
        "a base offset": changed(good, 0, "q", 1000),
        "a leader epoch": changed(good, 12, "i", 77),
        "a tail of zeros": bytes(good) + bytes(30),
        "a tail that is too short to be judged": bytes(good) + bytes(11),
        "a tail of another magic": bytes(good) + bytes(good[:16]) + b"\x03",
        "a tail of an old magic": bytes(good) + bytes(good[:16]) + b"\x01",
        "a tail of a whole old message": bytes(good)
        + struct.pack(">qiIbb", 0, 14, 0, 1, 0)
        + bytes(8),
        "a tail after a wrong checksum": bytes(flipped) + b"\x00",
        "length 20": changed(good, 8, "i", 20),
        "length 49": changed(good, 8, "i", 49),
        "length 0": changed(good, 8, "i", 0),
        "length -1": changed(good, 8, "i", -1),
        "a greater length": changed(good, 8, "i", len(good)),
        "a smaller length": changed(good, 8, "i", len(good) - 13),
        "count 0": changed(good, 57, "i", 0),
        "count 1": changed(good, 57, "i", 1),
        "count 3": changed(good, 57, "i", 3),
        "count -1": changed(good, 57, "i", -1),
        "a greater last offset": changed(good, 23, "i", 2),
        "last offset 0": changed(good, 23, "i", 0),
        "last offset -1": changed(good, 23, "i", -1),
        "codec 5": changed(good, 21, "h", 5),
        "codec 7": changed(good, 21, "h", 7),
        "LogAppendTime": changed(good, 21, "h", 8),
        "LogAppendTime and lz4": changed(lz4, 21, "h", 8 | CompressionType.LZ4),
        "LogAppendTime and no timestamps": changed(batch_of("x", "y", at_ms=-1), 21, "h", 8),
        "LogAppendTime and no newest timestamp": changed(changed(good, 21, "h", 8), 35, "q", -1),
        "LogAppendTime in the future": changed(changed(good, 21, "h", 8), 35, "q", START_MS * 10),
        "a control batch": batch_of("x", control=True),
        "a control batch of a transaction": batch_of(
            "x", control=True, transactional=True, producer=(5, 0, 0)
        ),
        "a transaction without producer": batch_of("x", transactional=True),
        "a delete horizon": changed(good, 21, "h", 64),
        "unused bits": changed(good, 21, "h", 128),
        "no timestamps": batch_of("x", at_ms=-1),
        "a future timestamp": batch_of("x", at_ms=START_MS * 10),
        "a greater max timestamp": changed(good, 35, "q", START_MS + 99_000),
        "a sequence without producer": batch_of("x", producer=(-1, -1, 4)),
        "a producer without sequence": batch_of("x", producer=(7, 0, -1)),
        "a producer with epoch -1": batch_of("x", producer=(7, -1, 0)),
        "lz4 by name, not by content": changed(good, 21, "h", 3),
        "lz4 cut": changed(bytearray(lz4[:-4]), 8, "i", len(lz4) - 16),
        "lz4 with linked blocks": batch_around(_lz4_frame(linked=True), CompressionType.LZ4, 1),
        "lz4 after a frame to skip": batch_around(
            b"\x50\x2a\x4d\x18" + bytes(4) + _lz4_frame(linked=False), CompressionType.LZ4, 1
        ),
        "lz4 with independent blocks": batch_around(
            _lz4_frame(linked=False), CompressionType.LZ4, 1
        ),
    }
    return {case: bytes(batch) for case, batch in cases.items()}


def broken_records_are_refused(talk: Conversation) -> None:
    cases = _broken_batches()
    talk.create_topic("broken", len(cases))
    for partition, (case, records) in enumerate(cases.items()):
        produce(talk, "broken", records, partition=partition, title=f"a batch with {case}")
    for partition, case in enumerate(cases):
        request = fetch_request("broken", 0, partitions=[partition])
        talk.ask(request, BY_NAME, title=f"what is there of a batch with {case}")


def refusals_of_broken_records_tell_the_log_start(talk: Conversation) -> None:
    cases = _broken_batches()
    for version in _versions_by_what_they_tell(talk):
        topic = _topic_that_starts_at_2(talk, f"broken-{version}", len(cases))
        for partition, (case, records) in enumerate(cases.items()):
            request = request_with(
                topic.name, records, partition=partition, topic_id=topic.topic_id
            )
            talk.ask(request, version, title=f"a batch with {case} in v{version}")


def refusals_of_single_records_tell_which(talk: Conversation) -> None:
    key = b"key"
    late, early = START_MS * 10, START_MS // 10
    fine = Record(key, b"fine", START_MS, ())
    mixed = [
        fine,
        Record(None, b"without a key", START_MS, ()),
        Record(key, b"late", late, ()),
        Record(None, b"late and without a key", late, ()),
        fine,
        Record(key, b"early", early, ()),
        Record(key, b"without a time", -1, ()),
    ]
    keyless = [Record(None, b"x", START_MS, ()) for _ in range(5)]
    two_of_one = changed(build_batch([fine, fine]), 23, "i", 0)
    batches = {
        "mixed": build_batch(mixed),
        "mixed, gzip": build_batch(mixed, compression=CompressionType.GZIP),
        "keyless": build_batch([fine, *keyless]),
        "keyless, zstd": build_batch([fine, *keyless], compression=CompressionType.ZSTD),
        "early": build_batch([mixed[5], fine]),
        "late": build_batch([mixed[2], fine]),
        "late, lz4": build_batch([mixed[2], fine], compression=CompressionType.LZ4),
        "fine, but its header is late": changed(build_batch([fine, fine]), 35, "q", late),
        "stamped": changed(build_batch([fine, fine]), 21, "h", 8),
        "stamped, gzip": changed(
            build_batch([fine, fine], compression=CompressionType.GZIP), 21, "h", 9
        ),
        "stamped late": changed(changed(build_batch([fine, fine]), 21, "h", 8), 35, "q", late),
        "stamped without a time": changed(
            changed(build_batch([fine, fine]), 21, "h", 8), 35, "q", -1
        ),
        "large": build_batch([Record(key, b"x" * 600, START_MS, ())]),
        "large, gzip": build_batch(
            [Record(key, b"x" * 600, START_MS, ())], compression=CompressionType.GZIP
        ),
        "of another base": changed(build_batch([fine, *keyless]), 0, "q", 7),
        "with a count too many": changed(build_batch([fine, *keyless]), 57, "i", 7),
        "with a record too many": changed(two_of_one, 57, "i", 1),
    }
    years_ms = str(30 * 365 * 24 * 3600 * 1000)
    topics = {
        "plain": {},
        "compacted": {"cleanup_policy": "compact,delete"},
        "timed": {"message_timestamp_before_max_ms": years_ms},
        "timed-compacted": {
            "cleanup_policy": "compact,delete",
            "message_timestamp_before_max_ms": years_ms,
        },
        "unpacked": {"compression_type": "uncompressed", "max_message_bytes": "500"},
        "packed": {"compression_type": "zstd", "cleanup_policy": "compact,delete"},
        "stamping": {"message_timestamp_type": "LogAppendTime"},
        "stamping-compacted": {
            "message_timestamp_type": "LogAppendTime",
            "cleanup_policy": "compact,delete",
        },
    }
    for version in _versions_by_what_they_tell(talk)[1:]:
        for name, configs in topics.items():
            topic = _topic_that_starts_at_2(
                talk, f"single-{name}-{version}", len(batches), **configs
            )
            for partition, (case, batch) in enumerate(batches.items()):
                request = request_with(
                    topic.name, bytes(batch), partition=partition, topic_id=topic.topic_id
                )
                talk.ask(request, version, title=f"{name}: {case} in v{version}")
            if name == "packed" or "stamping" in name:
                continue  # the bytes that zstd makes, or the broker's time
            for partition, case in enumerate(batches):
                request = fetch_request(topic.name, 3, partitions=[partition])
                talk.ask(request, BY_NAME, title=f"{name}: {case} in v{version}, as it is read")


def _versions_by_what_they_tell(talk: Conversation) -> list[int]:
    """Of Produce: the first that tells the log start, then single records, then topic ids."""
    return [version for version in (5, 8, 13) if version in talk.versions_of(ProduceRequest)]


def _topic_that_starts_at_2(
    talk: Conversation, name: str, partitions: int, **configs: str
) -> MetadataResponseTopic:
    topic = talk.create_topic(name, partitions, **configs)
    stored = bytes(batch_of("a", "b", "c"))
    for partition in range(partitions):
        talk.silently(request_with(name, stored, partition=partition), BY_NAME)
    gone = [
        DeleteRecordsPartition(partition_index=partition, offset=2)
        for partition in range(partitions)
    ]
    deleted = DeleteRecordsTopic(name=name, partitions=gone)
    talk.silently(DeleteRecordsRequest(topics=[deleted], timeout_ms=5000), 2)
    return topic


def requests_to_write_are_refused_as_a_whole(talk: Conversation) -> None:
    topic = talk.create_topic("refusing", 2)
    good = bytes(batch_of("one"))
    for acks in (2, -2, 7):
        produce(talk, "refusing", good, acks=acks)
        produce(talk, "refusing", good, acks=acks, partition=9)
        produce(talk, "refusing", b"", acks=acks)
        produce(talk, "refusing-never", good, acks=acks)
    talk.wait_for_coordinator("refusing")
    for batch in (good, b"", bytes(batch_of("x", control=True))):
        produce(talk, "__consumer_offsets", batch)
        produce(talk, "__consumer_offsets", batch, partition=999)
        produce(talk, "__consumer_offsets", batch, acks=7)
    for version in (3, 8, BY_NAME):
        produce(talk, "refusing", good, partition=9, version=version)
        produce(talk, "refusing", good, partition=-1, version=version)
        produce(talk, "refusing-never", good, version=version)
        produce(talk, "not legal", good, version=version)
        produce(talk, "", good, version=version)
    latest = talk.versions_of(ProduceRequest)[-1]
    talk.ask(request_with("", good, topic_id=unknown_id()), latest)
    talk.ask(request_with("", good, topic_id=ZERO_UUID), latest)
    talk.ask(request_with("", good, topic_id=topic.topic_id, partition=9), latest)
    parts = [
        ProducePartitionData(index=0, records=good),
        ProducePartitionData(index=9, records=good),
        ProducePartitionData(index=1, records=b""),
    ]
    mixed = ProduceRequest(
        acks=-1,
        timeout_ms=5000,
        topic_data=[
            ProduceTopicData(name="refusing", partition_data=parts),
            ProduceTopicData(name="refusing-never", partition_data=parts),
        ],
    )
    talk.ask(mixed, BY_NAME)
    nothing = ProduceRequest(acks=-1, timeout_ms=5000, topic_data=[])
    talk.ask(nothing, BY_NAME)
    for version in (3, BY_NAME, latest):
        for names in (["refusing"], ["refusing-never"], ["refusing-never", "refusing"]):
            empty = [
                ProduceTopicData(name=name, topic_id=topic.topic_id, partition_data=[])
                for name in names
            ]
            full = ProduceTopicData(
                name="refusing", topic_id=topic.topic_id, partition_data=parts[:1]
            )
            talk.ask(ProduceRequest(acks=-1, timeout_ms=5000, topic_data=empty), version)
            talk.ask(ProduceRequest(acks=-1, timeout_ms=5000, topic_data=[*empty, full]), version)
    talk.tell(request_with("refusing-never", good, acks=0), BY_NAME)
    talk.tell(request_with("refusing", b"\x00" * 80, acks=0), BY_NAME)
    talk.tell(request_with("refusing", good, acks=0), BY_NAME)
    talk.ask(fetch_request("refusing", 0, partitions=(0, 1)), BY_NAME)


def topics_set_limits_to_records(talk: Conversation) -> None:
    talk.create_topic("small", max_message_bytes="200")
    produce(talk, "small", batch_of("x" * 300))
    produce(talk, "small", batch_of("x" * 300), version=3)
    produce(talk, "small", batch_of("x" * 100))
    talk.create_topic("segmented", segment_bytes="1048576", max_message_bytes="3000000")
    produce(talk, "segmented", batch_of("x" * 1_100_000))
    talk.create_topic("timed", message_timestamp_before_max_ms="1000")
    produce(talk, "timed", batch_of("too old"))
    talk.create_topic("compacted", cleanup_policy="compact")
    produce(talk, "compacted", batch_of("a", "b", key=None))
    produce(talk, "compacted", batch_of("a", "b", key=b""))
    produce(talk, "compacted", batch_of("a", key=None, compression=CompressionType.ZSTD))
    talk.create_topic("insured", min_insync_replicas="2")
    produce(talk, "insured", batch_of("a"))
    produce(talk, "insured", batch_of("a"), acks=1)
    talk.ask(fetch_request("compacted", 0), BY_NAME)
    talk.ask(fetch_request("insured", 0), BY_NAME)


def idempotent_producers_are_held_to_their_sequence(talk: Conversation) -> None:
    talk.create_topic("sequenced", 2)
    producer = talk.new_producer_id()

    def write(
        epoch: int, sequence: int, *values: str, partition: int = 0, version: int = BY_NAME
    ) -> None:
        batch = batch_of(*values, producer=(producer, epoch, sequence))
        produce(talk, "sequenced", batch, partition=partition, version=version)

    write(0, 3, "a gap at the start", partition=1)
    write(0, 0, "a", "b")
    write(0, 0, "a", "b")
    write(0, 2, "c")
    write(0, 0, "a", "b")
    write(0, 1, "b")
    write(0, 0, "a")
    write(0, 5, "a gap")
    write(0, 5, "a gap", version=3)
    for sequence in range(3, 9):
        write(0, sequence, "d")
    write(0, 0, "forgotten by now")
    write(0, 7, "d")
    write(1, 4, "a new epoch, not from 0")
    write(1, 0, "a new epoch")
    write(0, 9, "the old epoch")
    write(0, 9, "the old epoch", version=3)
    write(1, 0, "a new epoch")
    write(1, 1, "the next")
    write(1, -2, "below zero")
    two_batches = batch_of("x", producer=(producer, 1, 2)) + batch_of(
        "y", producer=(producer, 1, 3)
    )
    produce(talk, "sequenced", two_batches)
    unknown = batch_of("x", producer=(producer + 100_000, 0, 5))
    produce(talk, "sequenced", unknown)
    produce(talk, "sequenced", batch_of("x", producer=(producer + 100_000, 5, 0)))
    talk.ask(
        fetch_request("sequenced", 0, partitions=(0, 1)),
        BY_NAME,
        lambda answer: [
            (
                one.partition_index,
                one.error_code,
                one.high_watermark,
                len(bytes(one.records or b"")),
            )
            for one in answer.responses[0].partitions
        ],
    )


def reads_are_refused_or_empty(talk: Conversation) -> None:
    topic = talk.create_topic("reading", 2)
    produce(talk, "reading", batch_of("one", "two"))
    for version in talk.versions_of(FetchRequest):
        for offset in (3, -1, -2, 1 << 40):
            talk.ask(fetch_request("reading", offset, topic_id=topic.topic_id), version)
        talk.ask(
            fetch_request("reading", 0, partitions=(0, 1, 2), topic_id=topic.topic_id), version
        )
        talk.ask(fetch_request("reading-never", 0, topic_id=unknown_id()), version)
        talk.ask(fetch_request("not legal", 0, topic_id=ZERO_UUID), version)
        talk.ask(FetchRequest(max_wait_ms=0, min_bytes=0, topics=[]), version)
        if version >= 9:
            for epoch in (0, 1, 99):
                request = fetch_request("reading", 0, topic_id=topic.topic_id, leader_epoch=epoch)
                talk.ask(request, version)
        if version >= 12:
            for offset, epoch in ((0, 0), (2, 0), (2, 1), (3, 0), (1, 5)):
                request = fetch_request(
                    "reading", offset, topic_id=topic.topic_id, last_epoch=epoch
                )
                talk.ask(request, version)
    for offset in (0, 1, 3, 4):
        talk.ask(fetch_request("reading", offset, isolation_level=1), BY_NAME)
        talk.ask(fetch_request("reading", offset, last_epoch=5, isolation_level=1), BY_NAME)
    talk.ask(fetch_request("reading", 0, isolation_level=7), BY_NAME)


def isolation_levels_are_known(talk: Conversation) -> None:
    topic = talk.create_topic("isolated")
    produce(talk, "isolated", batch_of("a", "b"))

    def without_accident(answer: Any) -> object:
        """An unexpected error is compared, too."""
        return repr(talk.transcript.plain(answer))

    for level in (-1, 0, 1, 2, 7):
        for version in talk.versions_of(FetchRequest):
            for session in ((0, -1), (0, 0)):
                request = fetch_request(
                    "isolated", 0, topic_id=topic.topic_id, isolation_level=level, session=session
                )
                talk.ask(request, version, without_accident)
        for version in talk.versions_of(ListOffsetsRequest)[1:]:
            _list_offsets_once(
                talk, version, "isolated", -1, isolation_level=level, change=without_accident
            )


def reads_keep_to_their_limits(talk: Conversation) -> None:
    talk.create_topic("limited", 2)
    for value in ("a" * 1000, "b" * 1000, "c" * 1000):
        produce(talk, "limited", batch_of(value))
        produce(talk, "limited", batch_of(value), partition=1)
    for max_bytes in (0, 1, 500, 1100, 2200, 5000, -1):
        talk.ask(fetch_request("limited", 0, partitions=(0, 1), max_bytes=max_bytes), BY_NAME)
        talk.ask(fetch_request("limited", 0, partitions=(1, 0), total_bytes=max_bytes), BY_NAME)


def sessions_tell_only_news(talk: Conversation) -> None:
    topic = talk.create_topic("session", 3)
    for version in (7, BY_NAME, 13, talk.versions_of(FetchRequest)[-1]):
        _one_session(talk, "session", topic.topic_id, version)


def _one_session(talk: Conversation, name: str, topic_id: bytes, version: int) -> None:
    def ask(
        session: tuple[int, int], offset: int = 0, partitions: Iterable[int] = (), **more: object
    ) -> int:
        request = fetch_request(
            name, offset, partitions=partitions, topic_id=topic_id, session=session
        )
        topics = request.topics if partitions else []
        forgotten = (
            [
                ForgottenTopic(topic=name, topic_id=topic_id, partitions=list(more["forget"]))  # type: ignore[call-overload] # a list
            ]
            if "forget" in more
            else []
        )
        answer = talk.ask(
            FetchRequest(
                max_wait_ms=0,
                min_bytes=1,
                session_id=session[0],
                session_epoch=session[1],
                topics=topics,
                forgotten_topics_data=forgotten,
            ),
            version,
        )
        session_id: int = answer.session_id
        return session_id

    produce(talk, name, batch_of("before"))
    session = ask((0, 0), 0, (0, 1, 2))
    ask((session, 1))
    produce(talk, name, batch_of("after"), partition=1)
    ask((session, 2))
    ask((session, 3), 1 << 40, (1,))
    ask((session, 4))
    ask((session, 5), 0, (9,))
    ask((session, 6), forget=[0, 1])
    ask((session, 6))
    ask((session, 9))
    ask((session, 7), 0, (2, 0))
    ask((session ^ 1 or 5, 8))
    ask((session, 0), 0, (0,))
    ask((session, 1))
    ask((session, -1))
    ask((session, 1))
    ask((0, -1), 0, (0,))
    ask((12345, 0), 0, (0,))
    ask((0, 5), 0, (0,))
    ask((0, 0))


REPLICA_IDS = (0, 1, 2, 7, -2, -3, -9)  # the node's own id is among them


def replicas_that_no_broker_is_read_nothing(talk: Conversation) -> None:
    topic = talk.create_topic("replicated", 2)
    produce(talk, "replicated", batch_of("one", "two"))
    for version in talk.versions_of(FetchRequest):
        for replica_id in REPLICA_IDS:
            as_replica = partial(
                fetch_request,
                "replicated",
                topic_id=topic.topic_id,
                replica_id=replica_id,
                replica_in_state=version >= 15,
            )
            talk.ask(as_replica(0, partitions=(0, 1, 9)), version)
            talk.ask(as_replica(2), version)
            talk.ask(as_replica(99, last_epoch=0 if version >= 12 else -1), version)
            if version >= 9:
                for epoch in (0, 99):
                    talk.ask(as_replica(0, leader_epoch=epoch), version)
        if version >= 7:
            session = talk.ask(
                fetch_request(
                    "replicated",
                    0,
                    topic_id=topic.topic_id,
                    session=(0, 0),
                    replica_id=7,
                    replica_in_state=version >= 15,
                ),
                version,
            )
            assert session.session_id


def replicas_look_up_offsets(talk: Conversation) -> None:
    talk.create_topic("replica-offsets")
    produce(talk, "replica-offsets", batch_of("one", "two"))
    one = new_producer(talk, "replica-offsets", is_v2=True)
    one.write(one.start(), 0)
    for replica_id in (-1, *REPLICA_IDS):
        for isolation_level in (0, 1):
            for timestamp in (-1, -2, -3, 0, START_MS + 1000, 1 << 60):
                for topic in ("replica-offsets", one.topic):
                    _list_offsets_once(
                        talk,
                        7,
                        topic,
                        timestamp,
                        isolation_level=isolation_level,
                        replica_id=replica_id,
                    )
            request = fetch_request(
                one.topic, 0, isolation_level=isolation_level, replica_id=replica_id
            )
            talk.ask(request, BY_NAME)
        ends = OffsetForLeaderEpochRequest(
            replica_id=replica_id,
            topics=[
                OffsetForLeaderTopic(
                    topic="replica-offsets",
                    partitions=[OffsetForLeaderPartition(partition=0, leader_epoch=0)],
                )
            ],
        )
        talk.ask(ends, 4)


def fetches_meet_deleted_topics(talk: Conversation) -> None:
    for version in (BY_NAME, 13, talk.versions_of(FetchRequest)[-1]):
        name = f"deleted-{version}"
        deletion = DeleteTopicsRequest(topic_names=[name], timeout_ms=5000)
        topic = talk.create_topic(name)
        waiting = fetch_request(name, 0, topic_id=topic.topic_id, max_wait_ms=10_000)
        begun = talk.ask(fetch_request(name, 0, topic_id=topic.topic_id, session=(0, 0)), version)
        talk.ask_while_waiting(deletion, 5, waiting, version)
        talk.wait_until_gone(name)
        news = FetchRequest(max_wait_ms=0, min_bytes=1, session_id=begun.session_id, topics=[])
        for epoch, state in enumerate(("deleted", "still deleted", "created again"), 1):
            if state == "created again":
                talk.create_topic(name)
            news = replace(news, session_epoch=epoch)
            talk.ask(news, version, title=f"{name} is {state}: {news!r}")
        talk.ask(fetch_request(name, 0, topic_id=topic.topic_id), version)


def offsets_are_looked_up(talk: Conversation) -> None:
    talk.create_topic("looked-up", 2)
    produce(talk, "looked-up", batch_of("a", "b", "c"))
    produce(talk, "looked-up", batch_of("late", at_ms=START_MS + 60_000))
    produce(talk, "looked-up", batch_of("d", "e", at_ms=START_MS + 10_000))
    places = [-1, -2, -3, -4, -5, -6, -7]
    times = [0, START_MS, START_MS + 1, START_MS + 1000, START_MS + 2000, START_MS + 2001]
    times += [START_MS + 10_000, START_MS + 60_000, START_MS + 60_001, 1 << 60]
    _list_offsets(talk, "looked-up", *places, *times)
    _list_offsets(talk, "looked-up", -1, -2, -3, 0, partition=1)
    _list_offsets(talk, "looked-up", -1, partition=5)
    _list_offsets(talk, "looked-up-never", -1, -7)
    for version in talk.versions_of(ListOffsetsRequest):
        if version >= 4:
            for epoch in (0, 1, 99):
                _list_offsets_once(talk, version, "looked-up", -1, leader_epoch=epoch)
        if version >= 2:
            _list_offsets_once(talk, version, "looked-up", -1, isolation_level=1)
    twice = ListOffsetsRequest(
        replica_id=-1,
        topics=[
            ListOffsetsTopic(
                name="looked-up",
                partitions=[
                    ListOffsetsPartition(partition_index=0, timestamp=-1),
                    ListOffsetsPartition(partition_index=0, timestamp=-2),
                    ListOffsetsPartition(partition_index=1, timestamp=-2),
                ],
            )
        ],
    )
    talk.ask(twice, 5)


def _list_offsets(talk: Conversation, topic: str, *timestamps: int, partition: int = 0) -> None:
    for version in talk.versions_of(ListOffsetsRequest):
        for timestamp in timestamps:
            _list_offsets_once(talk, version, topic, timestamp, partition=partition)


def _list_offsets_once(
    talk: Conversation,
    version: int,
    topic: str,
    timestamp: int,
    *,
    partition: int = 0,
    leader_epoch: int = -1,
    isolation_level: int = 0,
    replica_id: int = -1,
    change: Change | None = None,
) -> None:
    wanted = ListOffsetsPartition(
        partition_index=partition, timestamp=timestamp, current_leader_epoch=leader_epoch
    )
    request = ListOffsetsRequest(
        replica_id=replica_id,
        isolation_level=isolation_level,
        topics=[ListOffsetsTopic(name=topic, partitions=[wanted])],
        timeout_ms=5000,
    )
    talk.ask(request, version, _without_append_time if topic == "stamped" else change)


def _without_append_time(answer: Any) -> object:
    partition = answer.topics[0].partitions[0]
    return partition.error_code, partition.offset, partition.leader_epoch


def epochs_end_where_the_log_ends(talk: Conversation) -> None:
    talk.create_topic("epochs", 2)
    produce(talk, "epochs", batch_of("a", "b"))
    for version in talk.versions_of(OffsetForLeaderEpochRequest):
        for partition in (0, 1, 7):
            for current in (-1, 0, 1):
                for epoch in (-1, 0, 1, 50):
                    request = OffsetForLeaderEpochRequest(
                        replica_id=-1 if version >= 3 else -2,
                        topics=[
                            OffsetForLeaderTopic(
                                topic="epochs",
                                partitions=[
                                    OffsetForLeaderPartition(
                                        partition=partition,
                                        current_leader_epoch=current,
                                        leader_epoch=epoch,
                                    )
                                ],
                            )
                        ],
                    )
                    talk.ask(request, version)
