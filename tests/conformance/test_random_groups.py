"""Random conversations of group members: Apache Kafka and odradek must go through them alike.

How they are held, and when the two may differ, is told in random_groups. A conversation that
differs is made short and printed as a script, which can be put among SCRIPTS. `make long` holds
many; ODRADEK_TEST_SEED begins with another one.
"""

from collections.abc import Iterator
from random import Random

import pytest

from tests.conformance.random_groups import admin_steps, classic_steps, steps
from tests.conformance.random_groups.admin_steps import CreateTopic
from tests.conformance.random_groups.chooser import Chooser
from tests.conformance.random_groups.holding import ONE_AFTER_THE_OTHER, both_brokers, hold, report
from tests.conformance.random_groups.participants import GroupMember, Participants
from tests.conformance.random_groups.play import ComparedBrokers, script_of, wait_for_groups
from tests.conformance.random_groups.steps import Beat, Step
from tests.support.lengths import SEED, by_length, only_long

CONVERSATIONS = by_length(10, 600)
# So many may end early (excuses.py); about three in ten do.
MAX_TIES = 0.5
TOGETHER = by_length(10, 25)  # have the restart between their acts together

SETTINGS = {
    "offsets.topic.num.partitions": "1",
    "offset.metadata.max.bytes": "64",
    "group.consumer.assignors": "range,uniform",  # of the first it is determined what it assigns
    "group.max.size": "6",
    "group.consumer.max.size": "6",
    # Nothing happens because time has passed.
    "group.consumer.assignment.interval.ms": "0",
    "group.consumer.min.assignment.interval.ms": "0",
    "group.consumer.max.session.timeout.ms": "600000",
    "group.consumer.session.timeout.ms": "600000",
    "group.min.session.timeout.ms": "6000",
}
# Conversations in which the two have differed.
SCRIPTS: dict[str, list[Step]] = {
    "an expression changes while unrelated topics come": [
        CreateTopic(names=("a",)),
        Beat(who="m1", epoch=0, regex="TAG-.*", owned="none", timeout_ms=600_000),
        CreateTopic(names=("d",)),
        Beat(who="m1", regex="TAG-z"),
    ],
}


@pytest.fixture(scope="module")
def compared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ComparedBrokers]:
    """Both brokers, whose coordinators are loaded."""
    with both_brokers(tmp_path_factory, SETTINGS, ONE_AFTER_THE_OTHER, wait_for_groups) as brokers:
        yield ComparedBrokers(*brokers)


@pytest.mark.java
@pytest.mark.slow
@only_long("conversations with Kafka are compared in test_same_answers.py")
def test_members_at_random_are_answered_as_by_kafka(compared: ComparedBrokers) -> None:
    hold(compared, CONVERSATIONS, TOGETHER, MAX_TIES)


@pytest.mark.java
@pytest.mark.slow
@pytest.mark.parametrize("name", SCRIPTS)
@only_long("conversations with Kafka are compared in test_same_answers.py")
def test_scripts_are_answered_as_by_kafka(name: str, compared: ComparedBrokers) -> None:
    chooser = Chooser(Random(SEED))
    chooser.groups, chooser.seats = ("g", "h"), [GroupMember(f"m{index}") for index in range(1, 6)]
    played = compared.play(chooser, SCRIPTS[name])
    assert played.difference is None, report(played, SEED)
    assert played.tie is None


def test_a_script_says_what_was_said() -> None:
    """What is printed of a conversation can be said again; what is drawn can be put on the wire."""
    for seed in range(30):
        chooser = Chooser(Random(seed))
        participants = Participants("t", chooser.groups, chooser.seats)
        drawn = [*chooser.first(), *(chooser.next(participants) for _ in range(40))]
        words = vars(steps) | vars(classic_steps) | vars(admin_steps)
        assert eval(f"[{script_of(drawn)}]", words) == drawn
        for step in drawn:
            request, version = step.request(participants)
            assert request.encode(version)
