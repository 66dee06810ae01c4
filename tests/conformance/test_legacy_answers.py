"""The requests of Kafka 0.8 to 0.10, byte for byte, get the answers that Apache Kafka 3.9 gave.

Kafka 4.0 dropped these versions; odradek speaks them on. tests/golden/legacy holds what 3.9 said.
"""

from typing import Any

import pytest

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from odradek.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestTopic,
    OffsetFetchResponse,
)
from tests.conformance.conversation import advertised_versions
from tests.conformance.legacy import Talk, all_conversations
from tests.conformance.legacy.answers import cut_alike, decoded, seen
from tests.conformance.legacy.talk import (
    CLOSED,
    STILL_OPEN,
    LegacyTalk,
    Line,
    golden_file,
    read_golden,
)
from tests.conformance.transcript import differences, is_accident
from tests.support.broker_process import BrokerProcess, against_apache_kafka
from tests.support.topics import create_topic
from tests.support.wire import WireClient

# By the words of a title.
ON_PURPOSE = {
    "a time in the future": "message.timestamp.after.max.ms is an hour since Kafka 4.0",
    "'group-v0'": "what is committed in v0 is kept: see below",
}
CONVERSATIONS = all_conversations()


def differs_on_purpose(line: Line) -> bool:
    """v0 meant ZooKeeper: a Kafka without one says UNSUPPORTED_VERSION, odradek does as in v1."""
    in_zookeeper = line.version == 0 and line.api in {"OffsetCommitRequest", "OffsetFetchRequest"}
    return in_zookeeper or any(words in line.title for words in ON_PURPOSE)


@pytest.mark.parametrize("name", CONVERSATIONS)
def test_odradek_answers_as_kafka_39_did(name: str, broker: BrokerProcess) -> None:
    expected = read_golden(golden_file(name))
    found = replayed(CONVERSATIONS[name], broker.port, expected)
    lines = [line for pair in zip(expected, found, strict=True) for line in report(*pair)]
    if lines:
        pytest.fail("\n".join(lines), pytrace=False)


def test_only_clients_that_ask_in_v0_are_told_of_the_oldest_versions(broker: BrokerProcess) -> None:
    told = {version: advertised_versions(broker.port, version) for version in (0, 1, 2)}
    assert [told[version][ApiKey.FETCH].lowest for version in (0, 1, 2)] == [0, 4, 4]
    assert told[0].keys() == told[2].keys()
    assert all(told[0][key].highest == told[2][key].highest for key in told[2])


def replayed(talk: Talk, port: int, recorded: list[Line]) -> list[Line]:
    conversation = LegacyTalk(port, recorded)
    try:
        talk(conversation)
    finally:
        conversation.close()
    return conversation.lines


def report(expected: Line, found: Line) -> list[str]:
    """What was asked, and a line for each difference between the two answers to it."""
    theirs, ours = seen(expected), seen(found)
    if differs_on_purpose(expected):
        return []
    if is_accident(theirs):  # nothing is learned from it, but that it is not stored
        stored = expected.api == "ProduceRequest" and not is_refused(ours)
        return [f"{expected.title}: Kafka stumbles, odradek stores it"] if stored else []
    lines = differences(*cut_alike(theirs, ours))
    return [f"{expected.title} ({expected.api} v{expected.version})", *lines] if lines else []


def is_refused(answer: Any) -> bool:
    """Whether every partition of a Produce has an error, and a definite one."""
    partitions = answer["responses"][0]["partition_responses"]
    return all(one["error_code"] > 0 for one in partitions)


@pytest.mark.parametrize("name", CONVERSATIONS)
def test_our_messages_write_what_kafka_wrote(name: str) -> None:
    """Read into a message and written again, Kafka's answers are the same bytes."""
    for line in read_golden(golden_file(name)):
        if line.answer not in (CLOSED, STILL_OPEN):
            again = decoded(line).encode(line.version)
            assert again.hex() == line.answer, f"{line.title} ({line.api} v{line.version})"


@pytest.mark.skipif(against_apache_kafka(), reason="it needs ZooKeeper for v0")
def test_what_is_committed_in_v0_is_kept_with_the_rest(
    broker: BrokerProcess, topic: str, group: str
) -> None:
    create_topic(broker.bootstrap, topic)
    commit = OffsetCommitRequest(
        group_id=group,
        topics=[
            OffsetCommitRequestTopic(
                name=topic,
                partitions=[
                    OffsetCommitRequestPartition(
                        partition_index=index, committed_offset=7, committed_metadata="seven"
                    )
                    for index in (0, 9)
                ],
            )
        ],
    )
    with WireClient(broker.port) as client:
        answer = client.ask(commit, OffsetCommitResponse, 0)
        errors = {one.partition_index: one.error_code for one in answer.topics[0].partitions}
        assert errors == {0: ErrorCode.NONE, 9: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
        unknown = {0: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}  # v0: as if ZooKeeper had no such node
        for version in (0, 1, 2):
            nothing = (-1, "", unknown.get(version, ErrorCode.NONE))
            assert fetched(client, group, topic, version) == {0: (7, "seven", 0), 1: nothing}


def fetched(
    client: WireClient, group: str, topic: str, version: int
) -> dict[int, tuple[int, str | None, int]]:
    wanted = OffsetFetchRequestTopic(name=topic, partition_indexes=[0, 1])
    request = OffsetFetchRequest(group_id=group, topics=[wanted])
    answer = client.ask(request, OffsetFetchResponse, version)
    return {
        one.partition_index: (one.committed_offset, one.metadata, one.error_code)
        for one in answer.topics[0].partitions
    }
