"""Finds and creates the topics of dead-letter queues, and checks that they may be used as such.

All of it is checked at each write, because it may change at any time. A new topic has the broker's
defaults, and allows that it is a queue. Its records keep the time at which they were written.

Kafka: ShareGroupDLQStateManager.validateDlqTopic, createTopicBuilder.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import NamedTuple

from odradek.config.topic_config import TopicConfig
from odradek.coordinator.metadata.topic_creation import CreatedTopic, NewTopic
from odradek.coordinator.metadata.topics import Topics
from odradek.coordinator.share_groups.group_configs import ShareGroupConfigs
from odradek.protocol.errors import ApiError, ErrorCode

MAY_BE_QUEUE = "errors.deadletterqueue.group.enable"
CONFIGS_OF_NEW = {MAY_BE_QUEUE: "true", "message.timestamp.type": "CreateTime"}

Create = Callable[[Sequence[NewTopic]], Awaitable[Mapping[str, CreatedTopic | ApiError]]]


class QueueTopic(NamedTuple):
    """The topic of a queue."""

    name: str
    partition_count: int
    max_message_bytes: int


class QueueTopics:
    """The topics of all groups' queues."""

    def __init__(
        self,
        configs: ShareGroupConfigs,
        topics: Topics,
        topic_config: Callable[[str], TopicConfig],
        create: Create,
    ) -> None:
        """`create` creates topics, and returns the results by name."""
        self._configs = configs
        self._topics = topics
        self._topic_config = topic_config
        self._create = create

    async def find(self, group_id: str) -> QueueTopic:
        """Return the topic of a group's queue. It is created if it may be.

        Raises ApiError: INVALID_CONFIG if it must not be used, UNKNOWN_TOPIC_OR_PARTITION if it is
        deleted meanwhile, and what creating it raises.
        """
        name = self._configs.dead_letter_queue(group_id)
        self._check(name)
        if name not in self._topics:
            for result in (
                await self._create([NewTopic(name=name, configs=CONFIGS_OF_NEW)])
            ).values():
                exists = ErrorCode.TOPIC_ALREADY_EXISTS
                if isinstance(result, ApiError) and result.code is not exists:
                    raise result
            self._check(name)  # another client may have created it
            if name not in self._topics:
                raise ApiError(
                    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"the topic {name} was deleted at once"
                )
        config = self._topic_config(name)
        return QueueTopic(name, len(self._topics[name].partitions), config.max_message_bytes)

    def _check(self, name: str) -> None:
        broker = self._configs.broker
        if not name:
            raise _invalid_config("the group has none any more")
        if name.startswith("__"):
            raise _invalid_config(f"the name {name} begins with __")
        if name in self._topics:
            if not self._topic_config(name).errors_deadletterqueue_group_enable:
                raise _invalid_config(f"the topic {name} does not have {MAY_BE_QUEUE}=true")
        elif not broker.creates_queues:
            raise _invalid_config(
                f"the topic {name} does not exist; create it, or set "
                "errors.deadletterqueue.auto.create.topics.enable=true on the broker"
            )
        if not name.startswith(broker.queue_prefix):
            raise _invalid_config(
                f"the name {name} does not begin with {broker.queue_prefix}, the broker's "
                "errors.deadletterqueue.topic.name.prefix"
            )


def _invalid_config(reason: str) -> ApiError:
    return ApiError(ErrorCode.INVALID_CONFIG, reason)
