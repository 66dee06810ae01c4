"""Creates the topics of odradek.create.topics that are missing, before a start is reported.

A topic that cannot be created is an error in the log, and the broker serves without it: so does
wurstmeister/kafka, whose KAFKA_CREATE_TOPICS has the same form.
"""

import logging

from odradek.broker.broker import Broker
from odradek.coordinator.metadata.topic_creation import DEFAULT, NewTopic
from odradek.protocol.errors import ApiError, ErrorCode

logger = logging.getLogger("odradek")


async def create_topics_at_start(broker: Broker) -> None:
    """Create the topics. What fails is logged. The first entry of a name counts."""
    new: dict[str, NewTopic] = {}
    for entry in broker.config.odradek_create_topics:
        topic = _topic(entry, broker.config.odradek_nodes)
        new.setdefault(topic.name, topic)
    wanted = [topic for topic in new.values() if topic.name not in broker.metadata.topics]
    if not wanted:
        return
    try:
        results = await broker.admin.topics.create(wanted)
    except ApiError as error:  # too many for one operation
        logger.error("odradek.create.topics: no topic was created: %s", error.message)
        return
    for name, result in results.items():
        exists = ErrorCode.TOPIC_ALREADY_EXISTS
        if isinstance(result, ApiError) and result.code is not exists:
            logger.error("odradek.create.topics: %s was not created: %s", name, result.message)


def _topic(entry: str, nodes: int) -> NewTopic:
    """The topic of an entry, with at most as many replicas as there are nodes."""
    name, partitions, replicas, policy, *_ = [*map(str.strip, entry.split(":")), "", "", ""]
    return NewTopic(
        name=name,
        partition_count=int(partitions) if partitions else DEFAULT,
        replication_factor=min(int(replicas), nodes) if replicas else DEFAULT,
        configs={"cleanup.policy": policy} if policy else {},
    )
