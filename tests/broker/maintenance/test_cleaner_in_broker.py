"""The log cleaner among the other parts of a broker: deletions, moves, retention, settings."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from odradek.broker.broker import Broker
from odradek.broker.periodic_tasks import periodic_tasks_of
from odradek.config.broker_config import BrokerConfig
from odradek.coordinator.metadata.topic_creation import NewTopic
from odradek.coordinator.metadata.topic_deletion import TopicRef
from odradek.storage.checkpoints import read_offsets
from odradek.storage.files import Files
from tests.support.cleaner_rig import fill, left_in, newest, until


@pytest.fixture
async def broker(tmp_path: Path) -> AsyncIterator[Broker]:
    settings = {
        "log.dirs": f"{tmp_path / 'a'},{tmp_path / 'b'}",
        "listeners": "PLAINTEXT://localhost:0",
        "log.cleaner.backoff.ms": "20",
        "log.initial.task.delay.ms": "0",
    }
    config = BrokerConfig.from_texts(settings)
    made = Broker(config, asyncio.get_running_loop(), {"PLAINTEXT": 9092})
    topic_settings = {"cleanup.policy": "compact", "internal.segment.bytes": "4096"}
    await made.admin.topics.create([NewTopic(name="t", partition_count=1, configs=topic_settings)])
    yield made
    await made.close()


def checkpoint(path: Path) -> dict[tuple[str, int], int]:
    return read_offsets(Files(), path / "cleaner-offset-checkpoint")


async def test_a_cleaned_log_moves_with_its_checkpoint_and_is_deleted_with_it(
    broker: Broker,
) -> None:
    log = broker.log_manager.get("t", 0)
    fill(log)
    broker.maintenance.cleaner.start()
    here = broker.log_manager.directory_of(log)
    [there] = [one for one in broker.log_manager.directories if one is not here]
    await until(lambda: checkpoint(here.path) == {("t", 0): 300})
    broker.maintenance.mover.alter("t", 0, str(there.path))
    await until(lambda: checkpoint(there.path) == {("t", 0): 300})
    assert checkpoint(here.path) == {}
    assert left_in(log) == newest()
    await broker.admin.topics.delete([TopicRef("t")])
    assert checkpoint(there.path) == {}


async def test_a_move_calls_off_the_round_and_ends_before_the_next(broker: Broker) -> None:
    log = broker.log_manager.get("t", 0)
    fill(log)
    here = broker.log_manager.directory_of(log)
    [there] = [one for one in broker.log_manager.directories if one is not here]
    broker.maintenance.cleaner.start()
    await until(lambda: broker.maintenance.cleaner.status().cleaning)
    broker.maintenance.mover.alter("t", 0, str(there.path))
    await until(lambda: broker.log_manager.directory_of(log) is there)
    assert checkpoint(here.path) == {}
    await until(lambda: checkpoint(there.path) == {("t", 0): 300})
    assert left_in(log) == newest()


async def test_the_check_by_the_clock_leaves_compacted_logs_alone(broker: Broker) -> None:
    [retention] = [task for task in periodic_tasks_of(broker) if task.name == "retention"]
    log = broker.log_manager.get("t", 0)
    fill(log)
    log.increment_log_start_offset(250)
    await retention.run()  # type: ignore[misc] # a coroutine function
    assert log.segments[0].base_offset == 0
    log.update_config(log.config.replace(cleanup_policy=("delete",)))
    await retention.run()  # type: ignore[misc] # a coroutine function
    assert log.segments[0].base_offset > 0
