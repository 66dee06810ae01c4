"""What only Apache Kafka 4.4 and later answers, compared with odradek."""

from collections.abc import Iterator
from typing import Any

import pytest

from odradek.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from odradek.protocol.messages.streams_group_topology_description_update import (
    StreamsGroupTopologyDescriptionUpdateRequest,
    StreamsTopologyUpdateDescription,
)
from odradek.protocol.messages.unregister_controller import UnregisterControllerRequest
from tests.conformance.conversation import Conversation, advertised_versions
from tests.conformance.transcript import Transcript, differences
from tests.support.broker_process import ApacheKafkaProcess, BrokerProcess, against_apache_kafka
from tests.support.java_tools import why_no_java
from tests.support.wire import WireClient

pytestmark = [
    pytest.mark.java,
    pytest.mark.slow,
    pytest.mark.skipif(why_no_java() is not None, reason=str(why_no_java())),
    pytest.mark.skipif(against_apache_kafka(), reason="compares the two"),
]

NODE = 0


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    directory = tmp_path_factory.mktemp("kafka")
    process = ApacheKafkaProcess(directory)
    try:
        yield process.start()
    finally:
        process.stop()


@pytest.fixture(scope="module")
def odradek(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    process = BrokerProcess(tmp_path_factory.mktemp("odradek"))
    try:
        yield process.start()
    finally:
        process.stop()


def versions(broker: BrokerProcess, version: int, **expected: Any) -> ApiVersionsResponse:
    request = ApiVersionsRequest(client_software_name="a", client_software_version="1", **expected)
    with WireClient(broker.port) as client:
        return client.ask(request, ApiVersionsResponse, version)


def test_every_api_is_announced_in_the_same_versions(
    kafka: BrokerProcess, odradek: BrokerProcess
) -> None:
    theirs, ours = advertised_versions(kafka.port), advertised_versions(odradek.port)
    assert ours == theirs
    assert len(ours) == 77


@pytest.mark.parametrize("version", [3, 4, 5])
def test_the_features_are_announced_alike(
    version: int, kafka: BrokerProcess, odradek: BrokerProcess
) -> None:
    def features(broker: BrokerProcess) -> tuple[list[str], list[str]]:
        answer = versions(broker, version)
        finalized = [one for one in answer.finalized_features if one.name != "kraft.version"]
        return sorted(map(str, answer.supported_features)), sorted(map(str, finalized))

    assert features(odradek) == features(kafka)
    assert len(features(kafka)[1]) == 6


def test_a_client_that_expects_another_broker_must_bootstrap_again(
    kafka: BrokerProcess, odradek: BrokerProcess
) -> None:
    """It gives both the cluster and the node, or neither (KIP-1242)."""

    def answers(broker: BrokerProcess) -> dict[tuple[str | None, int], tuple[int, int]]:
        clusters = {None: None, "own": cluster_id(broker), "other": "other", "": ""}
        found = {}
        for name, cluster in clusters.items():
            for node in (-1, NODE, NODE + 7, -2):
                answer = versions(broker, 5, cluster_id=cluster, node_id=node)
                found[name, node] = (answer.error_code, len(answer.api_keys))
        return found

    assert answers(odradek) == answers(kafka)


def cluster_id(broker: BrokerProcess) -> str:
    lines = (broker.data / "meta.properties").read_text().splitlines()
    return dict(line.split("=", 1) for line in lines if "=" in line)["cluster.id"]


def test_the_newest_apis_are_answered_alike(kafka: BrokerProcess, odradek: BrokerProcess) -> None:
    def talk(broker: BrokerProcess) -> Transcript:
        conversation = Conversation(broker.port, advertised_versions(broker.port))
        for controller_id in (NODE, NODE + 1, -1, 2**31 - 1):
            conversation.ask(UnregisterControllerRequest(controller_id=controller_id), 0)
        nothing = StreamsTopologyUpdateDescription(subtopologies=[], global_stores=[])
        for group, member in (("g", "m"), ("", "m"), ("g", "")):
            request = StreamsGroupTopologyDescriptionUpdateRequest(
                group_id=group, member_id=member, topology_epoch=0, topology_description=nothing
            )
            conversation.ask(request, 0)
        conversation.close()
        return conversation.transcript

    theirs, ours = talk(kafka).lines, talk(odradek).lines
    for (title, answer), (_, other) in zip(theirs, ours, strict=True):
        assert differences(answer, other) == [], title
    assert len(theirs) == 7
