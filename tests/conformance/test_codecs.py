"""What one client writes in any codec, every other client reads."""

import re

import pytest

from tests.conformance.clients import CLIENTS
from tests.conformance.clients.client import CODECS, Client, Sent
from tests.support.broker_process import BrokerProcess
from tests.support.java_tools import JavaTools
from tests.support.lengths import by_length
from tests.support.stored_batches import stored_batches
from tests.support.topics import create_topic

START_MS = 1_700_000_000_000
# Text, so that the console tools can show it; long enough for a codec to find repetitions.
RECORDS = [
    Sent(f"value {n} {'lorem ipsum ' * 10}".encode(), f"key-{n}".encode(), 0, START_MS + n)
    for n in range(300)
]

Written = dict[tuple[str, str], str]  # client and codec -> topic


@pytest.fixture(scope="module")
def written(broker: BrokerProcess) -> Written:
    """One topic of each Python client and codec."""
    topics: Written = {}
    for name, client in CLIENTS.items():
        for codec in CODECS:
            topic = topics[name, codec] = f"codecs-{name}-{codec}"
            create_topic(broker.bootstrap, topic)
            client.produce(broker.bootstrap, topic, RECORDS, codec=codec)
    return topics


@pytest.fixture(scope="module")
def written_by_java(broker: BrokerProcess, java: JavaTools) -> Written:
    """One topic of each codec, by the console producer."""
    lines = "".join(f"{key}\t{value}\n" for value, key in map(_texts, RECORDS))
    topics: Written = {}
    for codec in by_length(["zstd"], CODECS):
        topic = topics["java", codec] = f"codecs-java-{codec}"
        create_topic(broker.bootstrap, topic)
        java.run(
            "ConsoleProducer",
            *("--bootstrap-server", broker.bootstrap, "--topic", topic),
            *("--compression-codec", codec, "--reader-property", "parse.key=true"),
            stdin=lines,
        )
    return topics


def _texts(record: Sent) -> tuple[str, str]:
    assert record.value is not None
    assert record.key is not None
    return record.value.decode(), record.key.decode()


@pytest.mark.slow
def test_every_client_really_wrote_the_codec_it_was_told(
    broker: BrokerProcess, written: Written
) -> None:
    for (name, codec), topic in written.items():
        stored = {batch.codec for batch in stored_batches(broker.port, topic)}
        assert stored == {codec}, f"{name} wrote {stored}"


@pytest.mark.slow
def test_a_python_client_reads_what_the_others_wrote(
    client: Client, broker: BrokerProcess, written: Written
) -> None:
    for topic in written.values():
        reader = client.reader(broker.bootstrap, topic, [0])
        got = reader.read(len(RECORDS))
        reader.close()
        assert [record.as_sent() for record in got] == RECORDS, topic


@pytest.mark.java
def test_a_python_client_reads_what_java_wrote(
    client: Client, broker: BrokerProcess, written_by_java: Written
) -> None:
    for (_, codec), topic in written_by_java.items():
        assert {batch.codec for batch in stored_batches(broker.port, topic)} == {codec}
        reader = client.reader(broker.bootstrap, topic, [0])
        got = reader.read(len(RECORDS))
        reader.close()
        assert [(each.value, each.key) for each in got] == [each[:2] for each in RECORDS], topic


@pytest.mark.java
def test_java_reads_what_every_client_wrote(
    broker: BrokerProcess, java: JavaTools, written: Written, written_by_java: Written
) -> None:
    topics = [*written.values(), *written_by_java.values()]
    output = java.run(
        "consumer.ConsoleConsumer",
        *("--bootstrap-server", broker.bootstrap, "--include", "codecs-.*", "--from-beginning"),
        *("--max-messages", str(len(topics) * len(RECORDS)), "--timeout-ms", "30000"),
        *("--formatter-property", "print.key=true"),
        *("--formatter-property", "print.offset=true"),
    )
    found = re.findall(r"^Offset:(\d+)\t(\S+)\t(.*)$", output, re.MULTILINE)
    expected = [(str(n), *reversed(_texts(record))) for n, record in enumerate(RECORDS)]
    assert sorted(found) == sorted(expected * len(topics))
