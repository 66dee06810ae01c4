"""Apache Kafka's own tools, which are its Java clients: topics, producers, consumers, groups."""

import json
import re

import pytest
from confluent_kafka import KafkaException

from tests.support.broker_process import BrokerProcess
from tests.support.java_tools import JavaTools, java_tools_of
from tests.support.kafka_jars import BROKER_VERSION, PREVIOUS_BROKER_VERSION
from tests.support.lengths import by_length
from tests.support.topics import create_topic, delete_topic, topic_partitions

pytestmark = pytest.mark.java


def events(output: str, name: str) -> list[dict[str, object]]:
    """The JSON lines of one kind that a verifiable tool wrote."""
    lines = [json.loads(line) for line in output.splitlines() if line.startswith("{")]
    return [line for line in lines if line["name"] == name]


def lines_of(output: str, pattern: str) -> list[str]:
    return [line for line in output.splitlines() if re.search(pattern, line)]


def test_topics_are_created_described_grown_and_deleted(
    broker: BrokerProcess, java: JavaTools, topic: str
) -> None:
    server = ("--bootstrap-server", broker.bootstrap)
    created = java.run(
        "TopicCommand",
        *server,
        *("--create", "--topic", topic, "--partitions", "3"),
        *("--config", "retention.ms=123456", "--config", "cleanup.policy=compact"),
    )
    assert f"Created topic {topic}." in created
    described = java.run("TopicCommand", *server, "--describe", "--topic", topic)
    assert re.search(rf"Topic: {topic}\s+TopicId: \S{{22}}\s+PartitionCount: 3", described)
    assert "retention.ms=123456" in described
    assert "cleanup.policy=compact" in described
    assert len(lines_of(described, r"Partition: \d+\s+Leader: \d+\s+Replicas: \d+\s+Isr: \d+")) == 3
    java.run("TopicCommand", *server, "--alter", "--topic", topic, "--partitions", "5")
    assert topic_partitions(broker.bootstrap)[topic] == 5
    java.run("TopicCommand", *server, "--delete", "--topic", topic)
    assert topic not in java.run("TopicCommand", *server, "--list").split()


def test_a_topic_that_exists_is_refused_with_kafkas_error(
    broker: BrokerProcess, topic: str
) -> None:
    create_topic(broker.bootstrap, topic)
    with pytest.raises(KafkaException, match="TOPIC_ALREADY_EXISTS"):
        create_topic(broker.bootstrap, topic)
    delete_topic(broker.bootstrap, topic)
    with pytest.raises(KafkaException, match="UNKNOWN_TOPIC_OR_PART"):
        delete_topic(broker.bootstrap, topic)


def test_console_tools_carry_keys_headers_and_nulls(
    broker: BrokerProcess, java: JavaTools, topic: str
) -> None:
    create_topic(broker.bootstrap, topic)
    server = ("--bootstrap-server", broker.bootstrap, "--topic", topic)
    parse = ("parse.key=true", "parse.headers=true", "null.marker=NULL")
    java.run(
        "ConsoleProducer",
        *server,
        *(word for each in parse for word in ("--reader-property", each)),
        stdin="h1:a,h2:b\tkey\tvalue\nh1:ü\tNULL\tno key\nNULL\tkey\tNULL\n",
    )
    show = ("print.key=true", "print.headers=true", "print.offset=true", "print.partition=true")
    read = java.run(
        "consumer.ConsoleConsumer",
        *(*server, "--from-beginning", "--max-messages", "3", "--timeout-ms", "20000"),
        *(word for each in show for word in ("--formatter-property", each)),
    )
    assert lines_of(read, "^Partition:") == [
        "Partition:0\tOffset:0\th1:a,h2:b\tkey\tvalue",
        "Partition:0\tOffset:1\th1:ü\tnull\tno key",
        "Partition:0\tOffset:2\tNO_HEADERS\tkey\tnull",
    ]


@pytest.mark.parametrize(
    "version", by_length([BROKER_VERSION], [PREVIOUS_BROKER_VERSION, BROKER_VERSION])
)
def test_the_verifiable_pair_sends_and_reads_every_value_once(
    version: str, broker: BrokerProcess, topic: str, group: str
) -> None:
    java = java_tools_of(version)
    create_topic(broker.bootstrap, topic, 4)
    server = ("--bootstrap-server", broker.bootstrap, "--topic", topic)
    sent = java.run("VerifiableProducer", *server, "--max-messages", "5000", "--acks", "-1")
    acknowledged = events(sent, "producer_send_success")
    assert len(acknowledged) == 5000
    read = java.run(
        "VerifiableConsumer",
        *(*server, "--group-id", group, "--max-messages", "5000", "--verbose"),
        *("--reset-policy", "earliest"),
    )
    records = events(read, "record_data")

    def places(found: list[dict[str, object]]) -> list[tuple[object, ...]]:
        return sorted((each["partition"], each["offset"], each["value"]) for each in found)

    assert places(records) == places(acknowledged)
    assert all(commit["success"] for commit in events(read, "offsets_committed"))


def test_a_group_is_listed_described_and_deleted(
    broker: BrokerProcess, java: JavaTools, topic: str, group: str
) -> None:
    create_topic(broker.bootstrap, topic)
    server = ("--bootstrap-server", broker.bootstrap)
    java.run("ConsoleProducer", *server, "--topic", topic, stdin="a\nb\nc\n")
    java.run(
        "consumer.ConsoleConsumer",
        *(*server, "--topic", topic, "--group", group, "--from-beginning"),
        *("--max-messages", "2", "--timeout-ms", "20000"),
    )
    tool = "consumer.group.ConsumerGroupCommand"
    assert group in java.run(tool, *server, "--list").split()
    described = java.run(tool, *server, "--describe", "--group", group)
    assert re.search(rf"{group}\s+{topic}\s+0\s+2\s+3\s+1", described), described
    state = java.run(tool, *server, "--describe", "--group", group, "--state")
    assert re.search(rf"{group} .*Empty +0", state), state
    deleted = java.run(tool, *server, "--delete", "--group", group)
    assert "was successful" in deleted
    assert group not in java.run(tool, *server, "--list").split()


def test_a_living_group_shows_its_members_and_refuses_deletion(
    broker: BrokerProcess, java: JavaTools, topic: str, group: str
) -> None:
    create_topic(broker.bootstrap, topic, 2)
    server = ("--bootstrap-server", broker.bootstrap)
    member = java.popen(
        "VerifiableConsumer",
        *(*server, "--topic", topic, "--group-id", group, "--group-instance-id", "static-1"),
    )
    try:
        assert member.stdout is not None
        for line in member.stdout:
            if "partitions_assigned" in line:
                break
        tool = "consumer.group.ConsumerGroupCommand"
        members = java.run(tool, *server, "--describe", "--group", group, "--members", "--verbose")
        assert re.search(rf"{group}\s.*static-1.*\s2\s+.*{topic}[:(]", members), members
        state = java.run(tool, *server, "--describe", "--group", group, "--state")
        assert re.search(r"range +Stable +1", state), state
        refused = java.run(tool, *server, "--delete", "--group", group)
        assert "GroupNotEmptyException" in refused or "not empty" in refused, refused
    finally:
        member.kill()
        member.communicate()
