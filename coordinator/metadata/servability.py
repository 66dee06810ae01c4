"""Checks that odradek can serve the metadata of a directory: only this node, only known features.

A single node cannot replace replicas, voters or brokers on other nodes, and it cannot read records
in tiered storage. Such a directory is refused before anything in it is written. Another broker that
is registered, fenced or not, is a reason to refuse: Kafka would place replicas on it, and it may
have data that this node lacks.

Metadata that is kept but not served (ACLs, SCRAM users, quotas) is no reason to refuse. What Kafka
enforces depends on its configuration, and a configuration that asks for protection is refused by
itself (config/protection.py).
"""

from collections.abc import Iterator

from odradek.storage.topic_names import REMOTE_LOG_METADATA_TOPIC

from .cluster_metadata import ClusterMetadata
from .features import METADATA_VERSION, SERVED
from .topics import Topic

REMOTE_STORAGE = "remote.storage.enable"


class UnsupportedMetadataError(Exception):
    """The metadata needs a feature that odradek does not have. The message names it."""


def check_servable(metadata: ClusterMetadata, node_id: int) -> None:
    """Raise UnsupportedMetadataError with the first reason not to serve this metadata."""
    for reason in _obstacles(metadata, node_id):
        raise UnsupportedMetadataError(reason)


def _obstacles(metadata: ClusterMetadata, node_id: int) -> Iterator[str]:
    level, served = metadata.features.metadata_version, SERVED[METADATA_VERSION]
    if not served.lowest <= level <= served.highest:
        yield (
            f"metadata.version {level} is not served: this version of odradek knows "
            f"{served.lowest} to {served.highest}. Serve the directory with a later version of "
            "odradek, or with the Apache Kafka that has written it"
        )
    others = sorted(metadata.brokers.keys() - {node_id})
    if others:
        yield (
            f"broker {others[0]} is registered besides this node ({node_id}); if it was removed, "
            "unregister it with Apache Kafka (kafka-cluster.sh unregister)"
        )
    for topic in metadata.topics.values():
        yield from _obstacles_of(topic, node_id)
        if metadata.configs.of_topic(topic.name).get(REMOTE_STORAGE, "").lower() == "true":
            yield f"topic {topic.name} has {REMOTE_STORAGE}=true: tiered storage is not served"
    if REMOTE_LOG_METADATA_TOPIC in metadata.topics:
        yield f"topic {REMOTE_LOG_METADATA_TOPIC} exists: tiered storage is not served"


def _obstacles_of(topic: Topic, node_id: int) -> Iterator[str]:
    for partition in topic.partitions.values():
        if partition.replicas != (node_id,):
            yield (
                f"{topic.name}-{partition.index} has replicas on {list(partition.replicas)}, "
                f"not on this node ({node_id}) alone"
            )
