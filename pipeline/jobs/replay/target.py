"""Creates the target topics, or checks those that exist."""

import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from typing import Any, TypeVar

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import (
    AdminClient,
    ConfigResource,
    NewTopic,
    ResourceType,
)

from odradek.pipeline.jobs import JobError

Answer = TypeVar("Answer")
_TIMEOUT_S = 30.0
# Archived records are old: with the default retention, the broker would delete them at once.
_NEW_TOPIC: Mapping[str, str] = {"message.timestamp.type": "CreateTime", "retention.ms": "-1"}


class Targets:
    """The topics of a broker. Methods raise JobError if it refuses or does not answer."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        try:
            self._admin = AdminClient({"log_level": 3, **config})
        except KafkaException as error:
            raise JobError(f"the client cannot be made: {error.args[0].str()}") from error

    def partitions(self) -> dict[str, int]:
        """Return the number of partitions of each topic."""
        try:
            topics = self._admin.list_topics(timeout=_TIMEOUT_S).topics
        except KafkaException as error:
            raise JobError(f"the broker does not answer: {error.args[0].str()}") from error
        return {name: len(topic.partitions) for name, topic in topics.items()}

    def create(self, topic: str, partitions: int, settings: Mapping[str, str]) -> None:
        """Create a topic that does not delete old records, and wait until it is visible."""
        config = {**_NEW_TOPIC, **settings}
        new = NewTopic(topic, partitions, -1, config=config)
        try:
            self._answer(self._admin.create_topics([new])[topic])
        except KafkaException as error:
            if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                raise JobError(f"cannot create {topic}: {error.args[0].str()}") from error
        deadline = time.monotonic() + _TIMEOUT_S
        while self.partitions().get(topic, 0) < partitions:
            if time.monotonic() > deadline:
                raise JobError(f"the broker created {topic} and does not list it")
            time.sleep(0.1)

    def warnings(self, topics: Sequence[str], oldest_ms: int, now_ms: int) -> list[str]:
        """Return warnings about configurations that would change or delete replayed records."""
        resources = [ConfigResource(ResourceType.TOPIC, topic) for topic in topics]
        found: list[str] = []
        try:
            for resource, future in self._admin.describe_configs(resources).items():
                settings = {name: entry.value for name, entry in self._answer(future).items()}
                found += _warnings(str(resource.name), settings, oldest_ms, now_ms)
        except KafkaException as error:
            found.append(f"cannot read the topics' configurations: {error.args[0].str()}")
        return found

    @staticmethod
    def _answer(future: "Future[Answer]") -> Answer:
        return future.result(_TIMEOUT_S)


def _warnings(
    topic: str, settings: Mapping[str, str | None], oldest_ms: int, now_ms: int
) -> list[str]:
    found: list[str] = []
    if settings.get("message.timestamp.type") == "LogAppendTime":
        found.append(f"{topic} has message.timestamp.type=LogAppendTime: timestamps are not kept")
    retention_ms = int(settings.get("retention.ms") or -1)
    deletes = "delete" in (settings.get("cleanup.policy") or "delete")
    if deletes and 0 <= retention_ms < now_ms - oldest_ms:
        found.append(
            f"{topic} has retention.ms={retention_ms}: it will delete the oldest of the replayed "
            "records"
        )
    return found
