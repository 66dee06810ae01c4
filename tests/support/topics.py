"""Topics made and deleted by librdkafka's admin client, for tests about something else."""

from collections.abc import Mapping

from confluent_kafka.admin import AdminClient, NewTopic

LIMIT_SECONDS = 100.0


def create_topic(
    bootstrap: str,
    name: str,
    partitions: int = 1,
    config: Mapping[str, str] | None = None,
    *,
    replicas: int = 1,
) -> None:
    """Create a topic and wait for the answer; raises KafkaException when it is refused."""
    admin = _admin(bootstrap)
    wanted = NewTopic(name, partitions, replicas, config=dict(config or {}))
    admin.create_topics([wanted])[name].result(LIMIT_SECONDS)


def delete_topic(bootstrap: str, name: str) -> None:
    """Delete a topic and wait for the answer; raises KafkaException when it is refused."""
    admin = _admin(bootstrap)
    admin.delete_topics([name])[name].result(LIMIT_SECONDS)


def topic_partitions(bootstrap: str) -> dict[str, int]:
    """Every topic that the broker tells of, with its number of partitions."""
    listed = _admin(bootstrap).list_topics(timeout=LIMIT_SECONDS)
    return {name: len(found.partitions) for name, found in listed.topics.items()}


def _admin(bootstrap: str) -> AdminClient:
    return AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
