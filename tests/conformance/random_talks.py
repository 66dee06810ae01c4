"""Random conversations in which odradek's answers are compared with Apache Kafka's.

What Kafka answered in those of `make test` is kept (tests/support/kafka_answers).
"""

from collections.abc import Callable
from typing import Protocol

from tests.conformance.compared_conversations import Kafka, compare_with_kafka
from tests.conformance.conversation import Conversation
from tests.support.broker_process import BrokerProcess
from tests.support.lengths import SEED


class RandomTalk(Protocol):
    """A conversation whose steps are drawn; what is said follows from the answers so far."""

    def hold(self) -> None: ...


def compare(
    kafka: Kafka,
    broker: BrokerProcess,
    talk_of: Callable[[Conversation, int], RandomTalk],
    conversations: int,
) -> None:
    """Hold conversations, numbered from SEED on, and fail with the first that differs."""
    for number in range(SEED, SEED + conversations):

        def talk(conversation: Conversation, number: int = number) -> None:
            talk_of(conversation, number).hold()

        name = f"random/{talk_of.__name__}-{number}"
        compare_with_kafka(name, talk, kafka, broker.port, to_the_end=False)
