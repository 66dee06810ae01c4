"""The log cleaner among the other parts of a broker: deletions, moves, retention, settings."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from odradek.broker.broker import Broker
from odradek.broker.cluster.cluster import Cluster
from odradek.broker.periodic_tasks import periodic_tasks_of
from odradek.broker.processes.child_process import CleanerWorker
from odradek.broker.processes.messages import FromCleaner
from odradek.config.broker_config import BrokerConfig
from odradek.coordinator.metadata.topic_creation import NewTopic
from odradek.coordinator.metadata.topic_deletion import TopicRef
from odradek.storage.checkpoints import read_offsets
from odradek.storage.cleaning.task import CleanedGroup
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


async def test_a_truncation_ends_the_round_and_makes_what_comes_after_it_dirty(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = broker.log_manager.get("t", 0)
    log.update_config(log.config.replace(unclean_leader_election_enable=True))
    cluster = Cluster(broker, dict.fromkeys((1, 2, 3)), 3, lambda: None)
    fill(log, rounds=1)
    cluster.shrink_isr("t", 0, [])
    fill(log, rounds=2)
    receive = CleanerWorker.receive

    async def lost_then_received(worker: CleanerWorker, timeout_seconds: float) -> FromCleaner:
        message = await receive(worker, timeout_seconds)
        if isinstance(message, CleanedGroup):
            monkeypatch.undo()
            cluster.node_lost(cluster.leader("t", 0))
        return message

    monkeypatch.setattr(CleanerWorker, "receive", lost_then_received)
    cleaner = broker.maintenance.cleaner
    cleaner.start()
    await until(lambda: log.log_end_offset == 100 and not cleaner.status().cleaning)
    assert left_in(log) == newest(rounds=1)
    fill(log, rounds=2)
    home = broker.log_manager.directory_of(log).path
    await until(lambda: checkpoint(home) == {("t", 0): 300})
    assert left_in(log) == newest()
    broker.maintenance.truncate(log, 250, broker.clock.now_ms())
    await until(lambda: checkpoint(home) == {("t", 0): 250})


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
