"""What clients push is written to a topic, whatever state that is in."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from odradek.broker.broker import Broker
from odradek.broker.telemetry.instances import ClientInstance
from odradek.config.broker_config import BrokerConfig
from odradek.config.errors import ConfigError
from odradek.coordinator.metadata.topic_creation import NewTopic
from odradek.coordinator.metadata.topic_deletion import TopicRef
from odradek.protocol.compression import CompressionType
from odradek.protocol.errors import ApiError
from odradek.protocol.messages.push_telemetry import PushTelemetryRequest
from odradek.protocol.primitives import ZERO_UUID
from odradek.storage.log_reader import LogReader
from tests.support.otlp import gauge, metrics_data
from tests.support.partition_logs import UnsyncedFiles
from tests.support.telemetry import new_session

PUSHED = metrics_data(gauge("org.apache.kafka.producer.a", 1.0))
LARGE = metrics_data(*[gauge("org.apache.kafka.producer.a", 1.0)] * 2_000)
TOPIC = "pushed"


class Rig:
    """A broker, and a client that pushes to it for the last time, each time."""

    def __init__(self, broker: Broker) -> None:
        self.broker = broker
        self._session = new_session()

    async def push(self, content: bytes = PUSHED) -> ClientInstance:
        """Return the client, a new one."""
        instance = self.broker.telemetry.subscribe(ZERO_UUID, self._session, "till")
        request = PushTelemetryRequest(
            client_instance_id=instance.id,
            subscription_id=instance.subscription_id,
            terminating=True,
            compression_type=CompressionType.NONE,
            metrics=content,
        )
        taken = self.broker.telemetry.push(request, self._session, "till")
        assert taken is not None
        await taken
        return instance

    @property
    def ends(self) -> list[int]:
        """The end offset of each partition of the topic."""
        partitions = self.broker.metadata.topics[TOPIC].partitions
        return [self.broker.log_manager.get(TOPIC, each).log_end_offset for each in partitions]

    @property
    def dropped_count(self) -> int:
        """How many pushes were dropped."""
        assert self.broker.telemetry.records is not None
        return self.broker.telemetry.records.dropped_count


@asynccontextmanager
async def rig_in(directory: Path, settings: Mapping[str, str]) -> AsyncIterator[Rig]:
    texts = {"log.dirs": str(directory), "listeners": "PLAINTEXT://localhost:9092"}
    config = BrokerConfig.from_texts({**texts, "odradek.telemetry.topic": TOPIC, **settings})
    loop = asyncio.get_running_loop()
    broker = Broker(config, loop, {"PLAINTEXT": 1}, files=UnsyncedFiles())
    yield Rig(broker)
    await broker.close()


@pytest.fixture
async def rig(tmp_path: Path) -> AsyncIterator[Rig]:
    async with rig_in(tmp_path, {}) as rig:
        yield rig


async def test_clients_that_push_first_at_the_same_time_find_the_topic(rig: Rig) -> None:
    await asyncio.gather(*(rig.push() for _ in range(5)))
    assert (sum(rig.ends), rig.dropped_count) == (5, 0)


async def test_clients_are_spread_over_the_partitions(rig: Rig) -> None:
    await rig.broker.admin.topics.create([NewTopic(name=TOPIC, partition_count=3)])
    for _ in range(40):
        await rig.push()
    assert sum(rig.ends) == 40
    assert min(rig.ends) > 0


async def test_a_push_that_the_topic_refuses_is_dropped(
    rig: Rig, caplog: pytest.LogCaptureFixture
) -> None:
    new = NewTopic(name=TOPIC, partition_count=1, configs={"max.message.bytes": "10000"})
    await rig.broker.admin.topics.create([new])
    for content in (LARGE, LARGE, PUSHED, LARGE):
        await rig.push(content)
    assert (rig.ends, rig.dropped_count) == ([1], 3)
    lines = [each for each in caplog.messages if "are not written to the topic pushed" in each]
    assert len(lines) == 2, "when it begins to fail"


async def test_the_settings_of_the_topic_apply_to_pushes(rig: Rig) -> None:
    settings = {
        "message.timestamp.type": "LogAppendTime",
        "compression.type": "gzip",
        "flush.messages": "1",
    }
    new = NewTopic(name=TOPIC, partition_count=1, configs=settings)
    await rig.broker.admin.topics.create([new])
    await rig.push()
    log = rig.broker.log_manager.get(TOPIC, 0)
    assert log.recovery_point == 1, "the push is answered after the fsync"
    (batch,) = LogReader(log.directory).batches()
    assert batch.header.is_log_append_time
    assert batch.header.compression is CompressionType.GZIP
    assert [record.value for record in batch.records()] == [PUSHED]


async def test_a_full_disk_takes_no_pushes(rig: Rig) -> None:
    await rig.push()
    for directory in rig.broker.log_manager.data_directories:
        rig.broker.disk_space.low[directory] = "it is full"
    await rig.push()
    assert (rig.ends, rig.dropped_count) == ([1], 1)


async def test_a_topic_that_was_deleted_is_created_again(rig: Rig, tmp_path: Path) -> None:
    for _ in range(2):
        await rig.push()
        (topic,) = [each for each in rig.broker.metadata.topics.values() if each.name == TOPIC]
        await rig.broker.admin.topics.delete([TopicRef(topic.name)])
    await rig.push()
    assert rig.ends == [1]


async def test_a_topic_that_is_deleted_as_soon_as_it_is_created_is_an_error_in_the_log(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def create_automatically(_: object) -> dict[str, ApiError]:
        return {}

    monkeypatch.setattr(rig.broker.admin.topics, "create_automatically", create_automatically)
    await rig.push()
    assert rig.dropped_count == 1


@pytest.mark.parametrize("name", ["__consumer_offsets", "a/b", "."])
async def test_a_topic_that_is_not_for_clients_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(ConfigError, match=r"odradek\.telemetry\.topic"):
        async with rig_in(tmp_path, {"odradek.telemetry.topic": name}):
            pass
