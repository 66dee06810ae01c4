"""The same raw requests to Apache Kafka and to odradek must get the same answers.

Each conversation is held with odradek; what Kafka said in it is kept (tests/support/kafka_answers).
"""

from collections.abc import Iterator

import pytest

from tests.conformance.compared_conversations import Kafka, compare_with_kafka, kafkas_versions
from tests.conformance.conversation import advertised_versions
from tests.conformance.conversations import all_conversations
from tests.support.broker_process import BrokerProcess, running_broker
from tests.support.kafka_answers import kafka_when_asked

pytestmark = [pytest.mark.slow, pytest.mark.recorded]

CONVERSATIONS = all_conversations()


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kafka]:
    """The reference, if it is asked."""
    with kafka_when_asked(tmp_path_factory.mktemp("kafka")) as kafka:
        yield kafka


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    """Nothing else may run on it before: what a broker says depends on what it has."""
    with running_broker(tmp_path_factory.mktemp("odradek")) as process:
        yield process
        assert process.crashes_in_log() == [], process.log_text()


@pytest.mark.parametrize("name", CONVERSATIONS)
def test_odradek_answers_as_apache_kafka(name: str, kafka: Kafka, broker: BrokerProcess) -> None:
    kept = f"conversations/{name}"
    compare_with_kafka(kept, CONVERSATIONS[name], kafka, broker.port, to_the_end=True)


def test_odradek_speaks_the_versions_that_apache_kafka_speaks(
    kafka: Kafka, broker: BrokerProcess
) -> None:
    theirs = kafkas_versions(lambda: advertised_versions(kafka().port))
    assert advertised_versions(broker.port) == theirs
    assert len(theirs) == 77
