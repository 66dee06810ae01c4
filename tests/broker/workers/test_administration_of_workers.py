"""Requests that name a worker by its node id."""

import json
import uuid
from collections.abc import Callable, Iterator, Mapping

import pytest
from confluent_kafka import KafkaError, KafkaException, Producer
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    ResourceType,
)

from odradek.coordinator.metadata.configs import ConfigResourceType
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsPartition,
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    AlterPartitionReassignmentsTopic,
)
from odradek.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
)
from odradek.protocol.messages.incremental_alter_configs import (
    IncrementalAlterConfigsResponse,
)
from tests.support.broker_with_workers import BrokerWithWorkers, new_topic, produce
from tests.support.config_requests import alter_configs_request
from tests.support.java_tools import why_no_java
from tests.support.warm_tools import WarmTools
from tests.support.wire import WireClient

pytestmark = pytest.mark.slow

LOGGER = "odradek.cleaner"


def set_of_broker(admin: AdminClient, node: int, name: str, value: str) -> None:
    entry = ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.BROKER, str(node), incremental_configs=[entry])
    admin.incremental_alter_configs([resource])[resource].result(30)


def test_settings_are_changed_under_the_brokers_own_id(admin: AdminClient) -> None:
    with pytest.raises(KafkaException) as refused:
        set_of_broker(admin, 1, "log.cleaner.threads", "2")
    error = refused.value.args[0]
    assert error.code() == KafkaError.INVALID_REQUEST
    assert "node 1 has the settings of node 0" in error.str()
    set_of_broker(admin, 0, "log.cleaner.threads", "2")
    resource = ConfigResource(ResourceType.BROKER, "2")
    described = admin.describe_configs([resource])[resource].result(30)
    assert described["log.cleaner.threads"].value == "2"


def level_at(broker: BrokerWithWorkers, node: int) -> str | None:
    resource = DescribeConfigsResource(
        resource_type=ConfigResourceType.BROKER_LOGGER,
        resource_name=str(node),
        configuration_keys=[LOGGER],
    )
    with WireClient(broker.port_of(node)) as client:
        request = DescribeConfigsRequest(resources=[resource])
        [result] = client.ask(request, DescribeConfigsResponse, 4).results
    assert result.error_code == ErrorCode.NONE
    return result.configs[0].value


def test_log_levels_are_those_of_one_node(broker: BrokerWithWorkers) -> None:
    request = alter_configs_request(ConfigResourceType.BROKER_LOGGER, "1", {LOGGER: "ERROR"})
    with WireClient(broker.port_of(1)) as client:
        response = client.ask(request, IncrementalAlterConfigsResponse, 1)
    assert response.responses[0].error_code == ErrorCode.NONE
    assert [level_at(broker, node) for node in range(3)] == ["INFO", "ERROR", "INFO"]


def leaders_of(admin: AdminClient, topic: str) -> Mapping[int, int]:
    partitions = admin.list_topics(topic, timeout=30).topics[topic].partitions
    return {index: each.leader for index, each in partitions.items()}


def test_topics_are_created_with_the_replicas_that_they_get(admin: AdminClient) -> None:
    name = new_topic(admin, str(uuid.uuid4()))
    leaders = leaders_of(admin, name)
    admin.delete_topics([name])[name].result(30)
    wrong = [[leaders[1]], [leaders[0]]]
    with pytest.raises(KafkaException) as refused:
        admin.create_topics([NewTopic(name, 2, replica_assignment=wrong)])[name].result(30)
    error = refused.value.args[0]
    assert error.code() == KafkaError.INVALID_REPLICA_ASSIGNMENT
    assert f"partition 0 of {name} is served by node {leaders[0]}" in error.str()
    right = [[leaders[0]], [leaders[1]]]
    admin.create_topics([NewTopic(name, 2, replica_assignment=right)])[name].result(30)
    assert leaders_of(admin, name) == {0: leaders[0], 1: leaders[1]}
    added = NewPartitions(name, 3, replica_assignment=[[leaders[2]]])
    admin.create_partitions([added])[name].result(30)
    assert leaders_of(admin, name)[2] == leaders[2]


def test_a_partition_cannot_be_moved_to_another_worker(
    broker: BrokerWithWorkers, admin: AdminClient
) -> None:
    name = new_topic(admin, str(uuid.uuid4()))
    leader = leaders_of(admin, name)[0]
    with WireClient(broker.port_of(1)) as client:
        codes = [code_of_move(client, name, node) for node in range(4)]
    wanted = [ErrorCode.INVALID_REPLICA_ASSIGNMENT] * 4
    wanted[leader] = ErrorCode.NONE
    assert codes == wanted


def code_of_move(client: WireClient, topic: str, node: int) -> int:
    partition = AlterPartitionReassignmentsPartition(partition_index=0, replicas=[node])
    request = AlterPartitionReassignmentsRequest(
        timeout_ms=30_000,
        topics=[AlterPartitionReassignmentsTopic(name=topic, partitions=[partition])],
    )
    response = client.ask(request, AlterPartitionReassignmentsResponse, 1)
    return response.responses[0].partitions[0].error_code


@pytest.fixture(scope="module")
def tools(broker: BrokerWithWorkers) -> Iterator[Callable[..., str]]:
    """Runs a tool of Apache Kafka; its output."""
    with WarmTools() as warm:

        def run(tool: str, *arguments: str) -> str:
            code, output = warm.run(tool, "--bootstrap-server", broker.bootstrap, *arguments)
            assert code == 0, output
            return output

        yield run


@pytest.mark.java
@pytest.mark.skipif(why_no_java() is not None, reason=str(why_no_java()))
def test_kafkas_tool_finds_a_transaction_once_and_its_producer_at_each_leader(
    broker: BrokerWithWorkers, admin: AdminClient, tools: Callable[..., str]
) -> None:
    name = new_topic(admin, str(uuid.uuid4()))
    producer = Producer({"bootstrap.servers": broker.bootstrap, "transactional.id": name})
    producer.init_transactions(30)
    producer.begin_transaction()
    for index in (0, 1):  # one of each worker
        producer.produce(name, "x", partition=index)
    assert producer.flush(30) == 0
    listed = tools("TransactionsCommand", "list").splitlines()
    [[_, coordinator, producer_id, state]] = [
        line.split() for line in listed if line.startswith(name)
    ]
    assert (coordinator, state) == ("0", "Ongoing")
    for index in (0, 1):
        where = ("--topic", name, "--partition", str(index))
        described = tools("TransactionsCommand", "describe-producers", *where).splitlines()
        assert [line.split()[0] for line in described[1:]] == [producer_id]
    producer.abort_transaction(30)


@pytest.mark.java
@pytest.mark.skipif(why_no_java() is not None, reason=str(why_no_java()))
def test_kafkas_tool_describes_the_logs_of_each_node(
    broker: BrokerWithWorkers, admin: AdminClient, tools: Callable[..., str]
) -> None:
    name = new_topic(admin, str(uuid.uuid4()))
    produce(broker.bootstrap, name, ["one"])
    output = tools("LogDirsCommand", "--describe", "--topic-list", name)
    described = {f"{name}-{index}": leader for index, leader in leaders_of(admin, name).items()}
    found = {
        partition["partition"]: node["broker"]
        for node in json.loads(output.splitlines()[-1])["brokers"]
        for partition in node["logDirs"][0]["partitions"]
    }
    assert found == described
