"""What the broker says about itself, and what it hands out."""

import struct
from typing import Any

from odradek.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from odradek.protocol.messages.create_acls import CreateAclsRequest
from odradek.protocol.messages.delete_acls import DeleteAclsRequest
from odradek.protocol.messages.describe_acls import DescribeAclsRequest
from odradek.protocol.messages.describe_cluster import DescribeClusterRequest
from odradek.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from odradek.protocol.messages.describe_log_dirs import (
    DescribeLogDirsRequest,
    DescribeLogDirsRequestTopic,
)
from odradek.protocol.messages.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumRequestPartitionData,
    DescribeQuorumRequestTopicData,
)
from odradek.protocol.messages.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersTopicPartitions,
)
from odradek.protocol.messages.init_producer_id import InitProducerIdRequest
from odradek.protocol.messages.unregister_controller import UnregisterControllerRequest
from tests.conformance.authorization.acl_requests import ENTRY, OF_TEST
from tests.conformance.conversation import ApiKey, Conversation, only, patiently
from tests.conformance.requests import batch_of, produce
from tests.support.requests import build

OWN_NODE = 0
TOPIC, BROKER, LOGGER, CLIENT_METRICS, GROUP = 2, 4, 8, 16, 32


def versions_are_told(talk: Conversation) -> None:
    for version in talk.versions_of(ApiVersionsRequest):
        request = ApiVersionsRequest(
            client_software_name="odradek-tests", client_software_version="1.0"
        )
        # Clients of Kafka 0.10 ask in version 0: odradek serves older versions to them.
        talk.ask(request, version, _versions_and_features if version else _without_versions)
    latest = talk.versions_of(ApiVersionsRequest)[-1]
    for name, software_version in (
        ("", ""),
        ("-x", "1"),
        ("x y", "1"),
        ("x", ".1"),
        ("a.b-c", "2"),
    ):
        request = ApiVersionsRequest(
            client_software_name=name, client_software_version=software_version
        )
        talk.ask(request, latest, _versions_and_features)


def _without_versions(answer: ApiVersionsResponse) -> dict[str, Any]:
    return only(answer, "error_code", "throttle_time_ms", "zk_migration_ready")


def _versions_and_features(answer: ApiVersionsResponse) -> dict[str, Any]:
    return {
        **_without_versions(answer),
        "keys": sorted((one.api_key, one.min_version, one.max_version) for one in answer.api_keys),
        "supported": sorted(
            (one.name, one.min_version, one.max_version) for one in answer.supported_features
        ),
        # odradek has a dynamic quorum, the Kafka of the tests a static one.
        "finalized": sorted(
            (one.name, one.min_version_level, one.max_version_level)
            for one in answer.finalized_features
            if one.name != "kraft.version"
        ),
    }


def clients_expect_a_cluster_and_a_node(talk: Conversation) -> None:
    """A client gives both, or neither; if they are others, it must bootstrap again (KIP-1242)."""
    description = DescribeClusterRequest(include_cluster_authorized_operations=False)
    own = talk.silently(description, 0).cluster_id
    for cluster, cluster_id in {"none": None, "own": own, "other": "other", "empty": ""}.items():
        for node in (-1, OWN_NODE, OWN_NODE + 7, -2):
            request = ApiVersionsRequest(
                client_software_name="a",
                client_software_version="1",
                cluster_id=cluster_id,
                node_id=node,
            )
            title = f"cluster {cluster}, node {node}"
            talk.ask(request, 5, _versions_and_features, title=title)


def controllers_are_unregistered(talk: Conversation) -> None:
    for controller_id in (OWN_NODE, OWN_NODE + 1, -1, 2**31 - 1):
        talk.ask(UnregisterControllerRequest(controller_id=controller_id), 0)


def versions_that_nobody_knows_are_refused(talk: Conversation) -> None:
    for api_key, version in (
        (ApiKey.API_VERSIONS, 99),
        (ApiKey.METADATA, 99),
        (ApiKey.METADATA, -1),
        (ApiKey.FETCH, 3),
        (ApiKey.PRODUCE, 2),
        (999, 0),
        (-1, 0),
    ):
        # A flexible header, for that is what a version of the future has.
        header = struct.pack(">hhih", api_key, version, 77, 4) + b"talk\x00"
        talk.ask_raw(f"key {api_key} v{version}", header, _without_highest_version)


def _without_highest_version(answer: bytes) -> bytes:
    """The refusal of an ApiVersions names the newest one: that is each broker's own affair."""
    return answer[:-2]


def requests_that_are_cut_close_the_connection(talk: Conversation) -> None:
    frame = struct.pack(">hhih", ApiKey.METADATA, 1, 77, 4) + b"talk"
    talk.ask_raw("nothing", b"")
    talk.ask_raw("half a header", frame[:6])
    talk.ask_raw("no body", frame)
    talk.ask_raw("half a body", frame + struct.pack(">ih", 1, 10) + b"abc")
    talk.ask_raw("too many topics", frame + struct.pack(">i", 1 << 30))
    talk.ask_raw("a negative length", frame + struct.pack(">ih", 1, -1))


def the_cluster_is_described(talk: Conversation) -> None:
    for version in talk.versions_of(DescribeClusterRequest):
        for asked in (False, True):
            for endpoint_type in (1,) if version == 0 else (1, 2, 0, 3, -1):
                request = DescribeClusterRequest(
                    include_cluster_authorized_operations=asked,
                    endpoint_type=endpoint_type,
                    include_fenced_brokers=version >= 2 and asked,
                )
                talk.ask(request, version)


def acls_are_not_served_without_an_authorizer(talk: Conversation) -> None:
    for version in talk.versions_of(DescribeAclsRequest):
        request = DescribeAclsRequest(
            resource_type_filter=1,
            resource_name_filter=None,
            pattern_type_filter=1 if version else 3,
            principal_filter=None,
            host_filter=None,
            operation=1,
            permission_type=1,
        )
        talk.ask(request, version)
        creations = [ENTRY, {**ENTRY, "resource_name": ""}]
        talk.ask(build(CreateAclsRequest, version, creations=creations), version)
        talk.ask(build(DeleteAclsRequest, version, filters=[OF_TEST, OF_TEST]), version)


def topic_configs_are_described(talk: Conversation) -> None:
    talk.create_topic("described-plain")
    talk.create_topic(
        "described-set",
        retention_ms="1000",
        cleanup_policy="delete, compact",
        compression_type="lz4",
        segment_bytes=" 2097152 ",
        preallocate="TRUE",
        min_cleanable_dirty_ratio="0.25",
        leader_replication_throttled_replicas="0:0",
    )
    for version in talk.versions_of(DescribeConfigsRequest):
        for synonyms in (False, True):
            for name in ("described-plain", "described-set"):
                request = _describe(
                    (TOPIC, name, None), include_synonyms=synonyms, documented=version >= 3
                )
                talk.ask(request, version)
    talk.ask(_describe((TOPIC, "described-set", ["retention.ms", "no.such.key"])), 4)
    talk.ask(_describe((TOPIC, "described-set", [])), 4)
    talk.ask(_describe((TOPIC, "described-never", None), (TOPIC, "not legal", None)), 4)
    talk.ask(_describe((TOPIC, "", None)), 4)
    talk.ask(
        _describe(
            (TOPIC, "described-plain", ["retention.ms"]), (TOPIC, "described-plain", ["flush.ms"])
        ),
        4,
    )
    talk.ask(_describe(), 4)


def broker_configs_are_described(talk: Conversation) -> None:
    keys = [
        "auto.create.topics.enable",
        "broker.id",
        "compression.type",
        "default.replication.factor",
        "group.initial.rebalance.delay.ms",
        "group.min.session.timeout.ms",
        "log.cleanup.policy",
        "log.flush.interval.ms",
        "log.retention.bytes",
        "log.retention.hours",
        "log.retention.minutes",
        "log.retention.ms",
        "log.roll.hours",
        "log.roll.ms",
        "log.segment.bytes",
        "message.max.bytes",
        "num.io.threads",
        "num.partitions",
        "offsets.topic.replication.factor",
        "ssl.keystore.password",
        "zookeeper.connect",
    ]
    for version in talk.versions_of(DescribeConfigsRequest):
        for synonyms in (False, True):
            request = _describe(
                (BROKER, "0", keys), include_synonyms=synonyms, documented=version >= 3
            )
            talk.ask(request, version)
    talk.ask(_describe((BROKER, "0", None)), 4, _without_values)
    for name in ("7", "x", "-1", "00"):
        talk.ask(_describe((BROKER, name, ["num.partitions"])), 4)


def other_resources_have_configs_of_their_own(talk: Conversation) -> None:
    for kind in (LOGGER, CLIENT_METRICS, GROUP):
        talk.ask(_describe((kind, "", None)), 4)
    for name in ("7", "x"):
        talk.ask(_describe((LOGGER, name, None)), 4)
    for kind in (0, 1, 3, 64, -1):
        talk.ask(_describe((kind, "x", None)), 4)
    talk.ask(_describe((TOPIC, "described-never", None), (3, "x", None)), 4)


def _describe(
    *resources: tuple[int, str, list[str] | None],
    include_synonyms: bool = False,
    documented: bool = False,
) -> DescribeConfigsRequest:
    return DescribeConfigsRequest(
        resources=[
            DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=keys)
            for kind, name, keys in resources
        ],
        include_synonyms=include_synonyms,
        include_documentation=documented,
    )


def _without_values(answer: Any) -> object:
    """Of all of a broker's settings: name, type, and what may be done with it."""
    [result] = answer.results
    return [
        (one.name, one.config_type, one.read_only, one.is_sensitive)
        for one in sorted(result.configs, key=lambda config: config.name)
        if not one.name.startswith("odradek.")
    ]


def the_quorum_is_one_node(talk: Conversation) -> None:
    def ask(version: int, *topics: tuple[str, list[int]]) -> None:
        request = DescribeQuorumRequest(
            topics=[
                DescribeQuorumRequestTopicData(
                    topic_name=name,
                    partitions=[
                        DescribeQuorumRequestPartitionData(partition_index=index)
                        for index in indexes
                    ],
                )
                for name, indexes in topics
            ]
        )
        talk.ask(request, version, _without_progress)

    for version in talk.versions_of(DescribeQuorumRequest):
        ask(version, ("__cluster_metadata", [0]))
        ask(version, ("__cluster_metadata", [1]))
        ask(version, ("__cluster_metadata", [0, 1]))
        ask(version, ("__cluster_metadata", []))
        ask(version, ("__cluster_metadata", [0]), ("other", [3, 4]))
        ask(version, ("other", [0]))
        ask(version)


def _without_progress(answer: Any) -> object:
    """How far the metadata log is, and in which epoch, is each broker's own affair.

    So is where a controller listens: odradek's does not.
    """
    partitions = [one for topic in answer.topics for one in topic.partitions]
    for partition in partitions:
        for voter in partition.current_voters:
            assert 0 < partition.high_watermark <= voter.log_end_offset
            assert partition.leader_epoch > 0
    return [
        only(answer, "error_code", "error_message"),
        [node.node_id for node in answer.nodes],
        [(topic.topic_name, len(topic.partitions)) for topic in answer.topics],
        [
            only(one, "partition_index", "error_code", "error_message", "leader_id", "observers")
            for one in partitions
        ],
        [
            only(voter, "replica_id", "last_fetch_timestamp", "last_caught_up_timestamp")
            for one in partitions
            for voter in one.current_voters
        ],
    ]


def log_directories_are_described(talk: Conversation) -> None:
    talk.create_topic("logged", 3)
    produce(talk, "logged", batch_of("a", "b"), partition=1)
    for version in talk.versions_of(DescribeLogDirsRequest):
        for wanted in (
            [("logged", [0, 1, 2])],
            [("logged", [1]), ("logged", [1, 2])],
            [("logged", [7]), ("logged-never", [0])],
            [("logged", [])],
            [],
        ):
            request = DescribeLogDirsRequest(
                topics=[
                    DescribeLogDirsRequestTopic(topic=name, partitions=indexes)
                    for name, indexes in wanted
                ]
            )
            talk.ask(request, version)
        everything = DescribeLogDirsRequest(topics=None)
        talk.ask(everything, version, lambda answer: _only_topic(answer, "logged"))


def _only_topic(answer: Any, name: str) -> object:
    [result] = answer.results
    return [topic for topic in result.topics if topic.name == name]


def leaders_need_no_election(talk: Conversation) -> None:
    talk.create_topic("led", 3)
    for version in talk.versions_of(ElectLeadersRequest):
        for election_type in (0,) if version == 0 else (0, 1, 2, -1):
            for wanted in (
                [("led", [0, 1, 2])],
                [("led", [2, 0, 9, -1]), ("led-never", [0])],
                [("led", [])],
                [],
            ):
                request = ElectLeadersRequest(
                    election_type=election_type,
                    topic_partitions=[
                        ElectLeadersTopicPartitions(topic=name, partitions=indexes)
                        for name, indexes in wanted
                    ],
                )
                talk.ask(request, version)
            everything = ElectLeadersRequest(election_type=election_type, topic_partitions=None)
            talk.ask(everything, version, _only_led)


def _only_led(answer: Any) -> object:
    results = answer.replica_election_results
    return answer.error_code, [one for one in results if one.topic == "led"]


def producer_ids_are_drawn(talk: Conversation) -> None:
    def request(
        transactional_id: str | None, id_: int = -1, epoch: int = -1
    ) -> InitProducerIdRequest:
        return InitProducerIdRequest(
            transactional_id=transactional_id,
            transaction_timeout_ms=60_000,
            producer_id=id_,
            producer_epoch=epoch,
        )

    # Kafka fetches its first block of ids when it is first asked.
    patiently(lambda: talk.silently(request(None), 4).error_code == 0 or None)
    for version in talk.versions_of(InitProducerIdRequest):
        talk.ask(request(None), version)
        talk.ask(request(""), version)
        if version >= 3:
            talk.ask(request(None, 12, 3), version)
            talk.ask(request(None, -1, 3), version)
            talk.ask(request(None, 12, -1), version)
