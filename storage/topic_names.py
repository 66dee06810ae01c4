"""Which topic names are legal, and which two collide. Kafka: Topic.

A topic's name is part of a directory's name; 249 characters leave room for the partition. Metric
names do not distinguish `.` from `_`, so Kafka refuses a topic whose name differs from another's
only in these characters.
"""

import re

MAX_TOPIC_NAME_LENGTH = 249
CONSUMER_OFFSETS_TOPIC = "__consumer_offsets"
TRANSACTION_STATE_TOPIC = "__transaction_state"
SHARE_GROUP_STATE_TOPIC = "__share_group_state"
CLUSTER_METADATA_TOPIC = "__cluster_metadata"
REMOTE_LOG_METADATA_TOPIC = "__remote_log_metadata"  # of tiered storage

# The metadata log is not among them, because no client sees it as a topic.
INTERNAL_TOPICS = frozenset(
    {CONSUMER_OFFSETS_TOPIC, TRANSACTION_STATE_TOPIC, SHARE_GROUP_STATE_TOPIC}
)
_LEGAL = re.compile(r"[a-zA-Z0-9._-]+")


def why_illegal(topic: str) -> str | None:
    """The reason why the name is illegal, worded as in Kafka; None if it is legal."""
    if not topic:
        return "the empty string is not allowed"
    if topic in (".", ".."):
        return f"'{topic}' is not allowed"
    if len(topic) > MAX_TOPIC_NAME_LENGTH:
        return (
            f"the length of '{topic}' is longer than the max allowed length {MAX_TOPIC_NAME_LENGTH}"
        )
    if not _LEGAL.fullmatch(topic):
        return (
            f"'{topic}' contains one or more characters other than "
            "ASCII alphanumerics, '.', '_' and '-'"
        )
    return None


def collision_key(topic: str) -> str | None:
    """A key that is equal for two topics that collide; None for one that collides with none."""
    return topic.replace(".", "_") if "." in topic or "_" in topic else None


def is_internal(topic: str) -> bool:
    return topic in INTERNAL_TOPICS
