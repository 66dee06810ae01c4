"""Broker(nodes=3): what clients see when nodes of a played cluster fail."""

from __future__ import annotations

import urllib.request
from collections.abc import Callable, Iterator
from datetime import timedelta

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from odradek.broker.testing import Broker, BrokerError, ErrorCode, Fault
from odradek.protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from odradek.protocol.messages.produce import (
    ProducePartitionData,
    ProduceRequest,
    ProduceResponse,
    ProduceTopicData,
)
from odradek.protocol.record import Record
from odradek.protocol.record_batch import build_batch
from tests.support.metrics import Series
from tests.support.wire import WireClient

TOPIC = "orders"
# Long enough on any machine; a client that waits for something waits until then.
PATIENCE_S = 60


@pytest.fixture(scope="module")
def shared_cluster() -> Iterator[Broker]:
    with Broker(nodes=3) as broker:
        yield broker


@pytest.fixture
def cluster(shared_cluster: Broker) -> Broker:
    shared_cluster.reset()
    return shared_cluster


def quiet(_level: int, *_: object) -> None:
    """Take the log lines of librdkafka."""


def producer(cluster: Broker, **settings: object) -> Producer:
    return Producer(
        {
            "bootstrap.servers": cluster.bootstrap_servers,
            "log_level": 0,
            "reconnect.backoff.ms": 10,
            "retry.backoff.ms": 10,
            **settings,
        }
    )


def consumer(cluster: Broker, **settings: object) -> Consumer:
    return Consumer(
        {
            "bootstrap.servers": cluster.bootstrap_servers,
            "log_level": 0,
            "reconnect.backoff.ms": 10,
            "auto.offset.reset": "earliest",
            "group.id": "readers",
            **settings,
        }
    )


def read(reader: Consumer, count: int) -> list[bytes]:
    """Read so many values, or fail."""
    values: list[bytes] = []
    while len(values) < count:
        message = reader.poll(PATIENCE_S)
        assert message is not None, f"{len(values)} of {count} records came"
        if message.error() is None:
            values.append(message.value())
    return values


def test_nodes_have_ids_ports_and_leaders_of_their_own(cluster: Broker) -> None:
    cluster.create_topic(TOPIC, partitions=6)
    described = AdminClient({"bootstrap.servers": cluster.node(2).address}).list_topics(timeout=30)
    assert sorted(described.brokers) == [1, 2, 3]
    assert {f"{each.host}:{each.port}" for each in described.brokers.values()} == {
        node.address for node in cluster.nodes
    }
    partitions = described.topics[TOPIC].partitions.values()
    assert sorted(each.leader for each in partitions) == [1, 1, 2, 2, 3, 3]
    assert all(sorted(each.replicas) == [1, 2, 3] for each in partitions)


def test_records_of_a_producer_whose_leader_is_killed_are_there_once(cluster: Broker) -> None:
    cluster.create_topic(TOPIC, partitions=1)
    leader = cluster.partition(TOPIC, 0).leader
    writer = producer(cluster, **{"enable.idempotence": True, "linger.ms": 0})
    for number in range(200):
        if number == 100:
            cluster.node(leader).kill()
        writer.produce(TOPIC, b"%d" % number)
        writer.poll(0)
    assert writer.flush(PATIENCE_S) == 0
    assert [record.value for record in cluster.records(TOPIC)] == [b"%d" % n for n in range(200)]
    roles = cluster.partition(TOPIC, 0)
    assert roles.leader != leader
    assert roles.leader_epoch == 1
    assert leader not in roles.isr


def test_a_consumer_goes_on_when_its_coordinator_is_killed(cluster: Broker) -> None:
    cluster.create_topic(TOPIC, partitions=3)
    for number in range(90):
        cluster.produce(TOPIC, b"%d" % number, partition=number % 3)
    reader = consumer(cluster)
    reader.subscribe([TOPIC])
    values = read(reader, 10)
    reader.commit(asynchronous=False)
    coordinator = cluster.coordinator("readers")
    cluster.node(coordinator).kill()
    assert cluster.coordinator("readers") not in (coordinator, -1)
    values += read(reader, 80)
    reader.commit(asynchronous=False)
    assert sorted(values) == sorted(b"%d" % number for number in range(90))
    assert cluster.committed("readers", TOPIC) == {0: 30, 1: 30, 2: 30}
    reader.close()


def test_a_transaction_goes_on_when_its_coordinator_is_killed(cluster: Broker) -> None:
    cluster.create_topic(TOPIC, partitions=1)
    writer = producer(cluster, **{"transactional.id": "transfers"})
    writer.init_transactions(PATIENCE_S)
    writer.begin_transaction()
    writer.produce(TOPIC, b"one")
    assert writer.flush(PATIENCE_S) == 0
    cluster.node(cluster.transaction_coordinator("transfers")).kill()
    writer.produce(TOPIC, b"two")
    writer.commit_transaction(PATIENCE_S)
    assert [record.value for record in cluster.records(TOPIC)] == [b"one", b"two"]


def test_acks_of_all_need_enough_replicas_in_sync(cluster: Broker) -> None:
    cluster.create_topic(TOPIC, partitions=1, configs={"min.insync.replicas": "2"})
    cluster.shrink_isr(TOPIC, 0)
    errors: list[object] = []
    writer = producer(cluster, acks="all", retries=0)
    writer.produce(TOPIC, b"refused", on_delivery=lambda error, _: errors.append(error))
    assert writer.flush(PATIENCE_S) == 0
    assert "NOT_ENOUGH_REPLICAS" in str(errors)
    careless = producer(cluster, acks=1)
    careless.produce(TOPIC, b"taken")
    assert careless.flush(PATIENCE_S) == 0
    cluster.shrink_isr(TOPIC, 0, to=None)
    writer.produce(TOPIC, b"safe")
    assert writer.flush(PATIENCE_S) == 0
    assert [record.value for record in cluster.records(TOPIC)] == [b"taken", b"safe"]


def test_records_that_followers_lack_are_not_seen(cluster: Broker) -> None:
    cluster.create_topic(TOPIC, partitions=1)
    cluster.lag(TOPIC, 0, records=1)
    careless = producer(cluster, acks=1)
    careless.produce(TOPIC, b"lacking")
    assert careless.flush(PATIENCE_S) == 0
    reader = consumer(cluster)
    assert reader.get_watermark_offsets(TopicPartition(TOPIC, 0), timeout=30) == (0, 0)
    careful = producer(cluster, **{"acks": "all", "retries": 0, "request.timeout.ms": 1000})
    errors: list[object] = []
    careful.produce(TOPIC, b"late", on_delivery=lambda error, _: errors.append(error))
    assert careful.flush(PATIENCE_S) == 0
    assert "REQUEST_TIMED_OUT" in str(errors)
    cluster.lag(TOPIC, 0, records=0)
    assert reader.get_watermark_offsets(TopicPartition(TOPIC, 0), timeout=30) == (0, 2)
    reader.close()


def test_a_batch_is_safe_only_when_followers_have_all_its_records(cluster: Broker) -> None:
    cluster.create_topic(TOPIC, partitions=1)
    cluster.lag(TOPIC, 0, records=1)
    address = cluster.node(cluster.partition(TOPIC, 0).leader).address
    with WireClient(int(address.rpartition(":")[2])) as client:

        def produce(*values: bytes, acks: int = -1, **header: int) -> ErrorCode:
            batch = bytes(build_batch([Record(None, value, 0) for value in values], **header))
            topic = ProduceTopicData(
                name=TOPIC, partition_data=[ProducePartitionData(index=0, records=batch)]
            )
            request = ProduceRequest(acks=acks, timeout_ms=50, topic_data=[topic])
            answer = client.ask(request, ProduceResponse, 9)
            return ErrorCode(answer.responses[0].partition_responses[0].error_code)

        idempotent = {"producer_id": 7, "producer_epoch": 0, "base_sequence": 0}
        assert produce(b"a", b"b", **idempotent) is ErrorCode.REQUEST_TIMED_OUT
        assert produce(b"c", acks=1) is ErrorCode.NONE
        again = produce(b"a", b"b", **idempotent)  # followers lack only what others have written
        assert again is ErrorCode.NONE
    assert [record.value for record in cluster.records(TOPIC)] == [b"a", b"b"]


def test_followers_lag_again_when_their_topic_is_made_again(cluster: Broker) -> None:
    for _ in range(2):
        cluster.create_topic(TOPIC, partitions=1)
        cluster.lag(TOPIC, 0, records=1)
        cluster.produce(TOPIC, b"lacking")
        assert cluster.records(TOPIC) == []
        cluster.reset()


def test_a_stopped_node_hands_over_first_and_leads_again_when_elected(cluster: Broker) -> None:
    cluster.create_topic(TOPIC, partitions=3)
    before = [cluster.partition(TOPIC, index) for index in range(3)]
    cluster.node(2).stop()
    stopped = [cluster.partition(TOPIC, index) for index in range(3)]
    assert all(2 not in (roles.leader, *roles.isr) for roles in stopped)
    cluster.node(2).start()
    cluster.elect()
    after = [cluster.partition(TOPIC, index) for index in range(3)]
    assert [roles.leader for roles in after] == [roles.leader for roles in before]
    moved = [roles for roles, old in zip(after, before, strict=True) if old.leader == 2]
    assert [roles.leader_epoch for roles in moved] == [2]


def test_a_producer_lives_through_a_rolling_restart(cluster: Broker) -> None:
    cluster.create_topic(TOPIC, partitions=3)
    writer = producer(cluster, acks="all")
    for number in range(60):
        if number == 30:
            cluster.rolling_restart()
        writer.produce(TOPIC, b"%d" % number)
        writer.poll(0)
    assert writer.flush(PATIENCE_S) == 0
    values = sorted({record.value for record in cluster.records(TOPIC) if record.value})
    assert values == sorted(b"%d" % number for number in range(60))


def test_a_partition_is_moved_to_other_nodes(cluster: Broker) -> None:
    cluster.create_topic(TOPIC, partitions=1)
    old = cluster.partition(TOPIC, 0).leader
    others = [node.id for node in cluster.nodes if node.id != old]
    cluster.reassign(TOPIC, 0, others)
    roles = cluster.partition(TOPIC, 0)
    assert roles.replicas == others
    assert roles.leader in others


def test_a_paused_node_answers_when_it_goes_on(cluster: Broker) -> None:
    cluster.create_topic(TOPIC, partitions=1)
    leader = cluster.partition(TOPIC, 0).leader
    writer = producer(cluster, acks="all")
    writer.produce(TOPIC, b"before")
    assert writer.flush(PATIENCE_S) == 0
    cluster.node(leader).pause()
    writer.produce(TOPIC, b"meanwhile")
    assert writer.flush(0.2) == 1
    cluster.node(leader).resume()
    assert writer.flush(PATIENCE_S) == 0
    assert cluster.partition(TOPIC, 0).leader == leader


def test_a_paused_node_that_is_noticed_leads_nothing(cluster: Broker) -> None:
    cluster.create_topic(TOPIC, partitions=1)
    leader = cluster.partition(TOPIC, 0).leader
    cluster.node(leader).pause()
    cluster.notice_now()
    assert cluster.partition(TOPIC, 0).leader not in (leader, -1)
    writer = producer(
        cluster,
        **{
            "socket.timeout.ms": 1000,
            "bootstrap.servers": ",".join(
                node.address for node in cluster.nodes if node.id != leader
            ),
        },
    )
    writer.produce(TOPIC, b"elsewhere")
    assert writer.flush(PATIENCE_S) == 0


def test_a_client_that_is_cut_off_from_a_node(cluster: Broker) -> None:
    cluster.create_topic(TOPIC, partitions=1)
    leader = cluster.node(cluster.partition(TOPIC, 0).leader)
    leader.cut_from("alone")
    cut = AdminClient({"bootstrap.servers": leader.address, "client.id": "alone", "log_level": 0})
    with pytest.raises(KafkaException):
        cut.list_topics(timeout=0.5)
    other = AdminClient({"bootstrap.servers": leader.address, "client.id": "other"})
    assert TOPIC in other.list_topics(timeout=30).topics
    cluster.heal()
    assert TOPIC in cut.list_topics(timeout=PATIENCE_S).topics


def test_without_any_replica_there_is_no_leader(cluster: Broker) -> None:
    cluster.create_topic(TOPIC, partitions=1)
    only = cluster.partition(TOPIC, 0).leader
    cluster.reassign(TOPIC, 0, [only])
    before = cluster.partition(TOPIC, 0).leader_epoch
    cluster.node(only).kill()
    assert cluster.partition(TOPIC, 0).leader == -1
    cluster.node(only).start()
    roles = cluster.partition(TOPIC, 0)
    assert roles.leader == only
    assert roles.leader_epoch == before + 2


def test_a_fault_is_about_one_node(cluster: Broker) -> None:
    cluster.create_topic(TOPIC, partitions=3)
    leaders = [cluster.partition(TOPIC, partition).leader for partition in range(3)]
    assert sorted(leaders) == [1, 2, 3]
    fault = cluster.inject(Fault(api="PRODUCE", node=2, error="NOT_ENOUGH_REPLICAS", times=2))
    fetch = cluster.inject(
        Fault(api="FETCH", node=3, topic=TOPIC, error="NOT_LEADER_OR_FOLLOWER", times=1)
    )
    sender = producer(cluster)
    for partition in range(3):
        sender.produce(TOPIC, b"v", partition=partition)
    assert sender.flush(PATIENCE_S) == 0
    assert [event.node for event in fault.events()] == [2, 2]
    reader = consumer(cluster)
    reader.assign([TopicPartition(TOPIC, partition, 0) for partition in range(3)])
    assert read(reader, 3) == [b"v"] * 3
    reader.close()
    assert [event.node for event in fetch.events()] == [3]


def test_the_same_ports_after_a_restart(cluster: Broker) -> None:
    cluster.create_topic(TOPIC, partitions=1)
    cluster.produce(TOPIC, b"kept")
    before = cluster.bootstrap_servers
    cluster.kill_and_restart()
    assert cluster.bootstrap_servers == before
    assert [record.value for record in cluster.records(TOPIC)] == [b"kept"]
    nodes = AdminClient({"bootstrap.servers": before}).list_topics(timeout=PATIENCE_S).brokers
    assert sorted(f"{node.host}:{node.port}" for node in nodes.values()) == sorted(
        before.split(",")
    )


def test_a_node_that_is_not_there(cluster: Broker) -> None:
    with pytest.raises(ValueError, match="there is no node 4"):
        cluster.node(4)


def test_a_broker_of_one_node_has_no_others() -> None:
    with Broker() as broker, pytest.raises(BrokerError, match="nodes=3"):
        broker.elect()


@pytest.mark.parametrize("action", ["pause", "resume", "cut_from_nodes"])
def test_a_node_that_is_down_can_only_be_started(cluster: Broker, action: str) -> None:
    cluster.create_topic(TOPIC, partitions=1)
    cluster.node(1).kill()
    with pytest.raises(BrokerError, match="node 1 does not run"):
        getattr(cluster.node(1), action)()
    assert sorted(cluster.partition(TOPIC, 0).isr) == [2, 3]
    cluster.node(1).kill()
    cluster.node(1).stop()
    cluster.node(1).start()
    with pytest.raises(BrokerError, match="node 1 runs already"):
        cluster.node(1).start()


def test_wrong_calls_name_the_argument_and_change_nothing(cluster: Broker) -> None:
    cluster.create_topic(TOPIC, partitions=1)
    before = cluster.partition(TOPIC, 0)
    wrong: list[tuple[Callable[[], object], str]] = [
        (lambda: cluster.node(1).slow(-1), "delay_ms"),
        (lambda: cluster.lag(TOPIC, 0, -1), "records"),
        (lambda: cluster.lag(TOPIC, 0, 10**30), "records"),
        (lambda: cluster.shrink_isr(TOPIC, 0, to=[9]), "node 9 is not in sync"),
        (lambda: cluster.advance(-1), "by_ms"),
        (lambda: cluster.advance(10**30), "by_ms"),
        (lambda: cluster.set_clock(10**30), "wall_ms"),
        (lambda: cluster.create_topic(b"other"), "name"),  # type: ignore[arg-type] # wrong
        (lambda: cluster.inject(Fault(node=9)), "there is no node 9"),
    ]
    for call, text in wrong:
        with pytest.raises(BrokerError, match=text):
            call()
    assert cluster.partition(TOPIC, 0) == before
    assert cluster.topics() == {TOPIC: 1}


def test_a_partition_is_not_moved_to_nodes_that_are_dead(cluster: Broker) -> None:
    cluster.create_topic(TOPIC, partitions=1)
    cluster.node(3).kill()
    before = cluster.partition(TOPIC, 0)
    with pytest.raises(BrokerError, match=r"\[3\] do not run"):
        cluster.reassign(TOPIC, 0, [3])
    assert cluster.partition(TOPIC, 0) == before


@pytest.mark.parametrize("nodes", [0, -1, 65, 3.0, "3"])
def test_a_wrong_number_of_nodes(nodes: int) -> None:
    with pytest.raises(ValueError, match=r"nodes is .*, not a whole number from 1 to 64"):
        Broker(nodes=nodes)


def test_a_node_of_a_broker_that_was_not_started() -> None:
    with pytest.raises(BrokerError, match="was not started"):
        Broker(nodes=3).node(1)


def test_reset_ends_delays_of_slow_nodes(cluster: Broker) -> None:
    cluster.create_topic(TOPIC, partitions=1)
    writer = producer(cluster)
    writer.produce(TOPIC, b"before")
    assert writer.flush(PATIENCE_S) == 0
    cluster.node(cluster.partition(TOPIC, 0).leader).slow(3_600_000)
    counted = cluster.inject(Fault(api="PRODUCE"))
    writer.produce(TOPIC, b"slow")
    counted.wait(within=PATIENCE_S * 1000)
    cluster.reset()
    assert writer.flush(PATIENCE_S) == 0


def move_leader(cluster: Broker, leader: int) -> None:
    cluster.move_leader(TOPIC, 0, to=leader % 3 + 1)


def kill_leader(cluster: Broker, leader: int) -> None:
    cluster.node(leader).kill()


@pytest.mark.parametrize("change", [move_leader, kill_leader])
def test_a_change_that_a_full_disk_refuses_can_be_repeated(
    change: Callable[[Broker, int], None], cluster: Broker
) -> None:
    cluster.create_topic(TOPIC, partitions=1)
    before = cluster.partition(TOPIC, 0)
    cluster.fill_disk()
    with pytest.raises(BrokerError, match="KAFKA_STORAGE_ERROR"):
        change(cluster, before.leader)
    assert cluster.partition(TOPIC, 0) == before
    cluster.free_disk()
    with WireClient(int(cluster.node(before.leader).address.rpartition(":")[2])) as client:
        client.ask(ListGroupsRequest(), ListGroupsResponse, 4)
    change(cluster, before.leader)
    after = cluster.partition(TOPIC, 0)
    assert after.leader != before.leader
    assert after.leader_epoch == before.leader_epoch + 1


def kill_all(cluster: Broker) -> None:
    """Let a topic have no leader, and the disk be full."""
    cluster.create_topic(TOPIC, partitions=1)
    for node in cluster.nodes:
        node.kill()
    cluster.fill_disk()


def test_reset_brings_nodes_back_although_the_disk_is_full(cluster: Broker) -> None:
    kill_all(cluster)
    cluster.reset()
    cluster.create_topic(TOPIC, partitions=1)
    assert sorted(cluster.partition(TOPIC, 0).isr) == [1, 2, 3]


def test_a_node_that_a_full_disk_keeps_from_leading_can_be_started_later(cluster: Broker) -> None:
    kill_all(cluster)
    last = cluster.nodes[-1]
    with pytest.raises(BrokerError, match="KAFKA_STORAGE_ERROR"):
        last.start()
    cluster.free_disk()
    last.start()
    assert cluster.partition(TOPIC, 0).leader == 3


def test_a_topic_made_below_its_min_insync_replicas_shows_nothing_yet(cluster: Broker) -> None:
    for node in (2, 3):
        cluster.node(node).kill()
    cluster.create_topic(TOPIC, partitions=1, configs={"min.insync.replicas": "2"})
    writer = producer(cluster, acks=1)
    writer.produce(TOPIC, b"early")
    assert writer.flush(PATIENCE_S) == 0
    assert cluster.records(TOPIC) == []
    cluster.node(2).start()
    assert [record.value for record in cluster.records(TOPIC)] == [b"early"]


def test_a_fault_of_a_write_while_followers_of_another_partition_lag(cluster: Broker) -> None:
    cluster.create_topic(TOPIC, partitions=2)
    cluster.lag(TOPIC, 1, 1)
    writer = producer(cluster)
    fault = None
    for value in (b"one", b"two", b"three"):
        writer.produce(TOPIC, value, partition=0)
        assert writer.flush(PATIENCE_S) == 0
        fault = fault or cluster.inject(Fault(api="PRODUCE", delay_before_ms=1, times=None))
    assert fault is not None
    assert fault.fired() == 2
    assert "failed inside the broker" not in cluster.last_log_lines()


def test_a_partition_that_moves_loses_no_records(cluster: Broker) -> None:
    cluster.create_topic(TOPIC, partitions=1)
    for number, replicas in enumerate(([1], [2], [1, 3], [2], [3, 2], [1])):
        cluster.reassign(TOPIC, 0, replicas)
        cluster.produce(TOPIC, b"%d" % number)
    values = [record.value for record in cluster.records(TOPIC)]
    assert values == [b"%d" % number for number in range(6)]


def test_a_snapshot_keeps_records_that_an_unclean_election_loses(cluster: Broker) -> None:
    configs = {"segment.bytes": str(1 << 20), "unclean.leader.election.enable": "true"}
    cluster.create_topic(TOPIC, 1, configs)
    cluster.produce(TOPIC, b"at all nodes")
    cluster.shrink_isr(TOPIC, 0)
    for _ in range(3):
        cluster.produce(TOPIC, bytes(900_000))
    before = cluster.records(TOPIC)
    snapshot = cluster.snapshot()
    cluster.node(cluster.partition(TOPIC, 0).leader).kill()
    assert len(cluster.records(TOPIC)) == 1
    cluster.produce(TOPIC, b"of the new leader")
    cluster.restore(snapshot)
    assert cluster.records(TOPIC) == before


def test_a_partition_does_not_move_to_a_replica_that_is_not_in_sync(cluster: Broker) -> None:
    cluster.create_topic(TOPIC, partitions=1)
    leader = cluster.partition(TOPIC, 0).leader
    cluster.shrink_isr(TOPIC, 0)
    with pytest.raises(BrokerError, match="none of them is in sync"):
        cluster.reassign(TOPIC, 0, [node.id for node in cluster.nodes if node.id != leader])


def test_a_paused_node_is_noticed_when_the_clock_is_moved(cluster: Broker) -> None:
    cluster.create_topic(TOPIC, partitions=1)
    leader = cluster.partition(TOPIC, 0).leader
    cluster.node(leader).pause()
    cluster.advance(1)
    assert cluster.partition(TOPIC, 0).leader == leader
    cluster.advance(timedelta(seconds=9))  # broker.session.timeout.ms
    assert cluster.partition(TOPIC, 0).leader != leader


def test_connections_to_all_nodes_are_counted() -> None:
    with Broker(nodes=2, console=True) as broker:
        addresses = broker.bootstrap_servers.split(",")
        clients = [WireClient(int(address.rpartition(":")[2])) for address in addresses]
        for client in clients:
            client.ask(ListGroupsRequest(), ListGroupsResponse, 4)
        with urllib.request.urlopen(f"{broker.console_url}/metrics") as answer:
            series = Series(answer.read().decode())
        for client in clients:
            client.close()
        log = broker.log_file.read_text()
    assert series.value("kafka_server_socket_server_metrics_connection_count") >= len(clients)
    opened = series.value("kafka_server_socket_server_metrics_connection_creation_total")
    assert opened >= len(clients)
    for node, address in enumerate(addresses, 1):
        assert f"node {node}: PLAINTEXT listens on {address}" in log
