"""The quick path of Produce does what the careful path does."""

import asyncio
import errno
import itertools
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from odradek.broker.broker import Broker
from odradek.broker.handlers import HANDLERS, produce
from odradek.broker.producing import quick_produce
from odradek.broker.producing.accepted_produce import FIRST_VERSION, encode_accepted
from odradek.broker.producing.single_batch import SingleBatch, SingleBatches
from odradek.broker.requests.answer import Answer, RefusedRequestError
from odradek.broker.requests.dispatch import Dispatcher
from odradek.broker.security.authorizer import Authorizer
from odradek.broker.security.session import Session
from odradek.config.broker_config import BrokerConfig
from odradek.coordinator.metadata.topic_creation import NewTopic
from odradek.coordinator.metadata.topic_deletion import TopicRef
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.batch_header import HEADER_BYTES, stamp_crc
from odradek.protocol.compression import Buffer, CompressionType
from odradek.protocol.errors import ApiError
from odradek.protocol.messages.produce import (
    ProducePartitionData,
    ProducePartitionResponse,
    ProduceRequest,
    ProduceResponse,
    ProduceTopicData,
    ProduceTopicResponse,
)
from odradek.protocol.record import Record
from odradek.protocol.record_batch import build_batch
from odradek.protocol.schema import DecodeError
from odradek.storage.files import Files, OpenFile
from odradek.storage.log import PartitionLog
from tests.support.lengths import by_length
from tests.support.partition_logs import UnsyncedFiles
from tests.support.produce_paths import serve_carefully
from tests.support.wire import request_frame

NOW_MS = 1_700_000_000_000
VERSIONS = range(14)
PARTITIONS = 2
PRODUCERS = 2
MINIMUM = 30  # of requests that the quick path must have served
SMALL_INDEXES = {"segment.index.bytes": "240"}  # indexes are compared, and may be full
# The topics, by the start of their names.
CONFIGS: Mapping[str, dict[str, str]] = {
    "plain": {},
    "lz4": {"compression.type": "lz4"},
    "compacted": {"cleanup.policy": "compact"},
    "stamped": {"message.timestamp.type": "LogAppendTime"},
    "dated": {"message.timestamp.before.max.ms": "1000"},
    "small": {
        "max.message.bytes": "300",
        "internal.segment.bytes": "700",
        "index.interval.bytes": "0",
    },
    "synced": {"flush.messages": "4"},
    "secret": {},
}
OTHERS = ("absent", "__consumer_offsets", "__cluster_metadata")


BATCH = build_batch([Record(b"k", b"v", NOW_MS)])


class Batch(NamedTuple):
    """A batch of a producer, and what is wrong with it. `step` leads to its first sequence."""

    producer: int = -1  # none
    epoch: int = 0
    step: int = 0
    values: tuple[int, ...] = (10,)
    codec: CompressionType = CompressionType.NONE
    flaw: str = ""


class Sent(NamedTuple):
    """A request: the batches by topic and partition, and what is wrong with its bytes."""

    version: int
    topics: Sequence[tuple[str, Sequence[tuple[int, Batch]]]]
    acks: int = -1
    client: str = "wire"
    transactional_id: str | None = None
    flaw: str = ""


def field(layout: str, position: int, value: int) -> Callable[[bytearray], None]:
    """Overwrite a field of a batch's header."""
    return lambda batch: struct.pack_into(layout, batch, position, value)


# What changes a header whose CRC is then computed again.
CHANGES: Mapping[str, Callable[[bytearray], None]] = {
    "base offset": field(">q", 0, 1),
    "length": field(">i", 8, 60),
    "magic": field(">b", 16, 1),
    "last offset delta": field(">i", 23, 7),
    "future": field(">q", 35, NOW_MS + 7_200_000),
    "sequence": field(">i", 53, -1),
    "count": field(">i", 57, 7),
    "no records": lambda batch: struct.pack_into(">i26xi", batch, 23, -1, 0),
    "many records": lambda batch: struct.pack_into(">i30xi", batch, 23, 998, 999),
    **{f"attributes {bits}": field(">h", 21, bits) for bits in (5, 8, 16, 32, 64, -1)},
}
# What makes of a batch something that is not one batch, or has another CRC.
CUTS: Mapping[str, Callable[[bytes], bytes | None]] = {
    "null": lambda _: None,
    "empty": lambda _: b"",
    "two": lambda batch: batch * 2,
    "cut": lambda batch: batch[:-1],
    "header only": lambda batch: batch[:HEADER_BYTES],
    "shorter than a header": lambda batch: batch[: HEADER_BYTES - 1],
    "CRC": lambda batch: batch[:-1] + bytes([batch[-1] ^ 1]),
}


def damaged(batch: bytearray, flaw: str) -> bytes | None:
    """The batch with a flaw, or without one."""
    if flaw in CHANGES:
        CHANGES[flaw](batch)
        stamp_crc(batch)
    return CUTS[flaw](bytes(batch)) if flaw in CUTS else bytes(batch)


class RefusesSecrets(Authorizer):
    """Allows everything except topics whose names begin with `secret`."""

    has_rules = True

    def allows(self, *question: Any) -> bool:
        return not question[-1].startswith("secret")


class Side:
    """A broker, and the one path by which it serves Produce."""

    def __init__(self, directory: Path, handle: Any, files: Files) -> None:
        config = BrokerConfig.from_texts(
            {"log.dirs": str(directory), "listeners": "PLAINTEXT://localhost:9092", "node.id": "1"}
        )
        loop = asyncio.get_running_loop()
        self.broker = Broker(config, loop, {"PLAINTEXT": 9092}, now_ms=lambda: NOW_MS, files=files)
        self.broker.security.authorizer = RefusesSecrets()
        self.waits = 0  # how many responses had to wait
        self._dispatcher = Dispatcher(
            self.broker, {**HANDLERS, ApiKey.PRODUCE: handle}, SingleBatches()
        )
        self._listener = config.open_listeners[0]

    async def create(self, configs: Mapping[str, dict[str, str]]) -> None:
        """Create topics by name."""
        new = [
            NewTopic(name=name, partition_count=PARTITIONS, configs=each | SMALL_INDEXES)
            for name, each in configs.items()
        ]
        for result in (await self.broker.admin.topics.create(new)).values():
            assert not isinstance(result, ApiError), result.message

    def topic_id(self, name: str) -> bytes:
        """The id of a topic; another one if there is none."""
        topic = self.broker.metadata.topics.get(name)
        return b"no such topic..." if topic is None else topic.id

    async def serve(self, frame: bytes, *, is_writable: bool = True) -> bytes | str | None:
        """The response's bytes, or why the connection is closed."""
        session = Session(self._listener, ("127.0.0.1", 40000))
        view = memoryview(bytearray(frame) if is_writable else frame)
        try:
            answer = self._dispatcher.dispatch(session, view)
            if not isinstance(answer, Answer):
                return answer
            out = bytearray()
            if answer.pending is not None:
                answer.response = await answer.pending
                self.waits += 1
            if answer.response is not None:
                out, _ = answer.encoded()
            return bytes(out)
        except (DecodeError, RefusedRequestError) as error:
            return f"{type(error)}: {error}"

    def log(self, topic: str, partition: int) -> PartitionLog:
        return self.broker.log_manager.get(topic, partition)

    def state(self, topic: str, partition: int) -> list[object]:
        """All that is known of a partition, and the content of its files."""
        log = self.log(topic, partition)
        entries = log.producers.producers.values()
        log.flush(NOW_MS)
        return [
            [(e.producer_id, e.epoch, e.batches, e.last_timestamp_ms) for e in entries],
            (log.log_start_offset, log.log_end_offset, log.high_watermark, log.appended_bytes),
            (log.last_stable_offset, log.epochs.entries, log.producers.map_end_offset),
            [(each.base_offset, each.size_bytes, each.newest) for each in log.segments],
            {
                path.name: path.read_bytes()
                for path in log.directory.iterdir()
                if path.name != "partition.metadata"  # the id of the topic differs
            },
        ]


class Pair:
    """Two brokers with equal topics: one has both paths, the other only the careful one."""

    def __init__(self, directory: Path) -> None:
        self.quick = Side(directory / "quick", produce.handle, UnsyncedFiles())
        self.careful = Side(directory / "careful", serve_carefully, UnsyncedFiles())
        self._examples = 0
        self._sequences: dict[tuple[str, int, int], int] = {}
        self._last: dict[tuple[str, int], bytes | None] = {}

    async def compare(self, requests: Sequence[Sent]) -> None:
        """Send equal requests to new topics of both brokers."""
        self._examples += 1
        wanted = {topic for sent in requests for topic, _ in sent.topics} & set(CONFIGS)
        names = {self._name(topic): CONFIGS[topic] for topic in sorted(wanted)}
        for side in (self.quick, self.careful):
            await side.create(names)
        try:
            for number, sent in enumerate(requests):
                quick, careful = await self._send(sent, number)
                assert quick == careful
            for name, partition in itertools.product(names, range(PARTITIONS)):
                assert self.quick.state(name, partition) == self.careful.state(name, partition)
        finally:
            for side in (self.quick, self.careful):
                await side.broker.admin.topics.delete([TopicRef(name) for name in names])

    def _name(self, topic: str) -> str:
        return topic if topic.startswith("__") else f"{topic}-{self._examples}"

    async def _send(self, sent: Sent, number: int) -> list[bytes | str | None]:
        data = [
            (self._name(topic), [self._partition(topic, *each) for each in partitions])
            for topic, partitions in sent.topics
        ]
        answers = []
        for side in (self.quick, self.careful):
            topics = side.broker.metadata.topics
            ids = {
                name: topics[name].id if name in topics else bytes(15) + b"x" for name, _ in data
            }
            by_id = sent.version >= 13
            request = ProduceRequest(
                transactional_id=sent.transactional_id if sent.version >= 3 else None,
                acks=sent.acks,
                timeout_ms=1000,
                topic_data=[
                    ProduceTopicData(
                        name="" if by_id else name,
                        topic_id=ids[name] if by_id else bytes(16),
                        partition_data=partitions,
                    )
                    for name, partitions in data
                ],
            )
            frame = request_frame(request, sent.version, number, sent.client)[4:]
            answer = await side.serve(frame_with(frame, sent.flaw, sent.version))
            if isinstance(answer, bytes):
                for name, topic_id in ids.items():
                    answer = answer.replace(topic_id, name.encode())
            answers.append(answer)
        return answers

    def _partition(self, topic: str, index: int, wanted: Batch) -> ProducePartitionData:
        where = (self._name(topic), index)
        if wanted.step >= 0:
            self._last[where] = self._bytes(where, wanted)
        return ProducePartitionData(index=index, records=self._last.get(where))

    def _bytes(self, where: tuple[str, int], wanted: Batch) -> bytes | None:
        sequence = -1
        if wanted.producer >= 0:
            writer = (*where, wanted.producer)
            sequence = self._sequences.get(writer, 0) + wanted.step
            self._sequences[writer] = sequence + len(wanted.values)
        key = None if wanted.flaw == "no key" else b"k"
        records = [Record(key, bytes(size), NOW_MS) for size in wanted.values]
        batch = build_batch(
            records,
            compression=wanted.codec,
            producer_id=wanted.producer,
            producer_epoch=wanted.epoch if wanted.producer >= 0 else -1,
            base_sequence=sequence,
        )
        return damaged(batch, wanted.flaw)


def frame_with(frame: bytes, flaw: str, version: int) -> bytes:
    """The frame, cut short, or with a tagged field that nobody knows."""
    if flaw == "cut":
        return frame[:-3]
    if flaw == "tags" and version >= 9:
        return frame[:-1] + b"\x01\x05\x02xx"
    return frame


ordinary = st.builds(
    Batch,
    producer=st.sampled_from([-1, 0]),
    epoch=st.just(0),
    step=st.just(0),
    values=st.sampled_from([(10,), (1, 2, 3), (100,)]),
    codec=st.sampled_from([CompressionType.NONE, *CompressionType]),
    flaw=st.just(""),
)
odd = st.builds(
    Batch,
    producer=st.integers(-1, PRODUCERS - 1),
    epoch=st.sampled_from([0, 0, 1]),
    step=st.sampled_from([0, 1, -1]),
    values=st.sampled_from([(10,), (400,)]),
    codec=st.just(CompressionType.NONE),
    flaw=st.sampled_from(["", *CHANGES, *CUTS]),
)
any_topic = st.sampled_from([*CONFIGS, *OTHERS])
usual_topic = st.sampled_from(["plain", "plain", "synced", "small"])
usual_batch = st.tuples(st.integers(0, PARTITIONS - 1), ordinary)


def sent(topics: st.SearchStrategy[Any], **others: st.SearchStrategy[Any]) -> Any:
    """Requests about such topics; what is not said is as usual."""
    usual = {
        "version": st.integers(7, 13),
        "acks": st.sampled_from([-1, 1, 0]),
        "client": st.just("wire"),
        "transactional_id": st.none(),
        "flaw": st.sampled_from(["", "", "tags"]),
    }
    return st.builds(Sent, topics=topics, **usual | others)


def topics(topic: Any, partitions: Any, count: int = 1) -> st.SearchStrategy[Any]:
    """One to `count` topics with such partitions."""
    pairs = st.tuples(topic, partitions)
    return st.lists(pairs, min_size=1, max_size=count, unique_by=itemgetter(0))


def listed(batch: Any, **sizes: Any) -> st.SearchStrategy[Any]:
    return st.lists(batch, **{"min_size": 1} | sizes)


each_once = listed(usual_batch, max_size=PARTITIONS, unique_by=itemgetter(0))
several = sent(topics(usual_topic, each_once, 2))
odd_batch = sent(topics(usual_topic, listed(st.tuples(st.just(0), odd), max_size=1)))
odd_topic = sent(topics(any_topic, listed(usual_batch, max_size=1)))
odd_request = sent(
    topics(usual_topic, listed(usual_batch, max_size=1)),
    version=st.sampled_from(VERSIONS),
    acks=st.sampled_from([-1, 1, 2, -2]),
    client=st.sampled_from(["wire", "", "__admin_client"]),
    transactional_id=st.sampled_from([None, None, "x"]),
    flaw=st.sampled_from(["", "cut", "tags"]),
)
any_batch = st.tuples(st.sampled_from([0, 1, 7]), st.one_of(ordinary, odd))
anything = sent(
    st.lists(st.tuples(any_topic, st.lists(any_batch, max_size=3)), max_size=3),
    client=st.sampled_from(["wire", "__admin_client"]),
)
requests = st.one_of(several, several, odd_batch, odd_batch, odd_topic, odd_request, anything)


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> list[ProduceRequest | SingleBatch]:
    """The requests for which the quick path answers."""
    requests = []
    append_quickly = quick_produce.append_quickly

    def noting(context: Any, request: ProduceRequest | SingleBatch) -> Any:
        answer = append_quickly(context, request)
        if answer is not None:
            requests.append(request)
        return answer

    monkeypatch.setattr(produce, "append_quickly", noting)
    return requests


@contextmanager
def brokers(directory: Path) -> Iterator[tuple[asyncio.Runner, Pair]]:
    """A pair of brokers, and the loop on which they run."""
    with asyncio.Runner() as runner:

        async def open_pair() -> Pair:
            return Pair(directory)

        pair = runner.run(open_pair())
        try:
            yield runner, pair
        finally:
            for side in (pair.quick, pair.careful):
                runner.run(side.broker.close())


def to_plain(*batches: Batch, version: int = 9) -> Sent:
    return Sent(version, [("plain", [(0, batch) for batch in batches])])


GOOD, NEXT = Batch(), Batch(producer=0)
ODD = (
    *(to_plain(batch._replace(flaw=flaw)) for flaw in (*CHANGES, *CUTS) for batch in (GOOD, NEXT)),
    *(to_plain(NEXT._replace(step=step, epoch=epoch)) for step in (0, 1, -1) for epoch in (0, 1)),
    *(to_plain(GOOD._replace(codec=codec), version=6) for codec in CompressionType),
    *(to_plain(NEXT, batch) for batch in (NEXT, GOOD, NEXT._replace(step=-1))),
    Sent(9, [("plain", [(0, NEXT)]), ("plain", [(0, NEXT._replace(step=-1)), (1, NEXT)])]),
    Sent(9, [("compacted", [(0, GOOD)]), ("compacted", [(1, GOOD._replace(flaw="no key"))])]),
    Sent(9, [("small", [(0, GOOD._replace(values=(size,)))]) for size in (1, 300, 2)]),
    Sent(9, [("synced", [(0, GOOD._replace(values=(1, 2, 3)))])] * 2),
    Sent(9, [("synced", [(1, GOOD._replace(values=(1, 2, 3, 4)))])]),
)


def test_both_paths_treat_every_oddity_alike(
    scratch: Path, taken: list[ProduceRequest | SingleBatch]
) -> None:
    with brokers(scratch) as (runner, pair):
        for odd in ODD:
            runner.run(pair.compare([to_plain(GOOD), to_plain(NEXT), to_plain(NEXT), odd]))
        assert pair.quick.waits == pair.careful.waits > 0
    assert len(taken) >= 2 * len(ODD)
    assert sum(isinstance(request, SingleBatch) for request in taken) >= len(ODD)


def test_both_paths_answer_and_store_the_same(
    scratch: Path, taken: list[ProduceRequest | SingleBatch]
) -> None:
    with brokers(scratch) as (runner, pair):

        @settings(max_examples=by_length(40, 3000), deadline=None)
        @given(st.lists(requests, min_size=5, max_size=12))
        def compare(conversation: list[Sent]) -> None:
            # Twice, because the first bytes of a request must be known to be found again.
            runner.run(pair.compare(conversation * 2))

        compare()
    assert len(taken) > MINIMUM
    singles = [request for request in taken if isinstance(request, SingleBatch)]
    others = [request for request in taken if isinstance(request, ProduceRequest)]
    assert singles
    assert any(len(request.topic_data) > 1 for request in others)
    assert {0, 1, -1} <= {request.acks for request in taken}


async def test_a_batch_that_may_not_be_changed_is_stored_by_the_careful_path(
    tmp_path: Path, taken: list[ProduceRequest | SingleBatch]
) -> None:
    side = Side(tmp_path, produce.handle, UnsyncedFiles())
    await side.create({"plain": {}})
    data = [ProducePartitionData(index=index, records=bytes(BATCH)) for index in range(PARTITIONS)]
    topics = [ProduceTopicData(name="plain", partition_data=data)]
    request = ProduceRequest(acks=1, timeout_ms=1000, topic_data=topics)
    frame = request_frame(request, 9, 1, "wire")[4:]
    for is_writable in (False, True):
        assert not taken
        await side.serve(frame, is_writable=is_writable)
    assert len(taken) == 1
    assert [side.log("plain", index).log_end_offset for index in range(PARTITIONS)] == [2, 2]
    await side.broker.close()


class FullDisk(UnsyncedFiles):
    """Has no space for records of the second partitions, while `is_full`."""

    is_full = False

    def append(self, file: OpenFile, buffers: Sequence[Buffer]) -> int:
        if self.is_full and file.path.parent.name.endswith("-1"):
            raise OSError(errno.ENOSPC, "full", file.path.parent.name)
        return super().append(file, buffers)


@pytest.mark.parametrize("acks", [-1, 0])
async def test_a_disk_that_fails_under_the_quick_path_is_answered_as_by_the_careful_path(
    tmp_path: Path, taken: list[ProduceRequest | SingleBatch], acks: int
) -> None:
    data = [ProducePartitionData(index=index, records=bytes(BATCH)) for index in range(PARTITIONS)]
    topics = [ProduceTopicData(name=name, partition_data=data) for name in ("plain", "secret")]
    answers = []
    for name, handle in (("quick", produce.handle), ("careful", serve_carefully)):
        files = FullDisk()
        side = Side(tmp_path / name, handle, files)
        side.broker.security.authorizer = Authorizer()
        await side.create({"plain": {}, "secret": {}})
        files.is_full = True
        request = ProduceRequest(acks=acks, timeout_ms=1000, topic_data=topics)
        answers.append(await side.serve(request_frame(request, 9, 1, "wire")[4:]))
        assert [side.log("plain", index).log_end_offset for index in range(PARTITIONS)] == [1, 0]
        files.is_full = False
        await side.broker.close()
    assert answers[0] == answers[1]
    assert isinstance(answers[0], bytes if acks else str)
    assert len(taken) == (1 if acks else 0), "for acks=0 it raises"


@settings(max_examples=by_length(15, 50))
@given(
    version=st.integers(FIRST_VERSION, 13),
    counts=st.lists(st.sampled_from([0, 1, 3, 126, 127, 200]), max_size=3),
    name=st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), max_size=200),
    offset=st.integers(0, 2**63 - 1),
)
def test_the_response_to_accepted_batches_is_that_of_the_compiled_writer(
    version: int, counts: list[int], name: str, offset: int
) -> None:
    key: dict[str, Any] = {"topic_id": b"0123456789abcdef"} if version >= 13 else {"name": name}
    request = ProduceRequest(
        acks=1,
        timeout_ms=1,
        topic_data=[
            ProduceTopicData(
                **key, partition_data=[ProducePartitionData(index=each) for each in range(count)]
            )
            for count in counts
        ],
    )
    response = ProduceResponse(
        responses=[
            ProduceTopicResponse(
                **key,
                partition_responses=[
                    ProducePartitionResponse(
                        index=each.index, base_offset=offset, log_start_offset=each.index
                    )
                    for each in topic.partition_data
                ],
            )
            for topic in request.topic_data
        ]
    )
    stored = [(offset, index) for count in counts for index in range(count)]
    assert encode_accepted(request, version, stored) == response.encode(version)
