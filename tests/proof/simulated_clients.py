"""Clients of a broker in simulated time: they note what they send and what they are told."""

import os
from collections import defaultdict
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from odradek.protocol.batch_header import read_header
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopic,
)
from odradek.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    ConsumerGroupHeartbeatTopicPartitions,
)
from odradek.protocol.messages.create_topics import (
    CreateTopicsConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
    CreateTopicsTopic,
)
from odradek.protocol.messages.delete_topics import (
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicsTopic,
)
from odradek.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse
from odradek.protocol.messages.fetch import (
    FetchPartition,
    FetchPartitionData,
    FetchRequest,
    FetchResponse,
    FetchTopic,
)
from odradek.protocol.messages.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from odradek.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from odradek.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from odradek.protocol.messages.produce import (
    ProducePartitionResponse,
    ProduceResponse,
)
from odradek.protocol.primitives import ZERO_UUID
from odradek.protocol.record import read_records
from odradek.storage.slices import RecordsSlice
from tests.support.broker_in_loop import produce_to
from tests.support.dirty_logs import clean
from tests.support.log_box import batch_of, split

from .life import FIRST, GROUP, SECOND, SMALL
from .world import (
    COMPACTED,
    PARTITIONS,
    RETRIED,
    SESSION_MS,
    TOPIC,
    Client,
    ConnectionCutError,
    Place,
    Sent,
    Transaction,
    World,
)


async def producer(
    world: World, name: str, topic: str = TOPIC, keys: Sequence[bytes] = (b"k",)
) -> None:
    """An idempotent producer: it sends one batch at a time, until that is acknowledged."""
    client = world.connect(name)
    init = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000)
    made, _ = await client.insist(init, InitProducerIdResponse, 4, lambda it: it.error_code)
    sequences = [0] * PARTITIONS
    number = 0
    while not world.is_over:
        number += 1
        place = Place(topic, world.random.randrange(PARTITIONS))
        value, key = b"%s %06d" % (name.encode(), number), world.random.choice(keys)
        world.known.sent[value] = Sent(place, name, number, key)
        sequence = sequences[place.partition]
        identity = made.producer_id, made.producer_epoch, sequence
        request = produce_to(topic, batch_of(value, key=key, producer=identity), [place.partition])
        answer, code = await client.insist(
            request, ProduceResponse, 12, lambda it: _result_of(it).error_code
        )
        if code:
            world.fault(f"{name} {number}: {code.name}")
            return
        sequences[place.partition] += 1
        world.known.acknowledged[place][_result_of(answer).base_offset] = value
        await world.pause(0.3)


async def transactional_producer(world: World, name: str) -> None:
    """Commits and aborts; one whose transaction failed begins with a new epoch."""
    client = world.connect(name)
    number = 0
    identities: set[tuple[int, int]] = set()
    while not world.is_over:
        init = InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=5_000)
        made, _ = await client.insist(init, InitProducerIdResponse, 4, lambda it: it.error_code)
        identity: tuple[int, int] | None = made.producer_id, made.producer_epoch
        if identity in identities:
            world.fault(f"{name}: id and epoch {identity} are those of an earlier instance")
        while identity is not None and not world.is_over:
            transaction = Transaction()
            world.known.transactions.append(transaction)
            number += 1
            identities.add(identity)
            identity = await _one_transaction(world, client, number, transaction, identity)
            await world.pause(0.5)


async def _one_transaction(
    world: World, client: Client, number: int, transaction: Transaction, identity: tuple[int, int]
) -> tuple[int, int] | None:
    """Returns the id and epoch for the next, or None after an error."""
    sequences = [0] * PARTITIONS
    try:
        for index in range(world.random.randint(1, 3)):
            place = Place(TOPIC, world.random.randrange(PARTITIONS))
            value = b"%s %06d-%d" % (client.name.encode(), number, index)
            world.known.sent[value] = Sent(place, client.name, number * 10 + index)
            transaction.values.append(value)
            producer = *identity, sequences[place.partition]
            batch = batch_of(value, producer=producer, is_transactional=True)
            request = produce_to(TOPIC, batch, [place.partition], transactional_id=client.name)
            answer = await client.ask(request, ProduceResponse, 12)
            if _result_of(answer).error_code:
                return None
            sequences[place.partition] += 1
            await world.pause(0.1)
        if world.is_over:
            return None  # it is left open, and the broker must abort it
        commits = world.random.random() < 0.6
        end = EndTxnRequest(
            transactional_id=client.name,
            producer_id=identity[0],
            producer_epoch=identity[1],
            committed=commits,
        )
        transaction.end = commits
        while True:
            ended = await client.ask(end, EndTxnResponse, 5)
            if ErrorCode(ended.error_code) not in RETRIED:
                break
            await world.pause(0.1)
    except ConnectionCutError:
        return None
    if ended.error_code:
        world.note(f"{client.name} {number}: {ErrorCode(ended.error_code).name}")
        return None
    transaction.is_told = True
    return ended.producer_id, ended.producer_epoch


async def committing_consumer(world: World) -> None:
    """Commits larger and larger offsets of a group without members."""
    client = world.connect("committer")
    offset = 0
    while not world.is_over:
        offset += 1
        partition = OffsetCommitRequestPartition(
            partition_index=0, committed_offset=offset, committed_metadata=""
        )
        request = OffsetCommitRequest(
            group_id=GROUP,
            topics=[OffsetCommitRequestTopic(name=TOPIC, partitions=[partition])],
        )
        world.known.offsets_sent.add(offset)
        _, code = await client.insist(
            request, OffsetCommitResponse, 9, lambda it: it.topics[0].partitions[0].error_code
        )
        if code:
            world.fault(f"an offset is refused: {code.name}")
            return
        world.known.offset_told = offset
        await world.pause(0.5)


async def reader(world: World) -> None:
    """Reads what is committed, from the start of the topic on."""
    client = world.connect("reader")
    offsets = [0] * PARTITIONS
    while not world.is_over:
        partitions = [
            FetchPartition(partition=index, fetch_offset=offset, partition_max_bytes=2_000)
            for index, offset in enumerate(offsets)
        ]
        request = FetchRequest(
            max_wait_ms=500,
            min_bytes=1,
            isolation_level=1,
            topics=[FetchTopic(topic=TOPIC, partitions=partitions)],
        )
        answer, _ = await client.insist(request, FetchResponse, 12, lambda it: it.error_code)
        for found in answer.responses[0].partitions:
            if found.error_code:
                world.fault(f"the reader: {ErrorCode(found.error_code).name}")
                return
            place = Place(TOPIC, found.partition_index)
            read, offsets[place.partition] = _committed(found, offsets[place.partition])
            world.known.read[place].update(read)
        await world.pause(0.3)


def _committed(found: FetchPartitionData, offset: int) -> tuple[dict[int, bytes | None], int]:
    """The committed values by their offset, as a client finds them, and the next offset."""
    values: dict[int, bytes | None] = {}
    aborted = sorted(found.aborted_transactions or [], key=lambda each: each.first_offset)
    open_aborted: set[int] = set()
    for batch in split(_bytes_of(found.records)):
        header = read_header(batch)
        offset = header.last_offset + 1
        while aborted and aborted[0].first_offset <= header.last_offset:
            open_aborted.add(aborted.pop(0).producer_id)
        if header.is_control:
            open_aborted.discard(header.producer_id)
        elif not (header.is_transactional and header.producer_id in open_aborted):
            values.update((each.offset, each.value) for each in read_records(batch))
    return values, offset


def _bytes_of(records: Any) -> bytes:
    if isinstance(records, RecordsSlice):
        return os.pread(records.file.fd, records.size_bytes, records.position)
    return bytes(records or b"")


async def administrator(world: World) -> None:
    """Creates topics and deletes them, again and again."""
    client = world.connect("admin")
    topics = world.known.topics
    number = 0
    while not world.is_over:
        number += 1
        name = f"topic-{number % 3}"
        was_there = topics.get(name)
        topics[name] = None
        code = await (delete if was_there else create)(client, name)
        if code:
            world.fault(f"{name}: {code.name}")
            return
        topics[name] = not was_there
        await world.pause(1.0)


async def mover(world: World) -> None:
    """Moves partitions between the data directories."""
    client = world.connect("mover")
    while not world.is_over:
        await world.pause(6.0)
        to = world.files.root / world.random.choice((FIRST, SECOND))
        topics = [
            AlterReplicaLogDirTopic(name=TOPIC, partitions=[world.random.randrange(PARTITIONS)])
        ]
        request = AlterReplicaLogDirsRequest(dirs=[AlterReplicaLogDir(path=str(to), topics=topics)])
        try:
            answer = await client.ask(request, AlterReplicaLogDirsResponse, 2)
        except ConnectionCutError:
            continue
        code = ErrorCode(answer.results[0].partitions[0].error_code)
        # The directory may be one of the life before.
        if code and code not in RETRIED and code is not ErrorCode.LOG_DIR_NOT_FOUND:
            world.fault(f"mover: {code.name}")
            return


async def cleaner(world: World) -> None:
    """Has the compacted topic cleaned, as the broker's own cleaner does in another process."""
    while not world.is_over:
        await world.pause(4.0)
        broker = world.running
        if broker is None or COMPACTED not in broker.metadata.topics:
            continue
        with suppress(ApiError):
            log = broker.log_manager.get(COMPACTED, world.random.randrange(PARTITIONS))
            clean(log, world.now_ms(), checkpoint=0, files=world.files)
            world.note(f"cleaned {log.directory.name}")


async def create(client: Client, name: str, **configs: str) -> ErrorCode:
    """The error; none if the topic is there, because the first answer may have been lost."""
    settings = SMALL | {key.replace("_", "."): value for key, value in configs.items()}
    topic = CreateTopicsTopic(
        name=name,
        num_partitions=PARTITIONS,
        replication_factor=1,
        assignments=[],
        configs=[CreateTopicsConfig(name=key, value=value) for key, value in settings.items()],
    )
    _, code = await client.insist(
        CreateTopicsRequest(topics=[topic]),
        CreateTopicsResponse,
        7,
        lambda it: it.topics[0].error_code,
    )
    return ErrorCode.NONE if code is ErrorCode.TOPIC_ALREADY_EXISTS else code


async def delete(client: Client, name: str) -> ErrorCode:
    """The error; none if the topic is not there."""
    topic = DeleteTopicsTopic(name=name, topic_id=ZERO_UUID)
    request = DeleteTopicsRequest(topics=[topic], timeout_ms=10_000)
    answer, _ = await client.insist(request, DeleteTopicsResponse, 6, lambda _: ErrorCode.NONE)
    code = ErrorCode(answer.responses[0].error_code)
    return ErrorCode.NONE if code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION else code


async def find_coordinator(client: Client, kind: int, key: str) -> None:
    """Have the internal topic of groups (0) or transactions (1) created."""
    await client.insist(
        FindCoordinatorRequest(key_type=kind, coordinator_keys=[key]),
        FindCoordinatorResponse,
        4,
        lambda it: it.coordinators[0].error_code,
    )


async def member(world: World, name: str) -> None:
    """A member of a consumer group (KIP-848), which is away now and then."""
    client = world.connect(name)
    epoch = 0
    owned: set[tuple[bytes, int]] = set()
    is_whole = is_changed = True  # after an answer was lost, everything is sent again
    while not world.is_over:
        request = ConsumerGroupHeartbeatRequest(
            group_id="members",
            member_id=name,
            member_epoch=epoch,
            rebalance_timeout_ms=30_000 if is_whole else -1,
            subscribed_topic_names=[TOPIC] if is_whole else None,
            topic_partitions=_partitions(owned) if is_whole or is_changed else None,
        )
        asked_at = world.loop.time()
        try:
            answer = await client.ask(request, ConsumerGroupHeartbeatResponse, 1)
        except ConnectionCutError:
            is_whole = True
            await world.pause(0.5)
            continue
        is_whole = is_changed = False
        code = ErrorCode(answer.error_code)
        if code in (ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID):
            epoch, owned, is_whole = 0, set(), True
        elif code is ErrorCode.NONE:
            epoch = answer.member_epoch
            if answer.assignment is not None:
                target = {
                    (each.topic_id, partition)
                    for each in answer.assignment.topic_partitions
                    for partition in each.partitions
                }
                is_changed = target != owned
                owned = target
        elif code not in RETRIED:
            world.fault(f"{name}: {code.name}")
            return
        world.known.owners[name] = asked_at, owned
        _check_owners(world)
        await world.pause(world.random.choice((0.5, 0.5, 0.5, 2.0, 9.0)))


def _check_owners(world: World) -> None:
    """No partition belongs to two members that the coordinator must still know."""
    owner_of: dict[tuple[bytes, int], str] = {}
    for name, (since_s, owned) in world.known.owners.items():
        if world.loop.time() - since_s > SESSION_MS / 1000 / 2:
            continue  # it may have been removed, and not know it yet
        for partition in owned:
            if partition in owner_of:
                world.fault(f"{partition[1]} belongs to {owner_of[partition]} and {name}")
            owner_of[partition] = name


def _partitions(
    owned: set[tuple[bytes, int]],
) -> list[ConsumerGroupHeartbeatTopicPartitions]:
    by_topic: defaultdict[bytes, list[int]] = defaultdict(list)
    for topic_id, partition in sorted(owned):
        by_topic[topic_id].append(partition)
    return [
        ConsumerGroupHeartbeatTopicPartitions(topic_id=topic_id, partitions=partitions)
        for topic_id, partitions in by_topic.items()
    ]


def _result_of(answer: ProduceResponse) -> ProducePartitionResponse:
    return answer.responses[0].partition_responses[0]
