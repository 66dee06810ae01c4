"""Random conversations that are held with Apache Kafka and with odradek, answer by answer."""

from collections.abc import Callable
from typing import Protocol

import pytest

from tests.conformance.conversation import Conversation, advertised_versions
from tests.conformance.test_same_answers import report, transcript_of
from tests.support.broker_process import BrokerProcess
from tests.support.lengths import SEED


class RandomTalk(Protocol):
    """A conversation whose steps are drawn; what is said follows from the answers so far."""

    def hold(self) -> None: ...


def compare(
    kafka: BrokerProcess,
    broker: BrokerProcess,
    talk_of: Callable[[Conversation, int], RandomTalk],
    conversations: int,
) -> None:
    """Hold conversations, numbered from SEED on, and fail with the first that differs."""
    versions = advertised_versions(kafka.port)
    for number in range(SEED, SEED + conversations):

        def talk(conversation: Conversation, number: int = number) -> None:
            talk_of(conversation, number).hold()

        expected = transcript_of(talk, kafka.port, versions)
        found = transcript_of(talk, broker.port, versions)
        count = min(len(expected.lines), len(found.lines))  # what follows a difference may differ
        del expected.lines[count:], found.lines[count:]
        lines = report(expected, found)
        if lines:
            pytest.fail("\n".join([f"conversation {number}", *lines]), pytrace=False)
