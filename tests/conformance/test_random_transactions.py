"""Random transactions: Apache Kafka and odradek must go through them alike.

How they are held, and when the two may differ, is told in random_transactions. A conversation that
differs is made short and printed as a script, which can be put among SCRIPTS. `make long` holds
many; ODRADEK_TEST_SEED begins with another one.
"""

from collections.abc import Iterator
from random import Random

import pytest

from tests.conformance.random_groups import admin_steps as group_admin_steps
from tests.conformance.random_groups import classic_steps, steps
from tests.conformance.random_groups.admin_steps import CreateTopic
from tests.conformance.random_groups.holding import ONE_AFTER_THE_OTHER, both_brokers, hold, report
from tests.conformance.random_groups.play import script_of
from tests.conformance.random_groups.steps import Step
from tests.conformance.random_transactions import admin_steps, producer_steps
from tests.conformance.random_transactions.admin_steps import DescribeTransactions
from tests.conformance.random_transactions.chooser import Chooser
from tests.conformance.random_transactions.participants import Producer, TransactionParticipants
from tests.conformance.random_transactions.play import (
    ComparedTransactions,
    wait_for_transactions,
)
from tests.conformance.random_transactions.producer_steps import Init, Write
from tests.support.lengths import SEED, by_length, only_long

CONVERSATIONS = by_length(12, 300)
# So many may end early (excuses.py).
MAX_TIES = 0.4
TOGETHER = by_length(12, 25)  # have the restarts between their acts together

SETTINGS = {
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
    "offset.metadata.max.bytes": "64",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "50",
    # Segments whose records are deleted stay.
    "log.initial.task.delay.ms": "3600000",
    # No member is put out because time has passed.
    "group.consumer.assignment.interval.ms": "0",
    "group.consumer.min.assignment.interval.ms": "0",
    "group.consumer.max.session.timeout.ms": "600000",
    "group.consumer.session.timeout.ms": "600000",
    "group.min.session.timeout.ms": "6000",
}
# Kafka serves InitProducerId v6, which its clients do not use yet.
KAFKAS_SETTINGS = {**ONE_AFTER_THE_OTHER, "unstable.api.versions.enable": "true"}

# Conversations in which the two have differed.
SCRIPTS: dict[str, list[Step]] = {
    "a transactional batch without a transactional id": [
        CreateTopic(names=("a",)),
        Init(),
        Write(txn=None, places=(("a", 0), ("z", 0)), version=9),
    ],
    "sequences after epoch -1": [
        CreateTopic(names=("a",)),
        Init(),
        Write(epoch=-1, sequence=3, transactional=False),
        Write(epoch=-1, sequence=7, transactional=False),
        Write(sequence=5, transactional=False),
        Write(sequence=7, transactional=False),
    ],
    "wrong acks, and a transaction that cannot be verified": [
        CreateTopic(names=("a",)),
        Init(),
        Write(epoch=5, acks=2),
        Write(acks=2),
        DescribeTransactions(),
    ],
}


@pytest.fixture(scope="module")
def compared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ComparedTransactions]:
    """Both brokers, whose coordinators are loaded."""
    with both_brokers(
        tmp_path_factory, SETTINGS, KAFKAS_SETTINGS, wait_for_transactions
    ) as brokers:
        yield ComparedTransactions(*brokers)


@pytest.mark.java
@pytest.mark.slow
@only_long("conversations with Kafka are compared in test_same_answers.py")
def test_producers_at_random_are_answered_as_by_kafka(
    compared: ComparedTransactions,
) -> None:
    hold(compared, CONVERSATIONS, TOGETHER, MAX_TIES)


@pytest.mark.java
@pytest.mark.slow
@pytest.mark.parametrize("name", SCRIPTS)
@only_long("conversations with Kafka are compared in test_same_answers.py")
def test_scripts_are_answered_as_by_kafka(name: str, compared: ComparedTransactions) -> None:
    chooser = Chooser(Random(SEED))
    chooser.producers = [Producer("p1", "x"), Producer("p2", "x"), Producer("p3", "y")]
    played = compared.play(chooser, SCRIPTS[name])
    assert played.difference is None, report(played, SEED)
    assert played.tie is None


def test_a_script_says_what_was_said() -> None:
    """What is printed of a conversation can be said again; what is drawn can be put on the wire."""
    words = {
        name: value
        for module in (steps, classic_steps, group_admin_steps, producer_steps, admin_steps)
        for name, value in vars(module).items()
    }
    for seed in range(30):
        chooser = Chooser(Random(seed))
        participants = TransactionParticipants(
            "t", chooser.groups, chooser.seats, chooser.producers
        )
        drawn = [*chooser.first(), *(chooser.next(participants) for _ in range(40))]
        assert eval(f"[{script_of(drawn)}]", words) == drawn
        for step in drawn:
            request, version = step.request(participants)
            assert request.encode(version)
