"""kafka-streams-groups.sh: what it says of odradek, it says of Apache Kafka."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.conformance.streams_groups_made import SETTINGS, StreamsGroupsMade
from tests.conformance.tool_answers import differences, told
from tests.support.broker_process import BrokerProcess
from tests.support.kafka_answers import kafka_answers, kafka_when_asked
from tests.support.lengths import only_long

pytestmark = [
    pytest.mark.java,
    pytest.mark.slow,
    pytest.mark.recorded,
    only_long("the answers are in test_same_answers.py"),
]

TOOL = "streams.StreamsGroupCommand"
GROUPS = ("running", "left", "waits", "never")


def script() -> Iterator[tuple[str, ...]]:
    """Tools and arguments, in this order: what one changes, the next ones show."""
    for words in (*looks(), *changes()):
        yield TOOL, *words
    yield "GroupsCommand", "--list", "--streams"


def looks() -> Iterator[tuple[str, ...]]:
    yield ("--list",)
    for state in ("Stable", "Empty", "Stable,Empty", "none"):
        yield ("--list", "--state", state)
    yield ("--list", "--state")
    for shown in ((), ("--offsets",), ("--members",), ("--state",)):
        for group in GROUPS:
            yield ("--describe", "--group", group, *shown)
            yield ("--describe", "--group", group, *shown, "--verbose")
        yield ("--describe", "--all-groups", *shown)


def changes() -> Iterator[tuple[str, ...]]:
    reset = ("--reset-offsets", "--group")
    for group in GROUPS:
        yield (*reset, group, "--all-input-topics", "--to-earliest", "--dry-run")
        yield (*reset, group, "--input-topic", "lines", "--to-latest", "--dry-run")
    yield (*reset, "left", "--input-topic", "lines:0", "--to-offset", "1", "--execute")
    yield ("--describe", "--group", "left", "--offsets")
    for group in GROUPS:
        yield ("--delete-offsets", "--group", group, "--input-topic", "lines:1")
        yield ("--delete", "--group", group)
        yield ("--describe", "--group", group, "--state")
    yield ("--delete", "--all-groups")
    yield ("--list", "--state")


def test_the_tool_says_the_same_of_streams_groups_of_both_brokers(
    tmp_path: Path, start_broker: Callable[..., BrokerProcess]
) -> None:
    lines = list(script())

    def told_of(broker: BrokerProcess) -> list[list[str]]:
        StreamsGroupsMade(broker)
        return told(broker, lines, tmp_path)

    with kafka_when_asked(tmp_path / "kafka", SETTINGS) as kafka:
        expected = kafka_answers("tools/streams_groups", lambda: told_of(kafka()))
    found = told_of(start_broker(**SETTINGS))
    differing = differences(lines, expected, found)
    assert not differing, "\n".join(differing)
    saying_something = [answer for answer in found if len(answer) > 1]
    assert len(saying_something) > len(lines) * 0.8, "the tool hardly said anything"
