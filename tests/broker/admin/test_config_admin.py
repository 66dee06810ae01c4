"""Settings changed while the broker runs: they take effect at once, and again after a restart."""

import asyncio
import logging
from collections.abc import AsyncIterator, Iterator
from functools import partial
from pathlib import Path

import pytest

from odradek.broker.admin.log_levels import levels
from odradek.broker.broker import Broker
from odradek.config.broker_config import BrokerConfig
from odradek.config.topic_config import TopicConfig
from odradek.coordinator.metadata.config_changes import (
    Alteration,
    AlterOperation,
    ConfigChange,
    ConfigResource,
)
from odradek.coordinator.metadata.configs import ConfigResourceType
from odradek.coordinator.metadata.record_limit import MAX_RECORDS
from odradek.coordinator.metadata.topic_creation import NewTopic
from odradek.coordinator.runtime.outcome import JournalRecord, Outcome
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.protocol.records.cluster_metadata import ConfigRecord

TOPIC = ConfigResource(ConfigResourceType.TOPIC, "t")
OURS = ConfigResource(ConfigResourceType.BROKER, "0")
ALL = ConfigResource(ConfigResourceType.BROKER, "")
LOGGERS = ConfigResource(ConfigResourceType.BROKER_LOGGER, "0")
SET, DELETE, APPEND, SUBTRACT = AlterOperation


class Rig:
    """A broker without listeners, on a directory that outlives it."""

    def __init__(self, directory: Path, **texts: str) -> None:
        settings = {"log.dirs": str(directory), "listeners": "PLAINTEXT://localhost:0"}
        settings |= {name.replace("_", "."): text for name, text in texts.items()}
        self.config = BrokerConfig.from_texts(settings)
        self.broker = self._open()

    def _open(self) -> Broker:
        return Broker(self.config, asyncio.get_running_loop(), {"PLAINTEXT": 9092})

    async def restart(self) -> None:
        await self.broker.close()
        self.broker = self._open()

    async def alter(
        self, resource: ConfigResource, *changes: tuple[str, int, str | None], **options: bool
    ) -> ApiError | None:
        alteration = Alteration(
            resource=resource,
            changes=[ConfigChange(*change) for change in changes],
            replaces=options.get("replaces", False),
        )
        validate_only = options.get("validate_only", False)
        [error] = await self.broker.admin.configs.alter(
            [alteration], check_authorized=lambda *_: None, validate_only=validate_only
        )
        return error

    def topic(self, name: str = "t") -> TopicConfig:
        return self.broker.log_manager.get(name, 0).config


@pytest.fixture
async def rig(tmp_path: Path) -> AsyncIterator[Rig]:
    rig = Rig(tmp_path, log_retention_ms="1000")
    await rig.broker.admin.topics.create([NewTopic(name="t", partition_count=1)])
    yield rig
    await rig.broker.close()


async def test_a_topics_override_reaches_its_logs_at_once(rig: Rig) -> None:
    assert (
        await rig.alter(TOPIC, ("retention.ms", SET, "5"), ("segment.bytes", SET, "2000000"))
        is None
    )
    assert (rig.topic().retention_ms, rig.topic().segment_bytes) == (5, 2_000_000)
    await rig.alter(TOPIC, ("retention.ms", DELETE, None))
    assert rig.topic().retention_ms == 1000
    await rig.restart()
    assert (rig.topic().retention_ms, rig.topic().segment_bytes) == (1000, 2_000_000)


async def test_a_brokers_setting_reaches_the_logs_that_do_not_override_it(rig: Rig) -> None:
    await rig.broker.admin.topics.create([NewTopic(name="own", configs={"retention.ms": "7"})])
    await rig.alter(ALL, ("log.retention.ms", SET, "5"), ("message.max.bytes", SET, "77"))
    await rig.alter(OURS, ("log.retention.ms", SET, "6"))
    assert (rig.topic().retention_ms, rig.topic("own").retention_ms) == (6, 7)
    assert rig.topic("own").max_message_bytes == 77
    await rig.broker.admin.topics.create([NewTopic(name="later")])
    assert (rig.topic("later").retention_ms, rig.topic("later").max_message_bytes) == (6, 77)
    await rig.restart()
    assert (rig.topic().retention_ms, rig.topic("own").retention_ms) == (6, 7)
    await rig.alter(OURS, ("log.retention.ms", DELETE, None))
    assert rig.topic().retention_ms == 5
    assert await rig.alter(ALL, ("min.insync.replicas", SET, "1"), replaces=True) is None
    assert (rig.topic().retention_ms, rig.topic().max_message_bytes) == (1000, 1_048_588)


async def test_listeners_are_called_with_the_new_configuration(rig: Rig) -> None:
    received = []
    rig.broker.effective_config.on_change.append(
        lambda config: received.append(config.max_connections)
    )
    await rig.alter(ALL, ("max.connections", SET, "5"))
    await rig.alter(ALL, ("max.connections", SET, "5"))
    await rig.alter(OURS, ("max.connections", SET, "6"), validate_only=True)
    await rig.alter(OURS, ("max.connections", SET, "7"))
    assert received == [5, 7]
    assert rig.broker.config.max_connections == 7


async def test_producers_expire_by_the_setting_in_force(rig: Rig) -> None:
    await rig.alter(ALL, ("producer.id.expiration.ms", SET, "9"))
    assert rig.broker.log_manager.get("t", 0).producers.expiration_ms == 9
    await rig.restart()
    assert rig.broker.log_manager.get("t", 0).producers.expiration_ms == 9


async def test_a_setting_that_cannot_be_changed_is_refused_and_not_written(rig: Rig) -> None:
    before = rig.broker.metadata.last_offset
    for name, value in (("log.dirs", "/x"), ("log.retention.ms", "soon"), ("num.io.threads", "99")):
        error = await rig.alter(OURS, (name, SET, value))
        assert error is not None
        assert error.code is ErrorCode.INVALID_REQUEST
        assert name in error.message
    for name in ("1", "x", "", "0_0"):
        error = await rig.alter(OURS._replace(name=name or " "), ("log.retention.ms", SET, "5"))
        assert error is not None
        assert error.code is ErrorCode.INVALID_REQUEST
    assert rig.broker.metadata.last_offset == before


async def test_resources_named_twice_are_refused_and_the_others_changed(rig: Rig) -> None:
    twice = Alteration(resource=TOPIC, changes=[ConfigChange("retention.ms", SET, "5")])
    once = Alteration(resource=ALL, changes=[ConfigChange("log.retention.ms", SET, "6")])
    results = await rig.broker.admin.configs.alter(
        [twice, once, twice], check_authorized=lambda *_: None, validate_only=False
    )
    codes = [error and error.code for error in results]
    assert codes == [ErrorCode.INVALID_REQUEST, None, ErrorCode.INVALID_REQUEST]
    assert rig.topic().retention_ms == 6


async def test_keys_named_twice_and_nulls_are_refused(rig: Rig) -> None:
    for changes in (
        [("retention.ms", SET, "1"), ("retention.ms", DELETE, None)],
        [("retention.ms", SET, None)],
        [("cleanup.policy", APPEND, None)],
    ):
        error = await rig.alter(TOPIC, *changes)
        assert error is not None
        assert error.code is ErrorCode.INVALID_REQUEST


async def test_too_many_keys_of_a_broker_are_refused(rig: Rig) -> None:
    changes = [(f"made.up.{number}", SET, "1") for number in range(MAX_RECORDS + 1)]
    error = await rig.alter(ALL, *changes)
    assert error is not None
    assert error.code is ErrorCode.POLICY_VIOLATION


async def test_keys_of_a_broker_are_checked_and_applied_in_steps(rig: Rig) -> None:
    """Unknown keys, and those of unknown listeners, may be set: there may be any number of them."""
    effective, count = rig.broker.effective_config, 300
    settings = {f"made.up.{number}": "1" for number in range(count)}
    settings |= {f"listener.name.x{number}.max.connections": "1" for number in range(count)}
    steps: list[object] = []
    step = partial(steps.append, None)
    effective.check("", settings, effective.layers, step)
    assert len(steps) >= 4 * len(settings)
    write(rig.broker, "", settings)
    steps.clear()
    effective.refresh(step)
    assert len(steps) >= 3 * len(settings)
    assert settings.items() <= dict(effective.layers[1][1]).items()
    assert effective.current.dynamic.keys().isdisjoint(settings)


MAX_LAG, MIN_LAG = (f"log.cleaner.{bound}.compaction.lag.ms" for bound in ("max", "min"))


@pytest.mark.parametrize("in_one_request", [True, False])
async def test_settings_that_contradict_others_made_at_the_same_time_are_refused(
    rig: Rig, in_one_request: bool
) -> None:
    alterations = [
        Alteration(resource=OURS, changes=[ConfigChange(MAX_LAG, SET, "5")]),
        Alteration(resource=ALL, changes=[ConfigChange(MIN_LAG, SET, "6")]),
    ]
    requests = [alterations] if in_one_request else [[each] for each in alterations]
    results = await asyncio.gather(
        *(
            rig.broker.admin.configs.alter(
                request, check_authorized=lambda *_: None, validate_only=False
            )
            for request in requests
        )
    )
    codes = [error and error.code for result in results for error in result]
    assert codes == [None, ErrorCode.INVALID_REQUEST]
    assert rig.broker.config.log_cleaner_max_compaction_lag_ms == 5


async def test_settings_are_checked_only_for_clients_that_may_alter_them(rig: Rig) -> None:
    def refuse(*_: object) -> None:
        raise ApiError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "")

    alteration = Alteration(resource=ALL, changes=[ConfigChange("log.dirs", SET, "/x")])
    [error] = await rig.broker.admin.configs.alter(
        [alteration], check_authorized=refuse, validate_only=True
    )
    assert error is not None
    assert error.code is ErrorCode.CLUSTER_AUTHORIZATION_FAILED


def write(broker: Broker, name: str, settings: dict[str, str]) -> None:
    """Settings as another version of Kafka may have left them in the log."""
    records = [
        JournalRecord(ConfigRecord(resource_type=4, resource_name=name, name=key, value=value))
        for key, value in settings.items()
    ]
    broker.controller._journal.commit(Outcome(reply=None, records=tuple(records)), 0)


async def test_a_broker_starts_on_settings_that_it_cannot_apply(
    rig: Rig, caplog: pytest.LogCaptureFixture
) -> None:
    write(rig.broker, "", {"log.dirs": "/x", "log.retention.ms": "soon", "message.max.bytes": "77"})
    write(rig.broker, "0", {"num.partitions": "9", "listeners": "PLAINTEXT://localhost:1"})
    await rig.restart()
    assert rig.broker.config.log_retention_ms == 1000
    assert rig.topic().max_message_bytes == 77
    assert rig.broker.config.listeners == ("PLAINTEXT://localhost:0",)
    for name in ("log.dirs", "log.retention.ms", "num.partitions", "listeners"):
        assert any(name in message for message in caplog.messages), name
    assert await rig.alter(ALL, ("log.retention.bytes", SET, "5")) is None
    assert rig.topic().retention_bytes == 5


@pytest.mark.parametrize(
    "unfit",
    [
        {"cordoned.log.dirs": "/was/removed"},
        {"cordoned.log.dirs": "/was/removed", "max.connections.per.ip.overrides": "a b:3"},
        {"log.cleaner.dedupe.buffer.size": "1000", MAX_LAG: "5", MIN_LAG: "6"},
    ],
)
async def test_stored_settings_that_do_not_fit_the_file_leave_the_others_in_force(
    rig: Rig, caplog: pytest.LogCaptureFixture, unfit: dict[str, str]
) -> None:
    write(rig.broker, "", {"log.retention.ms": "-1"})
    write(rig.broker, "0", {**unfit, "log.retention.bytes": "9"})
    await rig.restart()
    assert (rig.topic().retention_ms, rig.topic().retention_bytes) == (-1, 9)
    refused = [text for text in caplog.messages if "is not applied" in text]
    assert refused
    applied = rig.broker.effective_config.layers
    assert not set(unfit) <= set(applied[0][1])
    assert await rig.alter(ALL, ("log.retention.ms", SET, "5")) is None
    assert rig.topic().retention_ms == 5
    await rig.alter(OURS, *((name, DELETE, None) for name in unfit))
    assert rig.broker.effective_config.layers[0][1] == {"log.retention.bytes": "9"}


async def test_a_start_names_the_settings_that_differ_from_the_file(
    rig: Rig, caplog: pytest.LogCaptureFixture
) -> None:
    assert rig.broker.effective_config.layers[1][1] == {"min.insync.replicas": "1"}
    await rig.alter(ALL, ("log.retention.ms", SET, "5"))
    caplog.clear()
    caplog.set_level(logging.INFO, "odradek.config")
    await rig.restart()
    lines = [one.getMessage() for one in caplog.records if one.name == "odradek.config"]
    assert lines == ["log.retention.ms is now 5"]


async def test_settings_of_a_group_reach_it_at_once_and_after_a_restart(
    rig: Rig, caplog: pytest.LogCaptureFixture
) -> None:
    def session_and_interval() -> tuple[int, int]:
        configs = rig.broker.coordinators.group_configs.consumer
        return configs.session_timeout_ms("g"), configs.assignment_interval_ms("g")

    group = ConfigResource(ConfigResourceType.GROUP, "g")
    await rig.alter(ALL, ("group.consumer.assignment.interval.ms", SET, "7"))
    await rig.alter(group, ("consumer.session.timeout.ms", SET, "60000"))
    assert session_and_interval() == (60_000, 7)
    await rig.restart()
    assert session_and_interval() == (60_000, 7)
    bound = {"group.consumer.max.session.timeout.ms": "50000"}
    rig.config = BrokerConfig.from_texts({**rig.config.texts, **bound})
    await rig.restart()
    assert session_and_interval() == (50_000, 7)
    assert "group g: consumer.session.timeout.ms=60000 is not within" in caplog.text


async def test_a_setting_outside_a_bound_of_the_file_is_replaced_by_the_bound(
    rig: Rig, caplog: pytest.LogCaptureFixture
) -> None:
    interval = "group.consumer.assignment.interval.ms"
    await rig.alter(ALL, (interval, SET, "9000"))
    assert rig.broker.config.group_consumer_assignment_interval_ms == 9_000
    bound = {"group.consumer.max.assignment.interval.ms": "8000"}
    rig.config = BrokerConfig.from_texts({**rig.config.texts, **bound})
    await rig.restart()
    assert rig.broker.config.group_consumer_assignment_interval_ms == 8_000
    assert f"{interval} is outside the bounds that the file sets; 8000 is used" in caplog.messages
    assert await rig.alter(ALL, ("message.max.bytes", SET, "77")) is None
    error = await rig.alter(ALL, (interval, SET, "8001"))
    assert error is not None
    assert error.code is ErrorCode.INVALID_REQUEST


async def test_of_settings_that_contradict_each_other_one_is_applied(
    rig: Rig, caplog: pytest.LogCaptureFixture
) -> None:
    write(rig.broker, "", {"log.cleaner.max.compaction.lag.ms": "5"})
    write(rig.broker, "0", {"log.cleaner.min.compaction.lag.ms": "6"})
    await rig.restart()
    config = rig.broker.config
    lags = (config.log_cleaner_min_compaction_lag_ms, config.log_cleaner_max_compaction_lag_ms)
    assert (lags[0] == 6) != (lags[1] == 5)
    assert "conflict topic config setting" in caplog.text


@pytest.fixture
def same_levels() -> Iterator[None]:
    """Loggers belong to the whole process: put their levels back."""
    loggers = [logging.getLogger(name) for name in ("odradek", "odradek.topics")]
    before = [logger.level for logger in loggers]
    yield
    for logger, level in zip(loggers, before, strict=True):
        logger.setLevel(level)


@pytest.mark.usefixtures("same_levels")
async def test_levels_of_loggers_are_changed_and_not_stored(rig: Rig) -> None:
    before = rig.broker.metadata.last_offset
    assert (
        await rig.alter(LOGGERS, ("root", SET, "ERROR"), ("odradek.topics", SET, "TRACE")) is None
    )
    assert (levels()["root"], levels()["odradek"], levels()["odradek.topics"]) == (
        "ERROR",
        "ERROR",
        "TRACE",
    )
    assert await rig.alter(LOGGERS, ("odradek.topics", DELETE, None)) is None
    assert levels()["odradek.topics"] == "ERROR"
    await rig.alter(LOGGERS, ("root", SET, "FATAL"), validate_only=True)
    assert levels()["root"] == "ERROR"
    assert rig.broker.metadata.last_offset == before


@pytest.mark.usefixtures("same_levels")
async def test_all_nodes_of_a_played_cluster_have_the_loggers_and_settings_of_the_first(
    tmp_path: Path,
) -> None:
    rig = Rig(tmp_path, odradek_nodes="3")
    last = ConfigResource(ConfigResourceType.BROKER_LOGGER, "2")
    assert await rig.alter(last, ("odradek.topics", SET, "TRACE")) is None
    assert levels()["odradek.topics"] == "TRACE"
    for name, text in (
        ("2", "has the settings of node 0"),
        ("3", "Unexpected broker id, expected 0"),
    ):
        broker = ConfigResource(ConfigResourceType.BROKER, name)
        error = await rig.alter(broker, ("log.cleaner.threads", SET, "2"))
        assert error is not None
        assert text in str(error)
    await rig.broker.close()


@pytest.mark.usefixtures("same_levels")
@pytest.mark.parametrize(
    ("change", "code"),
    [
        (("root", SET, "LOUD"), ErrorCode.INVALID_CONFIG),
        (("root", SET, "warning"), ErrorCode.INVALID_CONFIG),
        (("asyncio", SET, "INFO"), ErrorCode.INVALID_CONFIG),
        (("root", DELETE, None), ErrorCode.INVALID_REQUEST),
        (("odradek", DELETE, None), ErrorCode.INVALID_REQUEST),
        (("root", APPEND, "INFO"), ErrorCode.INVALID_REQUEST),
        (("root", 9, "INFO"), ErrorCode.INVALID_REQUEST),
    ],
)
async def test_levels_that_no_logger_has_are_refused(
    rig: Rig, change: tuple[str, int, str | None], code: ErrorCode
) -> None:
    error = await rig.alter(LOGGERS, change)
    assert error is not None
    assert error.code is code
