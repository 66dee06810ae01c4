"""Describes the client's errors, with what to do about missing rights."""

from confluent_kafka import KafkaError

_UNAUTHORIZED = frozenset(
    {
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
        KafkaError.GROUP_AUTHORIZATION_FAILED,
        KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    }
)
_RIGHTS = (
    "Exactly-once delivery needs these rights: WRITE and READ on the topics; WRITE on the "
    "transactional ids and READ on the groups that begin with 'transactionalIdPrefix' (odradek)"
)


def is_refusal(error: KafkaError) -> bool:
    """Whether the client lacks a right."""
    return error.code() in _UNAUTHORIZED


def reason_of(error: KafkaError) -> str:
    """Return name and text of the error."""
    text = f"{error.name()}: {error.str()}"
    return f"{text}. {_RIGHTS}" if is_refusal(error) else text
