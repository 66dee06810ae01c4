"""Topics that a request names by name or by id."""

from odradek.broker.security.operations import AclOperation
from odradek.coordinator.metadata.topics import Topic
from odradek.protocol.errors import ApiError, ErrorCode

from .context import RequestContext


def readable_topic(context: RequestContext, name: str, topic_id: bytes | None) -> Topic:
    """The topic with that id, or with that name if `topic_id` is None.

    Raises ApiError if it does not exist or the client may not read it: UNKNOWN_TOPIC_ID,
    UNKNOWN_TOPIC_OR_PARTITION, TOPIC_AUTHORIZATION_FAILED.
    """
    if topic_id is not None:
        name = context.broker.topic_name(topic_id)
    context.check_topic(AclOperation.READ, name)
    topic = context.broker.metadata.topics.get(name)
    if topic is None:
        raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic {name}")
    return topic
