"""Describes the client's errors, with what to do about missing rights."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

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


def failure_of(step: Callable[[], object]) -> BaseException | None:
    """Run a step of the client, and return its error. For steps while another error is handled.

    confluent-kafka would keep that other error for ever, and with it its frames and the client: it
    counts one reference too many to its own errors, and these would refer to the other. In another
    thread none is handled.
    """
    with ThreadPoolExecutor(1) as threads:
        return threads.submit(step).exception()
