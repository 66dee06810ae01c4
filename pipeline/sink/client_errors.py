"""Describes the client's errors, with what to do about missing rights."""

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

from confluent_kafka import KafkaError

_UNAUTHORIZED = frozenset(
    {
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
        KafkaError.GROUP_AUTHORIZATION_FAILED,
        KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    }
)
FIRST_ANSWER_S: Final = 10.0  # how long a client waits for the first answer of a broker
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


class ConnectionErrors:
    """The last error of a client's connections, as its `error_cb`. No answer comes after these."""

    def __init__(self) -> None:
        self.last: KafkaError | None = None

    def __call__(self, error: KafkaError) -> None:
        # "All brokers are down" follows the error that says why.
        if self.last is None or error.code() != KafkaError._ALL_BROKERS_DOWN:
            self.last = error

    def no_answer(self, client: Mapping[str, Any], within_s: float) -> str | None:
        """Return the text of an error if there was one, for a client that has had no answer yet."""
        if self.last is None:
            return None
        return (
            f"no broker answers at {client.get('bootstrap.servers')} within {within_s:g} s "
            f"({reason_of(self.last)}). Check that it runs, and the option kafka.bootstrap.servers"
        )


def failure_of(step: Callable[[], object]) -> BaseException | None:
    """Run a step of the client, and return its error. For steps while another error is handled.

    confluent-kafka would keep that other error for ever, and with it its frames and the client: it
    counts one reference too many to its own errors, and these would refer to the other. In another
    thread none is handled.
    """
    with ThreadPoolExecutor(1) as threads:
        return threads.submit(step).exception()
