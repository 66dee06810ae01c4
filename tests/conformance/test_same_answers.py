"""The same raw requests to Apache Kafka and to odradek must get the same answers.

Each conversation is held with both. What may differ between the two is written in transcript.py;
here is what differs on purpose, and each difference says why.
"""

from collections.abc import Iterator

import pytest

from odradek.protocol.api_keys import ApiKey
from tests.conformance.conversation import Conversation, Versions, advertised_versions
from tests.conformance.conversations import Talk, all_conversations
from tests.conformance.transcript import Transcript, differences, is_accident
from tests.support.broker_process import ApacheKafkaProcess, BrokerProcess
from tests.support.java_tools import why_no_java

pytestmark = [pytest.mark.slow, pytest.mark.java]

UNREAD = "odradek judges by the header: it has not read the records behind it"
ON_PURPOSE = {
    "a batch with a greater max timestamp": UNREAD,
    "a batch with lz4 by name, not by content": UNREAD,
    "a batch with lz4 cut": UNREAD,
    **{f"{topic}: with a record too many": UNREAD for topic in ("plain", "unpacked", "stamping")},
}
CONVERSATIONS = all_conversations()


@pytest.fixture(scope="module")
def apache_kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    """The reference."""
    reason = why_no_java()
    if reason:
        pytest.skip(reason)
    process = ApacheKafkaProcess(tmp_path_factory.mktemp("kafka"))
    try:
        yield process.start()
    finally:
        process.stop()


@pytest.mark.parametrize("talk", CONVERSATIONS.values(), ids=CONVERSATIONS.keys())
def test_odradek_answers_as_apache_kafka(
    talk: Talk, apache_kafka: BrokerProcess, broker: BrokerProcess
) -> None:
    versions = advertised_versions(apache_kafka.port)
    expected = transcript_of(talk, apache_kafka.port, versions)
    found = transcript_of(talk, broker.port, versions)
    lines = report(expected, found)
    if lines:
        pytest.fail("\n".join(lines), pytrace=False)


def test_odradek_speaks_every_version_that_apache_kafka_speaks(
    apache_kafka: BrokerProcess, broker: BrokerProcess
) -> None:
    theirs, ours = advertised_versions(apache_kafka.port), advertised_versions(broker.port)
    for key, versions in ours.items():
        assert versions.lowest == theirs[key].lowest, ApiKey(key).name
        assert versions.highest >= theirs[key].highest, ApiKey(key).name


def transcript_of(talk: Talk, port: int, versions: Versions) -> Transcript:
    conversation = Conversation(port, versions)
    try:
        talk(conversation)
    finally:
        conversation.close()
    return conversation.transcript


def report(expected: Transcript, found: Transcript) -> list[str]:
    """A line for each request that was answered differently, and one for each difference."""
    lines = []
    pairs = zip(expected.lines, found.lines, strict=True)
    for (title, answer), (_, other) in pairs:
        case = title.removeprefix("what is there of ").partition(" in v")[0]
        if is_accident(answer) or case in ON_PURPOSE:
            continue
        differs = differences(answer, other)
        if differs:
            lines += [title, *(f"    {line}" for line in differs)]
    return lines
