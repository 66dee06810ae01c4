"""CreatePartitions on the topics of coordinators: the new partitions are served at once."""

import asyncio
from pathlib import Path

from odradek.coordinator.metadata.topic_creation import MorePartitions
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.write_txn_markers import (
    WriteTxnMarkersMarker,
    WriteTxnMarkersRequest,
    WriteTxnMarkersTopic,
)
from odradek.storage.topic_names import CONSUMER_OFFSETS_TOPIC
from tests.support.transactions import INTERNAL_TOPICS, Transactions, transactions_in

NONE = ErrorCode.NONE
COUNT = 5


async def grow(rig: Transactions) -> None:
    added = [MorePartitions(name=name, count=COUNT) for name in INTERNAL_TOPICS]
    results = await rig.broker.admin.topics.create_partitions(added)
    assert set(results.values()) == {None}
    await asyncio.sleep(0)  # a new log is loaded in the loop's next turn
    await asyncio.sleep(0)


async def commit(rig: Transactions, transactional_id: str) -> None:
    one = rig.producer(transactional_id)
    assert await one.start() is NONE
    assert await one.write(0, 0) is NONE
    assert await one.commit_offset(5) is NONE
    assert await one.end() is NONE


async def test_added_partitions_are_served_and_ids_stay_where_they_are(tmp_path: Path) -> None:
    async with transactions_in(tmp_path) as rig:
        await commit(rig, "shop")
        await grow(rig)
        for coordinator in (rig.broker.coordinators.groups, rig.broker.coordinators.transactions):
            served = [shard.partition for shard in coordinator.shards.all()]
            assert served == list(range(COUNT))
        await commit(rig, "shop")
        for number in range(COUNT):
            await commit(rig, f"shop {number}")
        assert await rig.committed(0, stable=True) == [(5, 0)]
    async with transactions_in(tmp_path) as rig:
        for number in range(COUNT):
            await commit(rig, f"shop {number}")
        assert await rig.committed(0, stable=True) == [(5, 0)]


async def test_markers_are_written_to_a_new_partition(tmp_path: Path) -> None:
    async with transactions_in(tmp_path) as rig:
        topic = WriteTxnMarkersTopic(
            name=CONSUMER_OFFSETS_TOPIC, partition_indexes=list(range(COUNT))
        )
        marker = WriteTxnMarkersMarker(
            producer_id=7,
            producer_epoch=0,
            transaction_result=True,
            topics=[topic],
            coordinator_epoch=0,
        )
        request = WriteTxnMarkersRequest(markers=[marker])
        missing = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert await codes(rig, request) == [NONE, missing, missing, missing, missing]
        await grow(rig)
        assert await codes(rig, request) == [NONE] * COUNT


async def codes(rig: Transactions, request: WriteTxnMarkersRequest) -> list[int]:
    (marker,) = (await rig.ask(request, 1)).markers
    return [partition.error_code for partition in marker.topics[0].partitions]
