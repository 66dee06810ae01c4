"""The same raw requests to Apache Kafka and to odradek must get the same answers.

Each conversation is held with odradek; what Kafka said in it is kept (tests/support/kafka_answers).
"""

from collections.abc import Iterator

import pytest

from odradek.protocol.api_keys import ApiKey
from tests.conformance.compared_conversations import Kafka, compare_with_kafka, kafkas_versions
from tests.conformance.conversation import advertised_versions
from tests.conformance.conversations import all_conversations
from tests.support.broker_process import BrokerProcess, running_broker
from tests.support.kafka_answers import kafka_when_asked

pytestmark = [pytest.mark.slow, pytest.mark.recorded]

CONVERSATIONS = all_conversations()
# In these odradek still answers as Kafka 4.3.
NOT_YET = {
    "a_streams_member_joins_goes_on_and_leaves",
    "a_streams_member_with_another_topology",
    "a_streams_shutdown_is_told_to_all",
    "endpoints_of_streams_members",
    "streams_groups_and_other_types",
    "streams_groups_are_listed_and_deleted",
    "streams_heartbeats_are_checked",
    "streams_internal_topics_are_created",
    "streams_internal_topics_of_another_size",
    "streams_offsets_are_committed_with_epochs",
    "streams_source_topics_that_are_missing",
    "streams_standby_tasks",
    "streams_topics_that_are_joined",
    "streams_topologies_that_cannot_work",
    "two_streams_processes_share_and_hand_over",
}


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


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.xfail(strict=True)) if name in NOT_YET else name
        for name in CONVERSATIONS
    ],
)
def test_odradek_answers_as_apache_kafka(name: str, kafka: Kafka, broker: BrokerProcess) -> None:
    kept = f"conversations/{name}"
    compare_with_kafka(kept, CONVERSATIONS[name], kafka, broker.port, to_the_end=True)


def test_odradek_speaks_every_version_that_apache_kafka_speaks(
    kafka: Kafka, broker: BrokerProcess
) -> None:
    theirs = kafkas_versions(lambda: advertised_versions(kafka().port))
    ours = advertised_versions(broker.port)
    for key, versions in ours.items():
        assert versions.lowest == theirs[key].lowest, ApiKey(key).name
        assert versions.highest >= theirs[key].highest, ApiKey(key).name
