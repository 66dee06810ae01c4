"""Writes what clients push to the topic `odradek.telemetry.topic`, one record for each push.

    key       the client instance id, as Kafka prints UUIDs
    value     the OTLP bytes, decompressed: an OpenTelemetry collector reads them as `otlp_proto`
    headers   what the broker knows of the client, by name (client_id, client_software_name, ...)

All pushes of a client go to one partition. If the topic is missing, it is created with the broker's
defaults. A push that cannot be written is dropped, and the log says so when that begins; the client
gets no error, because it would never push again (Kafka's clients take any error of the receiver for
final).
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial

from odradek.broker.admin.topic_admin import TopicAdmin
from odradek.broker.disk.disk_executor import DiskExecutor
from odradek.broker.maintenance.own_appends import OwnAppends
from odradek.config.errors import invalid_value
from odradek.coordinator.java.java_hash import partition_of
from odradek.coordinator.metadata.topics import Topics
from odradek.protocol.compression import CompressionType
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.protocol.primitives import uuid_text
from odradek.protocol.record import Record
from odradek.protocol.record_batch import build_batch
from odradek.storage.topic_names import is_internal, why_illegal

from .instances import ClientInstance

logger = logging.getLogger("odradek.telemetry")

KEY = "odradek.telemetry.topic"
# Larger records are built in a thread: compressing them takes longer than a millisecond.
SMALL_BYTES = 64 * 1024


def check_topic(name: str) -> None:
    """Raise ConfigError unless clients' metrics may be written to a topic of this name."""
    reason = why_illegal(name) or ("is internal" if is_internal(name) else None)
    if reason is not None:
        raise invalid_value(KEY, name, f"must be a topic for records of clients: {reason}")


class PushedRecords:
    """Appends records to one topic."""

    def __init__(
        self,
        topic: str,
        *,
        topics: Topics,
        topic_admin: TopicAdmin,
        appends: OwnAppends,
        disk: DiskExecutor,
        now_ms: Callable[[], int],
    ) -> None:
        """`topic` was checked (`check_topic`). `now_ms` is the wall clock."""
        self.dropped_count = 0
        self._topic = topic
        self._topics = topics
        self._topic_admin = topic_admin
        self._appends = appends
        self._disk = disk
        self._now_ms = now_ms
        self._is_failing = False

    async def write(
        self, instance: ClientInstance, content: bytes, compression: CompressionType
    ) -> None:
        """Append a push of a client, compressed as it was sent, unless the topic has a codec."""
        try:
            build = partial(build_batch, [self._record(instance, content)], compression=compression)
            is_small = len(content) <= SMALL_BYTES
            batch = build() if is_small else await self._disk.run(build)
            partition = await self._partition_of(uuid_text(instance.id))
            await self._appends.append(self._topic, partition, batch)
            self._is_failing = False
        except ApiError as error:
            self._dropped(error)

    def _record(self, instance: ClientInstance, content: bytes) -> Record:
        headers = tuple(
            (name, value.encode())
            for name, value in instance.attributes.items()
            if value is not None
        )
        return Record(uuid_text(instance.id).encode(), content, self._now_ms(), headers)

    async def _partition_of(self, key: str) -> int:
        """The partition for a key. Raises ApiError."""
        if self._topic not in self._topics:
            for error in (await self._topic_admin.create_automatically([self._topic])).values():
                raise error
        topic = self._topics.get(self._topic)
        if topic is None:  # it was deleted at once
            raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "the topic was deleted")
        return partition_of(key, len(topic.partitions))

    def _dropped(self, error: ApiError) -> None:
        self.dropped_count += 1
        if not self._is_failing:
            logger.error(
                "metrics that clients push are not written to the topic %s: %s",
                self._topic,
                error.message,
            )
        self._is_failing = True
