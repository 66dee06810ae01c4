"""The administrative requests, handler by handler, on a broker that listens nowhere.

That answers equal Apache Kafka's is shown by tests/conformance/test_same_answers.py; here is what a
healthy broker of one directory does not show.
"""

import asyncio
import inspect
import logging
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from odradek.broker.broker import Broker
from odradek.config.broker_config import BrokerConfig
from odradek.coordinator.metadata.configs import ConfigResourceType
from odradek.coordinator.metadata.topic_creation import NewTopic
from odradek.coordinator.runtime.outcome import JournalRecord, Outcome
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.create_topics import (
    CreateTopicsConfig,
    CreateTopicsRequest,
    CreateTopicsTopic,
)
from odradek.protocol.messages.delete_topics import DeleteTopicsRequest
from odradek.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from odradek.protocol.messages.describe_log_dirs import DescribeLogDirsRequest
from odradek.protocol.messages.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumRequestPartitionData,
    DescribeQuorumRequestTopicData,
)
from odradek.protocol.messages.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsRequestTopic,
)
from odradek.protocol.messages.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersTopicPartitions,
)
from odradek.protocol.messages.init_producer_id import InitProducerIdRequest
from odradek.protocol.messages.list_transactions import ListTransactionsRequest
from odradek.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from odradek.protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from odradek.protocol.messages.produce import (
    ProducePartitionData,
    ProduceRequest,
    ProduceTopicData,
)
from odradek.protocol.record import Record
from odradek.protocol.record_batch import build_batch
from odradek.protocol.records.cluster_metadata import PartitionChangeRecord
from odradek.protocol.schema import Message, replace
from tests.support.contexts import handled, request_context

NOW_MS = 1_700_000_000_000


class Rig:
    """A broker with its data open, and a client that calls its handlers."""

    def __init__(self, directories: list[Path], **settings: str) -> None:
        texts = {name.replace("_", "."): value for name, value in settings.items()}
        self.config = BrokerConfig.from_texts(
            {
                "log.dirs": ",".join(map(str, directories)),
                "listeners": "PLAINTEXT://localhost:9092",
                **texts,
            }
        )
        self.broker = self.opened()

    def opened(self) -> Broker:
        loop = asyncio.get_running_loop()
        return Broker(self.config, loop, {"PLAINTEXT": 9092}, now_ms=lambda: NOW_MS)

    async def ask(self, request: Message, version: int) -> Any:
        spec = type(request).SPEC
        assert spec.key is not None
        context = request_context(self.broker, version, NOW_MS)
        answer = handled(context, request)
        if inspect.isawaitable(answer):
            answer = await answer
        answer.encode(version)  # every answer can be written
        return answer

    def journal(self, message: Message) -> None:
        """Write a record into the metadata log, as another tool may have done."""
        record = self.broker.metadata.features.versioned(message)
        assert isinstance(record, JournalRecord)
        outcome = Outcome(reply=None, records=(record,))
        self.broker.controller._journal.commit(outcome, NOW_MS)


@pytest.fixture
async def rig(tmp_path: Path) -> AsyncIterator[Rig]:
    made = Rig([tmp_path / "data"])
    yield made
    await made.broker.close()


def new_topic(name: str, **configs: str) -> CreateTopicsTopic:
    return CreateTopicsTopic(
        name=name,
        num_partitions=1,
        replication_factor=1,
        assignments=[],
        configs=[
            CreateTopicsConfig(name=key.replace("_", "."), value=value)
            for key, value in configs.items()
        ],
    )


# -- topics ---------------------------------------------------------------------------------------


async def test_a_created_topic_is_described_with_the_sources_of_its_configs(tmp_path: Path) -> None:
    rig = Rig([tmp_path / "data"], log_retention_hours="2", log_segment_bytes="2000000")
    request = CreateTopicsRequest(topics=[new_topic("t", flush_ms=" 10 ")])
    answer = await rig.ask(request, 7)
    configs = {one.name: (one.value, one.config_source) for one in answer.topics[0].configs}
    assert configs["flush.ms"] == (" 10 ", 1)
    assert configs["retention.ms"] == ("7200000", 4)  # by another name, in another unit
    assert configs["segment.bytes"] == ("2000000", 4)
    assert configs["cleanup.policy"] == ("delete", 5)
    assert list(configs) == sorted(configs)
    await rig.broker.close()


@pytest.mark.parametrize("values", [(None, "1000"), ("1000", None)])
async def test_a_key_without_a_value_is_refused_also_if_it_has_one_elsewhere(
    rig: Rig, values: tuple[str | None, ...]
) -> None:
    configs = [CreateTopicsConfig(name="retention.ms", value=value) for value in values]
    topic = replace(new_topic("t"), configs=configs)
    [answer] = (await rig.ask(CreateTopicsRequest(topics=[topic]), 7)).topics
    assert answer.error_code == ErrorCode.INVALID_CONFIG
    assert answer.error_message == "Null value not supported for topic configs: retention.ms"
    assert not rig.broker.metadata.topics


async def test_a_request_for_too_many_partitions_is_refused_as_a_whole(rig: Rig) -> None:
    wish = CreateTopicsTopic(
        name="many", num_partitions=10_001, replication_factor=1, assignments=[], configs=[]
    )
    answer = await rig.ask(CreateTopicsRequest(topics=[wish, new_topic("innocent")]), 7)
    codes = {one.name: one.error_code for one in answer.topics}
    assert codes == {"many": ErrorCode.POLICY_VIOLATION, "innocent": ErrorCode.POLICY_VIOLATION}
    assert not rig.broker.metadata.topics


@pytest.mark.parametrize(
    ("version", "code"), [(2, ErrorCode.INVALID_REQUEST), (3, ErrorCode.TOPIC_DELETION_DISABLED)]
)
async def test_nothing_is_deleted_where_deletion_is_disabled(
    tmp_path: Path, version: int, code: ErrorCode
) -> None:
    rig = Rig([tmp_path / "data"], delete_topic_enable="false")
    await rig.broker.admin.topics.create([NewTopic(name="t")])
    answer = await rig.ask(DeleteTopicsRequest(topic_names=["t"], timeout_ms=0), version)
    assert [one.error_code for one in answer.responses] == [code]
    assert "t" in rig.broker.metadata.topics
    await rig.broker.close()


async def test_metadata_describes_a_topic_in_the_answer_that_creates_it(rig: Rig) -> None:
    request = MetadataRequest(topics=[MetadataRequestTopic(name="named")])
    answer = await rig.ask(request, 12)
    [topic] = answer.topics
    assert (topic.error_code, len(topic.partitions)) == (ErrorCode.NONE, 1)
    assert topic.partitions[0].leader_id == rig.broker.nodes.own_id


async def test_topics_and_what_was_deleted_outlive_a_kill(rig: Rig) -> None:
    await rig.ask(CreateTopicsRequest(topics=[new_topic("kept"), new_topic("gone")]), 7)
    await rig.ask(DeleteTopicsRequest(topic_names=["gone"], timeout_ms=0), 5)
    kept = rig.broker.metadata.topics["kept"].id
    for directory in rig.broker.log_manager.directories:
        directory.unlock()  # all that a killed process gives back
    rig.broker = rig.opened()
    assert {name: topic.id for name, topic in rig.broker.metadata.topics.items()} == {"kept": kept}
    assert rig.broker.log_manager.find("gone", 0) is None


async def test_pages_are_no_larger_than_the_broker_allows(tmp_path: Path) -> None:
    rig = Rig([tmp_path / "data"], max_request_partition_size_limit="2")
    for name in ("a", "b", "c"):
        await rig.broker.admin.topics.create([NewTopic(name=name)])
    answer = await rig.ask(DescribeTopicPartitionsRequest(topics=[]), 0)
    assert [topic.name for topic in answer.topics] == ["a", "b"]
    assert answer.next_cursor.topic_name == "c"
    rest = DescribeTopicPartitionsRequest(topics=[], cursor=answer.next_cursor)
    assert [topic.name for topic in (await rig.ask(rest, 0)).topics] == ["c"]
    await rig.broker.close()


async def test_following_the_cursor_meets_every_partition_once(rig: Rig) -> None:
    for name, partitions in (("a", 3), ("b", 1), ("c", 4)):
        await rig.broker.admin.topics.create([NewTopic(name=name, partition_count=partitions)])
    met: list[tuple[str, int]] = []
    cursor = None
    for _ in range(10):
        names = [DescribeTopicPartitionsRequestTopic(name=name) for name in "abcx"]
        request = DescribeTopicPartitionsRequest(
            topics=names, response_partition_limit=2, cursor=cursor
        )
        answer = await rig.ask(request, 0)
        met += [
            (one.name, part.partition_index) for one in answer.topics for part in one.partitions
        ]
        cursor = answer.next_cursor
        if cursor is None:
            break
    assert met == [("a", 0), ("a", 1), ("a", 2), ("b", 0), *(("c", index) for index in range(4))]


async def test_a_partition_that_nobody_leads_can_be_led_again_by_an_unclean_election(
    rig: Rig,
) -> None:
    await rig.broker.admin.topics.create([NewTopic(name="t")])
    topic = rig.broker.metadata.topics["t"]
    rig.journal(PartitionChangeRecord(partition_id=0, topic_id=topic.id, leader=-1, isr=[]))

    async def elect(election_type: int) -> int:
        wanted = [ElectLeadersTopicPartitions(topic="t", partitions=[0])]
        request = ElectLeadersRequest(election_type=election_type, topic_partitions=wanted)
        answer = await rig.ask(request, 2)
        code: int = answer.replica_election_results[0].partition_result[0].error_code
        return code

    assert await elect(0) == ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE
    assert await elect(1) == ErrorCode.NONE
    assert rig.broker.metadata.topics["t"].partitions[0].leader == rig.broker.nodes.own_id
    assert await elect(1) == ErrorCode.ELECTION_NOT_NEEDED


async def test_the_results_of_elections_are_those_of_the_entries_in_their_order(rig: Rig) -> None:
    await rig.broker.admin.topics.create([NewTopic(name="t", partition_count=3)])

    async def elect(wanted: list[tuple[str, list[int]]] | None) -> list[tuple[str, list[int]]]:
        topics = (
            None
            if wanted is None
            else [
                ElectLeadersTopicPartitions(topic=name, partitions=indexes)
                for name, indexes in wanted
            ]
        )
        answer = await rig.ask(ElectLeadersRequest(topic_partitions=topics), 2)
        return [
            (one.topic, [part.partition_id for part in one.partition_result])
            for one in answer.replica_election_results
        ]

    wanted = [("t", [2, 0]), ("none", [7]), ("t", [1, 1]), ("t", [])]
    assert await elect(wanted) == wanted
    assert ("t", []) in await elect(None)  # no partition of it needs an election


# -- configs --------------------------------------------------------------------------------------


async def configs_of(rig: Rig, kind: int, name: str, *keys: str) -> dict[str, Any]:
    resource = DescribeConfigsResource(
        resource_type=kind, resource_name=name, configuration_keys=list(keys) or None
    )
    request = DescribeConfigsRequest(resources=[resource], include_synonyms=True)
    [result] = (await rig.ask(request, 4)).results
    assert result.error_code == ErrorCode.NONE, result.error_message
    return {config.name: config for config in result.configs}


async def test_what_formatting_set_on_all_brokers_is_told_with_its_source(rig: Rig) -> None:
    await rig.broker.admin.topics.create([NewTopic(name="t")])
    defaults = await configs_of(rig, ConfigResourceType.BROKER, "")
    assert {name: (one.value, one.config_source) for name, one in defaults.items()} == {
        "min.insync.replicas": ("1", 3)
    }
    of_topic = await configs_of(rig, ConfigResourceType.TOPIC, "t", "min.insync.replicas")
    synonyms = [(one.name, one.source) for one in of_topic["min.insync.replicas"].synonyms]
    assert synonyms == [("min.insync.replicas", 3), ("min.insync.replicas", 5)]


async def test_loggers_have_levels_by_the_names_that_kafka_knows(rig: Rig) -> None:
    logging.getLogger("odradek.for-this-test").setLevel(logging.WARNING)
    logging.getLogger("somebody.else")
    loggers = await configs_of(rig, ConfigResourceType.BROKER_LOGGER, str(rig.broker.nodes.own_id))
    assert loggers["odradek.for-this-test"].value == "WARN"
    assert loggers["odradek.for-this-test"].config_source == 6
    assert "somebody.else" not in loggers


async def test_secrets_stay_in_the_broker(rig: Rig) -> None:
    configs = await configs_of(rig, ConfigResourceType.BROKER, str(rig.broker.nodes.own_id))
    told = [one.name for one in configs.values() if one.is_sensitive and one.value is not None]
    assert "ssl.key.password" in configs
    assert told == []


# -- the cluster ----------------------------------------------------------------------------------


async def test_the_quorum_is_this_node_and_all_of_its_log_is_safe(rig: Rig) -> None:
    await rig.broker.admin.topics.create([NewTopic(name="t")])
    asked = DescribeQuorumRequestTopicData(
        topic_name="__cluster_metadata",
        partitions=[DescribeQuorumRequestPartitionData(partition_index=0)],
    )
    answer = await rig.ask(DescribeQuorumRequest(topics=[asked]), 2)
    [partition] = answer.topics[0].partitions
    [voter] = partition.current_voters
    log = rig.broker.controller.log
    assert partition.leader_id == voter.replica_id == rig.broker.nodes.own_id
    assert partition.leader_epoch == rig.broker.controller.quorum_epoch
    assert partition.high_watermark == voter.log_end_offset == log.log_end_offset
    assert voter.replica_directory_id == rig.broker.log_manager.directories[0].directory_id
    assert (voter.last_fetch_timestamp, voter.last_caught_up_timestamp) == (NOW_MS, NOW_MS)


async def test_an_offline_directory_is_told_of_and_the_other_described(tmp_path: Path) -> None:
    rig = Rig([tmp_path / "one", tmp_path / "two"])
    await rig.broker.admin.topics.create([NewTopic(name="t", partition_count=4)])
    manager = rig.broker.log_manager
    manager.take_offline(manager.directories[1], "it was pulled out")
    answer = await rig.ask(DescribeLogDirsRequest(topics=None), 4)
    one, two = answer.results
    assert (one.log_dir, one.error_code) == (str(tmp_path / "one"), ErrorCode.NONE)
    assert [len(topic.partitions) for topic in one.topics] == [2]
    assert 0 < one.usable_bytes <= one.total_bytes
    assert (two.log_dir, two.error_code) == (str(tmp_path / "two"), ErrorCode.KAFKA_STORAGE_ERROR)
    assert two.topics == []
    await rig.broker.close()


async def test_sizes_are_those_of_the_records(rig: Rig) -> None:
    await rig.broker.admin.topics.create([NewTopic(name="t")])
    batch = bytes(build_batch([Record(None, b"x" * 1000, NOW_MS)]))
    await rig.ask(produce_request("t", batch), 12)
    answer = await rig.ask(DescribeLogDirsRequest(topics=None), 4)
    [topic] = answer.results[0].topics
    assert topic.partitions[0].partition_size == len(batch)


# -- producers and epochs -------------------------------------------------------------------------


def produce_request(topic: str, batch: bytes) -> ProduceRequest:
    partition = ProducePartitionData(index=0, records=batch)
    return ProduceRequest(
        acks=-1,
        timeout_ms=1000,
        topic_data=[ProduceTopicData(name=topic, partition_data=[partition])],
    )


INIT = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1000)


async def test_no_producer_id_leaves_before_its_block_is_on_the_disk(rig: Rig) -> None:
    log = rig.broker.controller.log
    answer = await rig.ask(INIT, 4)
    assert answer.error_code == ErrorCode.NONE
    assert log.recovery_point == log.log_end_offset
    assert rig.broker.metadata.next_producer_id > answer.producer_id


async def test_producer_ids_are_never_given_twice_not_even_by_a_killed_broker(rig: Rig) -> None:
    first = [(await rig.ask(INIT, 4)).producer_id for _ in range(1001)]
    for directory in rig.broker.log_manager.directories:
        directory.unlock()
    rig.broker = rig.opened()
    second = [(await rig.ask(INIT, 4)).producer_id for _ in range(10)]
    assert len(set(first + second)) == len(first) + len(second)


async def test_a_transactional_batch_without_a_transactional_id_refuses_the_whole_request(
    rig: Rig,
) -> None:
    await rig.broker.admin.topics.create([NewTopic(name="t")])
    batch = build_batch(
        [Record(None, b"x", NOW_MS)],
        producer_id=1,
        producer_epoch=0,
        base_sequence=0,
        is_transactional=True,
    )
    plain = build_batch([Record(None, b"x", NOW_MS)])
    request = ProduceRequest(
        acks=1,
        timeout_ms=1000,
        topic_data=[
            ProduceTopicData(
                name=name, partition_data=[ProducePartitionData(index=0, records=bytes(records))]
            )
            for name, records in (("t", plain), ("absent", plain), ("t", batch))
        ],
    )
    answer = await rig.ask(request, 12)
    codes = [one.error_code for topic in answer.responses for one in topic.partition_responses]
    assert codes == [ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED] * 3
    assert rig.broker.log_manager.get("t", 0).log_end_offset == 0


async def test_transactional_ids_are_not_searched_with_a_costly_expression(rig: Rig) -> None:
    request = ListTransactionsRequest(
        state_filters=[], producer_id_filters=[], transactional_id_pattern="a?" * 2001
    )
    answer = await rig.ask(request, 2)
    assert answer.error_code == ErrorCode.INVALID_REGULAR_EXPRESSION


async def test_the_end_of_an_old_epoch_is_where_the_new_one_began(rig: Rig) -> None:
    await rig.broker.admin.topics.create([NewTopic(name="t")])
    batch = bytes(build_batch([Record(None, b"x", NOW_MS), Record(None, b"y", NOW_MS)]))
    await rig.ask(produce_request("t", batch), 12)
    log = rig.broker.log_manager.get("t", 0)
    log.become_leader(3)
    await rig.ask(produce_request("t", batch), 12)

    async def end_of(epoch: int, current: int = -1) -> tuple[int, int, int]:
        partition = OffsetForLeaderPartition(
            partition=0, leader_epoch=epoch, current_leader_epoch=current
        )
        topic = OffsetForLeaderTopic(topic="t", partitions=[partition])
        answer = await rig.ask(OffsetForLeaderEpochRequest(topics=[topic]), 4)
        [end] = answer.topics[0].partitions
        return end.error_code, end.leader_epoch, end.end_offset

    assert await end_of(0) == (ErrorCode.NONE, 0, 2)
    assert await end_of(2) == (ErrorCode.NONE, 0, 2)
    assert await end_of(3) == (ErrorCode.NONE, 3, 4)
    assert await end_of(4) == (ErrorCode.NONE, -1, -1)
    assert await end_of(3, current=2) == (ErrorCode.FENCED_LEADER_EPOCH, -1, -1)
    assert await end_of(3, current=4) == (ErrorCode.UNKNOWN_LEADER_EPOCH, -1, -1)
