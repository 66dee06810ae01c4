"""Records before an offset are gone: at once, after a clean stop, and after a kill."""

import asyncio
import inspect
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from odradek.broker.broker import Broker
from odradek.config.broker_config import BrokerConfig
from odradek.config.topic_config import with_overrides
from odradek.coordinator.metadata.topic_creation import NewTopic
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from odradek.protocol.messages.describe_log_dirs import DescribeLogDirsRequest
from odradek.protocol.messages.unregister_broker import UnregisterBrokerRequest
from odradek.protocol.schema import Message
from odradek.storage.files import Files
from odradek.storage.log import PartitionLog
from odradek.storage.moving.log_moves import LogMoves
from odradek.storage.retention import delete_old_segments
from tests.support.contexts import handled, request_context
from tests.support.log_box import batch_of, values_from

NOW_MS = 1_700_000_000_000
VALUE = bytes(400_000)


class Rig:
    """A broker in two directories that listens nowhere, with a topic `t` of segments of 1 MiB."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.broker = self.opened()

    def opened(self) -> Broker:
        config = BrokerConfig.from_texts(
            {
                "log.dirs": f"{self.root}/one,{self.root}/two",
                "listeners": "PLAINTEXT://localhost:9092",
                "cordoned.log.dirs": f"{self.root}/two",
            }
        )
        loop = asyncio.get_running_loop()
        return Broker(config, loop, {"PLAINTEXT": 9092}, now_ms=lambda: NOW_MS)

    def kill(self) -> None:
        """The process is gone, with all that it had not written down."""
        for directory in self.broker.log_manager.directories:
            directory.unlock()
        self.broker.disk.close()

    @property
    def log(self) -> PartitionLog:
        return self.broker.log_manager.get("t", 0)

    async def ask(self, request: Message, version: int) -> Any:
        spec = type(request).SPEC
        assert spec.key is not None
        context = request_context(self.broker, version, NOW_MS)
        answer = handled(context, request)
        return await answer if inspect.isawaitable(answer) else answer

    async def delete_before(self, offset: int) -> tuple[int, int]:
        """Error code and low watermark."""
        partition = DeleteRecordsPartition(partition_index=0, offset=offset)
        topic = DeleteRecordsTopic(name="t", partitions=[partition])
        answer = await self.ask(DeleteRecordsRequest(topics=[topic], timeout_ms=0), 2)
        result = answer.topics[0].partitions[0]
        return result.error_code, result.low_watermark


@pytest.fixture
async def rig(tmp_path: Path) -> AsyncIterator[Rig]:
    made = Rig(tmp_path)
    wish = NewTopic(name="t", partition_count=1, configs={"segment.bytes": "1048576"})
    await made.broker.admin.topics.create([wish])
    for _ in range(7):
        made.log.append(batch_of(VALUE), now_ms=NOW_MS)
    yield made
    await made.broker.close()


async def test_readers_do_not_see_them_and_whole_segments_go_at_the_next_check(rig: Rig) -> None:
    assert rig.log.segments.base_offsets == [0, 2, 4, 6]
    assert await rig.delete_before(5) == (ErrorCode.NONE, 5)
    assert await rig.delete_before(3) == (ErrorCode.NONE, 5)
    assert await rig.delete_before(8) == (ErrorCode.OFFSET_OUT_OF_RANGE, -1)
    assert (rig.log.earliest_offset().offset, len(values_from(rig.log))) == (5, 2)
    assert rig.log.segments.base_offsets == [0, 2, 4, 6]
    assert delete_old_segments(rig.log, NOW_MS) == 2
    assert rig.log.segments.base_offsets == [4, 6]


async def test_they_stay_away_after_a_clean_stop(rig: Rig) -> None:
    await rig.delete_before(5)
    await rig.broker.close()
    rig.broker = rig.opened()
    assert (rig.log.log_start_offset, len(values_from(rig.log))) == (5, 2)


async def test_they_stay_away_after_a_kill_once_the_checkpoint_is_written(rig: Rig) -> None:
    await rig.delete_before(3)
    rig.broker.log_manager.write_log_starts()
    await rig.delete_before(5)
    rig.kill()
    rig.broker = rig.opened()
    assert (rig.log.log_start_offset, len(values_from(rig.log))) == (3, 4)


async def test_all_may_be_deleted_and_offsets_go_on(rig: Rig) -> None:
    assert await rig.delete_before(-1) == (ErrorCode.NONE, 7)
    delete_old_segments(rig.log, NOW_MS)
    await rig.broker.close()
    rig.broker = rig.opened()
    assert (rig.log.log_start_offset, rig.log.log_end_offset) == (7, 7)
    rig.log.append(batch_of(b"next"), now_ms=NOW_MS)
    assert values_from(rig.log) == [b"next"]


async def test_a_log_that_is_offline_keeps_its_records(rig: Rig) -> None:
    rig.log.take_offline("test")
    assert await rig.delete_before(3) == (ErrorCode.KAFKA_STORAGE_ERROR, -1)


@pytest.mark.parametrize(
    ("policy", "error_code", "low_watermark"),
    [
        ("delete", ErrorCode.NONE, 3),
        ("compact", ErrorCode.POLICY_VIOLATION, -1),
        ("compact,delete", ErrorCode.NONE, 3),
    ],
)
async def test_a_topic_that_is_only_compacted_keeps_its_records(
    rig: Rig, policy: str, error_code: ErrorCode, low_watermark: int
) -> None:
    rig.log.config = with_overrides(rig.log.config, {"cleanup.policy": policy})
    assert await rig.delete_before(3) == (error_code, low_watermark)


async def test_log_directories_tell_of_a_log_on_its_way(rig: Rig) -> None:
    manager = rig.broker.log_manager
    [target] = [one for one in manager.directories if one.path.name == "two"]
    future = LogMoves(rig.broker.log_manager, Files()).begin(rig.log, target)
    plan = future.next_copy()
    assert plan is not None
    plan.run()
    future.note(plan)
    answer = await rig.ask(DescribeLogDirsRequest(topics=None), 5)
    assert [one.is_cordoned for one in answer.results] == [False, True]
    told = {
        one.log_dir: [
            (part.partition_size, part.offset_lag, part.is_future_key)
            for topic in one.topics
            for part in topic.partitions
        ]
        for one in answer.results
    }
    here = str(manager.directory_of(rig.log).path)
    assert told == {
        here: [(rig.log.size_bytes, 0, False)],
        str(target.path): [(rig.log.segments[0].size_bytes, 5, True)],
    }


async def test_the_one_broker_stays_registered(rig: Rig) -> None:
    own = rig.broker.nodes.own_id
    answer = await rig.ask(UnregisterBrokerRequest(broker_id=own), 0)
    assert answer.error_code == ErrorCode.INVALID_REQUEST
    answer = await rig.ask(UnregisterBrokerRequest(broker_id=own + 1), 0)
    assert answer.error_code == ErrorCode.BROKER_ID_NOT_REGISTERED
    assert own in rig.broker.metadata.brokers
