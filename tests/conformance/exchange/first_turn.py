"""Transactions, groups of the newer kinds, ACLs, users and quotas: written once, and asked for."""

import time
from typing import Any

from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.add_offsets_to_txn import (
    AddOffsetsToTxnRequest,
    AddOffsetsToTxnResponse,
)
from odradek.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
)
from odradek.protocol.messages.alter_client_quotas import (
    AlterClientQuotasEntityData,
    AlterClientQuotasOpData,
    AlterClientQuotasRequest,
    AlterClientQuotasRequestEntryData,
    AlterClientQuotasResponse,
)
from odradek.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsUpsertion,
)
from odradek.protocol.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
)
from odradek.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from odradek.protocol.messages.create_acls import (
    CreateAclsCreation,
    CreateAclsRequest,
    CreateAclsResponse,
)
from odradek.protocol.messages.describe_acls import DescribeAclsRequest, DescribeAclsResponse
from odradek.protocol.messages.describe_client_quotas import (
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
)
from odradek.protocol.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
)
from odradek.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse
from odradek.protocol.messages.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from odradek.protocol.messages.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from odradek.protocol.messages.list_transactions import (
    ListTransactionsRequest,
    ListTransactionsResponse,
)
from odradek.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from odradek.protocol.messages.produce import ProduceResponse
from odradek.protocol.messages.share_group_describe import (
    ShareGroupDescribeRequest,
    ShareGroupDescribeResponse,
)
from odradek.protocol.messages.share_group_heartbeat import (
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
)
from odradek.protocol.messages.streams_group_describe import (
    StreamsGroupDescribeRequest,
    StreamsGroupDescribeResponse,
)
from odradek.protocol.messages.streams_group_heartbeat import (
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
    StreamsGroupHeartbeatSubtopology,
    StreamsGroupHeartbeatTopology,
)
from odradek.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
)
from odradek.protocol.primitives import random_uuid, uuid_text
from odradek.protocol.schema import Message
from tests.conformance.requests import batch_of, request_with
from tests.support.wire import Response, WireClient

GROUP, TRANSACTION = 0, 1
CONSUMERS, SHARERS, STREAMS = "newer", "sharing", "streaming"
ANY = 1
WAIT_SECONDS = 90.0
NOT_YET = {
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.CONCURRENT_TRANSACTIONS,
}


def batch_of_now(*values: str, **fields: Any) -> bytes:
    """Old records might go by retention, and a producer whose records are old be forgotten."""
    return bytes(batch_of(*values, at_ms=time.time_ns() // 1_000_000, **fields))


def ask_until_ready(
    client: WireClient, request: Message, response: type[Response], version: int
) -> Any:
    """The first answer that does not say "not yet"; it must say no other error either."""
    deadline = time.monotonic() + WAIT_SECONDS
    while True:
        answer: Any = client.ask(request, response, version)
        code = answer.error_code
        if code not in NOT_YET:
            assert code == ErrorCode.NONE, (answer, request)
            return answer
        assert time.monotonic() < deadline, (answer, request)
        time.sleep(0.05)


def find_coordinator(client: WireClient, key: str, key_type: int) -> None:
    """Have the coordinator's topic made, and its partitions loaded."""
    request = FindCoordinatorRequest(key=key, key_type=key_type)
    ask_until_ready(client, request, FindCoordinatorResponse, 3)


# -- transactions ---------------------------------------------------------------------------------


class Transactions:
    """A transactional producer of one id, by hand."""

    def __init__(self, client: WireClient, transactional_id: str) -> None:
        self.client = client
        self.transactional_id = transactional_id
        find_coordinator(client, transactional_id, TRANSACTION)
        request = InitProducerIdRequest(
            transactional_id=transactional_id, transaction_timeout_ms=900_000
        )
        told = ask_until_ready(client, request, InitProducerIdResponse, 4)
        self.producer_id: int = told.producer_id
        self.epoch: int = told.producer_epoch
        self._sequences: dict[tuple[str, int], int] = {}

    def write(self, topic: str, partition: int, *values: str) -> None:
        """Records of the open transaction, which this may begin."""
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self.transactional_id,
            v3_and_below_producer_id=self.producer_id,
            v3_and_below_producer_epoch=self.epoch,
            v3_and_below_topics=[AddPartitionsToTxnTopic(name=topic, partitions=[partition])],
        )
        self._until_done(
            lambda: (
                self.client.ask(request, AddPartitionsToTxnResponse, 3)
                .results_by_topic_v3_and_below[0]
                .results_by_partition[0]
                .partition_error_code
            )
        )
        sequence = self._sequences.get((topic, partition), 0)
        producer = (self.producer_id, self.epoch, sequence)
        batch = batch_of_now(*values, producer=producer, transactional=True)
        produce = request_with(
            topic, batch, partition=partition, transactional_id=self.transactional_id
        )
        told = self.client.ask(produce, ProduceResponse, 11)
        [answer] = told.responses[0].partition_responses
        assert answer.error_code == ErrorCode.NONE, answer
        self._sequences[topic, partition] = sequence + len(values)

    def commit_offsets(self, group: str, topic: str, offset: int) -> None:
        """Offsets of a group, in the open transaction."""
        add = AddOffsetsToTxnRequest(
            transactional_id=self.transactional_id,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            group_id=group,
        )
        ask_until_ready(self.client, add, AddOffsetsToTxnResponse, 3)
        place = TxnOffsetCommitRequestPartition(
            partition_index=0, committed_offset=offset, committed_metadata="in a transaction"
        )
        commit = TxnOffsetCommitRequest(
            transactional_id=self.transactional_id,
            group_id=group,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            topics=[TxnOffsetCommitRequestTopic(name=topic, partitions=[place])],
        )
        self._until_done(
            lambda: (
                self.client.ask(commit, TxnOffsetCommitResponse, 3)
                .topics[0]
                .partitions[0]
                .error_code
            )
        )

    def end(self, *, committed: bool) -> None:
        """Commit or abort; the markers are there when this returns."""
        request = EndTxnRequest(
            transactional_id=self.transactional_id,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            committed=committed,
        )
        ask_until_ready(self.client, request, EndTxnResponse, 3)
        deadline = time.monotonic() + WAIT_SECONDS
        while transactions(self.client)[self.transactional_id][1] not in (
            "CompleteCommit",
            "CompleteAbort",
        ):
            assert time.monotonic() < deadline
            time.sleep(0.02)

    def _until_done(self, ask: Any) -> None:
        deadline = time.monotonic() + WAIT_SECONDS
        while (code := ask()) in NOT_YET:
            assert time.monotonic() < deadline, code
            time.sleep(0.05)
        assert code == ErrorCode.NONE, code


def transactions(client: WireClient) -> dict[str, tuple[int, str]]:
    """By transactional id: the producer id and the state."""
    request = ListTransactionsRequest(state_filters=[], producer_id_filters=[])
    told = client.ask(request, ListTransactionsResponse, 1)
    assert told.error_code == ErrorCode.NONE
    return {
        one.transactional_id: (one.producer_id, one.transaction_state)
        for one in told.transaction_states
    }


# -- groups of the newer kinds --------------------------------------------------------------------


def consumer_group(client: WireClient, group: str, topic: str, offset: int) -> None:
    """A group of KIP-848 with one member that commits and leaves."""
    find_coordinator(client, group, GROUP)
    member = uuid_text(random_uuid())
    join = ConsumerGroupHeartbeatRequest(
        group_id=group,
        member_id=member,
        member_epoch=0,
        rebalance_timeout_ms=60_000,
        subscribed_topic_names=[topic],
        topic_partitions=[],
    )
    told = ask_until_ready(client, join, ConsumerGroupHeartbeatResponse, 1)
    place = OffsetCommitRequestPartition(
        partition_index=0, committed_offset=offset, committed_metadata="by a consumer group"
    )
    commit = OffsetCommitRequest(
        group_id=group,
        generation_id_or_member_epoch=told.member_epoch,
        member_id=member,
        topics=[OffsetCommitRequestTopic(name=topic, partitions=[place])],
    )
    [answer] = client.ask(commit, OffsetCommitResponse, 9).topics[0].partitions
    assert answer.error_code == ErrorCode.NONE, answer
    leave = ConsumerGroupHeartbeatRequest(group_id=group, member_id=member, member_epoch=-1)
    ask_until_ready(client, leave, ConsumerGroupHeartbeatResponse, 1)


def share_group(client: WireClient, group: str, topic: str, *, until_assigned: bool = True) -> None:
    """A share group of one member that leaves, once it has its partitions or at once."""
    find_coordinator(client, group, GROUP)
    member = uuid_text(random_uuid())
    epoch = 0
    deadline = time.monotonic() + WAIT_SECONDS
    while True:
        beat = ShareGroupHeartbeatRequest(
            group_id=group,
            member_id=member,
            member_epoch=epoch,
            subscribed_topic_names=[topic] if epoch == 0 else None,
        )
        told = ask_until_ready(client, beat, ShareGroupHeartbeatResponse, 1)
        epoch = told.member_epoch
        if not until_assigned or (told.assignment is not None and told.assignment.topic_partitions):
            break
        assert time.monotonic() < deadline, told
        time.sleep(0.1)
    leave = ShareGroupHeartbeatRequest(group_id=group, member_id=member, member_epoch=-1)
    ask_until_ready(client, leave, ShareGroupHeartbeatResponse, 1)


def streams_group(client: WireClient, group: str, topic: str) -> None:
    """A streams group of one member that joins, with a topology of one task, and leaves."""
    find_coordinator(client, group, GROUP)
    member = uuid_text(random_uuid())
    tasks = StreamsGroupHeartbeatSubtopology(
        subtopology_id="0",
        source_topics=[topic],
        source_topic_regex=[],
        state_changelog_topics=[],
        repartition_sink_topics=[],
        repartition_source_topics=[],
        copartition_groups=[],
    )
    join = StreamsGroupHeartbeatRequest(
        group_id=group,
        member_id=member,
        member_epoch=0,
        endpoint_information_epoch=0,
        rebalance_timeout_ms=60_000,
        topology=StreamsGroupHeartbeatTopology(epoch=0, subtopologies=[tasks]),
        active_tasks=[],
        standby_tasks=[],
        warmup_tasks=[],
        process_id="process",
        client_tags=[],
    )
    ask_until_ready(client, join, StreamsGroupHeartbeatResponse, 0)
    leave = StreamsGroupHeartbeatRequest(
        group_id=group, member_id=member, member_epoch=-1, endpoint_information_epoch=0
    )
    ask_until_ready(client, leave, StreamsGroupHeartbeatResponse, 0)


# -- security and quotas --------------------------------------------------------------------------


def protect(client: WireClient) -> None:
    """An ACL, two SCRAM users, two quotas."""
    acl = CreateAclsCreation(
        resource_type=2,
        resource_name="plain",
        principal="User:alice",
        host="*",
        operation=3,
        permission_type=3,
    )
    [made] = client.ask(CreateAclsRequest(creations=[acl]), CreateAclsResponse, 3).results
    assert made.error_code == ErrorCode.NONE, made
    users = [
        AlterUserScramCredentialsUpsertion(
            name=name, mechanism=mechanism, iterations=4096, salt=b"salt", salted_password=b"p"
        )
        for name, mechanism in (("alice", 1), ("bob", 2))
    ]
    scram = AlterUserScramCredentialsRequest(deletions=[], upsertions=users)
    told = client.ask(scram, AlterUserScramCredentialsResponse, 0)
    assert {one.error_code for one in told.results} == {ErrorCode.NONE}, told
    entries = [
        AlterClientQuotasRequestEntryData(
            entity=[AlterClientQuotasEntityData(entity_type="user", entity_name=name)],
            ops=[AlterClientQuotasOpData(key="producer_byte_rate", value=1e9, remove=False)],
        )
        for name in ("alice", None)
    ]
    quotas = AlterClientQuotasRequest(entries=entries, validate_only=False)
    answer = client.ask(quotas, AlterClientQuotasResponse, 1)
    assert {one.error_code for one in answer.entries} == {ErrorCode.NONE}, answer


def kept(port: int) -> dict[str, Any]:
    """What is there of all this: it must be the same after any number of turns."""
    with WireClient(port) as client:
        for group in (CONSUMERS, SHARERS, STREAMS):
            find_coordinator(client, group, GROUP)
        acls = client.ask(
            DescribeAclsRequest(
                resource_type_filter=ANY,
                resource_name_filter=None,
                pattern_type_filter=ANY,
                principal_filter=None,
                host_filter=None,
                operation=ANY,
                permission_type=ANY,
            ),
            DescribeAclsResponse,
            3,
        )
        users = client.ask(
            DescribeUserScramCredentialsRequest(users=None),
            DescribeUserScramCredentialsResponse,
            0,
        )
        quotas = client.ask(
            DescribeClientQuotasRequest(components=[], strict=False),
            DescribeClientQuotasResponse,
            1,
        )
        consumers = client.ask(
            ConsumerGroupDescribeRequest(
                group_ids=[CONSUMERS], include_authorized_operations=False
            ),
            ConsumerGroupDescribeResponse,
            1,
        )
        sharers = client.ask(
            ShareGroupDescribeRequest(group_ids=[SHARERS], include_authorized_operations=False),
            ShareGroupDescribeResponse,
            1,
        )
        streams = client.ask(
            StreamsGroupDescribeRequest(group_ids=[STREAMS], include_authorized_operations=False),
            StreamsGroupDescribeResponse,
            0,
        )
        return {
            "acls": [repr(one) for one in acls.resources],
            "users": sorted(repr(one) for one in users.results),
            "quotas": sorted(repr(one) for one in quotas.entries or ()),
            "consumer groups": sorted(repr(one) for one in consumers.groups),
            "share groups": sorted(repr(one) for one in sharers.groups),
            "streams groups": sorted(repr(one) for one in streams.groups),
            "transactions": transactions(client),
        }
