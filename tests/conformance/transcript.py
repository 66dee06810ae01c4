"""Answers as plain values that two brokers can be compared by.

What may differ, and why, is all here; everything else of an answer must be equal:

- ids that a broker draws (topics, members, sessions, producers, the cluster's, directories') become
  `topic_id 1`, `topic_id 2`, …, in the order in which a conversation meets them: the same id must
  turn up in the same places, whatever it is; so do paths of log directories;
- host and port of the broker that answers;
- times that a broker takes from its clock, and sizes that it takes from its disks;
- words of an error message or of a setting's documentation: where Kafka says something, odradek
  must; where Kafka says nothing, odradek may;
- the order of lists that Kafka gives in the order of its hash tables: they are sorted;
- the end of fetched records: Kafka may cut the last batch in the middle, and a consumer then
  fetches it again; here that piece is taken off;
- the producer id in fetched records, and with it the checksum, which is checked here.

An answer with UNKNOWN_SERVER_ERROR is an accident inside Kafka: nothing is learned from it.
"""

import re
import struct
from collections.abc import Callable, Iterator
from itertools import chain, zip_longest
from typing import Any

import msgspec

from odradek.protocol.batch_header import (
    HEADER,
    LOG_OVERHEAD,
    MAGIC_POSITION,
    MAGIC_V2,
    NO_PRODUCER_ID,
    check_crc,
    read_header,
)
from odradek.protocol.primitives import ZERO_UUID

# A member's id is what the client calls itself, a dash, and a random UUID.
MEMBER_ID = re.compile(r".+-[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
# The broker draws this for a member of a consumer group that has no id.
DRAWN_MEMBER_ID = re.compile(r"[\w-]{22}")
DRAWN_IDS = frozenset(
    {"cluster_id", "log_dir", "producer_id", "replica_directory_id", "session_id", "topic_id"}
)
FREE_TEXT = frozenset(
    {
        "acknowledge_error_message",
        "batch_index_error_message",
        "documentation",
        "error_message",
        "status_detail",
    }
)
WORDS = "words"
NOTHING = "nothing"
LONGEST_TEXT = 1000
LENGTH_POSITION = 8  # in a batch
NO_ID = (-1, 0, "", None, ZERO_UUID)

# By the fields of an element: (struct, field) of the list.
UNORDERED: dict[tuple[str, str], Callable[[Any], Any]] = {
    ("AlterUserScramCredentialsResponse", "results"): lambda result: result["user"],
    ("AlterReplicaLogDirsResponse", "results"): lambda topic: topic["topic_name"],
    ("AlterReplicaLogDirTopicResult", "partitions"): lambda one: one["partition_index"],
    ("ConsumerGroupHeartbeatAssignment", "topic_partitions"): lambda topic: repr(topic),
    ("CreateTopicsResponse", "topics"): lambda topic: topic["name"],
    ("CreatePartitionsResponse", "results"): lambda topic: topic["name"],
    ("DeleteRecordsResponse", "topics"): lambda topic: topic["name"],
    ("DeleteRecordsTopicResult", "partitions"): lambda one: one["partition_index"],
    ("DeleteTopicsResponse", "responses"): lambda topic: repr(topic),
    ("DeleteGroupsResponse", "results"): lambda group: group["group_id"],
    ("AlterClientQuotasResponse", "entries"): lambda entry: repr(entry["entity"]),
    ("DescribeClientQuotasResponse", "entries"): lambda entry: repr(entry["entity"]),
    ("DescribeClientQuotasEntryData", "values"): lambda value: value["key"],
    ("DescribeUserScramCredentialsResponse", "results"): lambda result: result["user"],
    ("DescribeUserScramCredentialsResult", "credential_infos"): lambda one: one["mechanism"],
    ("DescribeGroupsResponse", "groups"): lambda group: group["group_id"],
    ("DescribeConfigsResult", "configs"): lambda config: config["name"],
    ("DescribeLogDirsResult", "topics"): lambda topic: topic["name"],
    ("DescribeLogDirsTopic", "partitions"): lambda partition: partition["partition_index"],
    ("DescribeTransactionsTransaction", "topics"): lambda topic: topic["topic"],
    ("DescribeTransactionsTopic", "partitions"): lambda index: index,
    ("ElectLeadersResponse", "replica_election_results"): lambda topic: topic["topic"],
    ("FetchResponse", "responses"): lambda topic: repr(topic),
    ("FetchTopicResponse", "partitions"): lambda partition: partition["partition_index"],
    ("JoinGroupResponse", "members"): lambda member: repr(member),
    ("ListGroupsResponse", "groups"): lambda group: group["group_id"],
    ("ListOffsetsResponse", "topics"): lambda topic: topic["name"],
    ("ListOffsetsTopicResponse", "partitions"): lambda partition: repr(partition),
    ("MetadataResponse", "topics"): lambda topic: repr(topic),
    ("OffsetFetchResponse", "topics"): lambda topic: repr(topic),
    ("OffsetFetchResponseGroup", "topics"): lambda topic: repr(topic),
    ("OffsetFetchResponseTopic", "partitions"): lambda partition: partition["partition_index"],
    ("OffsetForLeaderEpochResponse", "topics"): lambda topic: topic["topic"],
    ("StreamsGroupDescribeGroup", "members"): lambda member: member["member_id"],
    ("StreamsGroupDescribeResponse", "groups"): lambda group: group["group_id"],
    ("StreamsGroupHeartbeatResponse", "active_tasks"): lambda tasks: tasks["subtopology_id"],
    ("StreamsGroupHeartbeatResponse", "partitions_by_user_endpoint"): lambda one: repr(one),
    ("StreamsGroupHeartbeatEndpointToPartitions", "active_partitions"): lambda one: repr(one),
    ("StreamsGroupHeartbeatEndpointToPartitions", "standby_partitions"): lambda one: repr(one),
    ("StreamsGroupHeartbeatTopicPartition", "partitions"): lambda index: index,
    ("ProduceTopicResponse", "partition_responses"): lambda partition: partition["index"],
    ("ProduceResponse", "responses"): lambda topic: repr(topic),
    **dict.fromkeys(
        [
            ("AlterShareGroupOffsetsResponse", "responses"),
            ("DeleteShareGroupOffsetsResponse", "responses"),
            ("DescribeShareGroupOffsetsResponseGroup", "topics"),
            ("ShareAcknowledgeResponse", "responses"),
            ("ShareFetchResponse", "responses"),
            ("ShareGroupDescribeAssignment", "topic_partitions"),
            ("ShareGroupDescribeGroup", "members"),
            ("ShareGroupHeartbeatAssignment", "topic_partitions"),
        ],
        repr,
    ),
    **{
        (f"{name}TopicResult", "partitions"): lambda result: result["partition"]
        for name in (
            "DeleteShareGroupState",
            "InitializeShareGroupState",
            "ReadShareGroupState",
            "ReadShareGroupStateSummary",
            "WriteShareGroupState",
        )
    },
    ("DescribeShareGroupOffsetsResponseTopic", "partitions"): lambda one: one["partition_index"],
    ("ShareAcknowledgeTopicResponse", "partitions"): lambda one: one["partition_index"],
    ("ShareFetchTopicResponse", "partitions"): lambda one: one["partition_index"],
}
CLOCK_FIELDS = frozenset({"last_caught_up_timestamp", "last_fetch_timestamp", "log_append_time_ms"})
DISK_FIELDS = frozenset({"total_bytes", "usable_bytes"})


class Transcript:
    """What one broker answered in one conversation."""

    def __init__(self, port: int) -> None:
        self.lines: list[tuple[str, Any]] = []
        self._port = port
        self._names: dict[tuple[str, object], str] = {}

    def write(self, title: str, answer: object) -> None:
        """Note an answer (a message, or a word such as `closed`) under what was asked."""
        self.lines.append((title, self.plain(answer)))

    def plain(self, value: Any) -> Any:
        """The value without what may differ."""
        if isinstance(value, msgspec.Struct):
            return self._plain_struct(value)
        if isinstance(value, list | tuple):
            return [self.plain(one) for one in value]
        if isinstance(value, dict):
            return {name: self._plain_field(name, one) for name, one in value.items()}
        if isinstance(value, memoryview):
            return bytes(value)
        if isinstance(value, str) and MEMBER_ID.fullmatch(value):
            return self._name("member", value)
        return value

    def _plain_struct(self, struct: msgspec.Struct) -> dict[str, Any]:
        kind = type(struct).__name__
        fields = {}
        for name in struct.__struct_fields__:
            value = self._plain_field(name, getattr(struct, name))
            order = UNORDERED.get((kind, name))
            fields[name] = sorted(value, key=order) if order and value else value
        return fields

    def _plain_field(self, name: str, value: Any) -> Any:
        if name in DRAWN_IDS:
            return value if value in NO_ID else self._name(name, value)
        names_member = name in ("member_id", "leader") and isinstance(value, str)
        if names_member and DRAWN_MEMBER_ID.fullmatch(value):
            return self._name("member", value)
        if name in FREE_TEXT:
            return value if value in (None, "") else WORDS
        if name in CLOCK_FIELDS:
            return value if value == -1 else "time"
        if name in DISK_FIELDS:
            return value if value == -1 else "size"
        if name == "records":
            return self._plain_records(whole_batches(bytes(value or b"")))
        if name == "port":
            return "port" if value == self._port else value
        return self.plain(value)

    def _plain_records(self, records: bytes) -> bytes | list[Any]:
        """The records as they are; a list of batches if producers wrote some of them."""
        batches = [*each_batch(records)]
        if all(_producer_id(batch) == NO_PRODUCER_ID for batch in batches):
            return records
        return [self._plain_batch(batch) for batch in batches]

    def _plain_batch(self, batch: bytes) -> dict[str, Any]:
        header = read_header(batch)
        check_crc(batch, header)
        nobody = header._replace(producer_id=NO_PRODUCER_ID, crc=0)
        return {
            "producer_id": self._plain_field("producer_id", header.producer_id),
            "batch": HEADER.pack(*nobody) + batch[HEADER.size :],
        }

    def _name(self, kind: str, value: object) -> str:
        known = sum(1 for one, _ in self._names if one == kind)
        return self._names.setdefault((kind, value), f"{kind} {known + 1}")


def whole_batches(records: bytes) -> bytes:
    """The records up to the end of the last batch that is whole."""
    return b"".join(each_batch(records))


def each_batch(records: bytes) -> Iterator[bytes]:
    """The batches that are whole."""
    end = 0
    while end + LOG_OVERHEAD <= len(records):
        (length,) = struct.unpack_from(">i", records, end + LENGTH_POSITION)
        start, end = end, end + LOG_OVERHEAD + length
        if end <= len(records):
            yield records[start:end]


def _producer_id(batch: bytes) -> int:
    is_v2 = len(batch) >= HEADER.size and batch[MAGIC_POSITION] == MAGIC_V2
    return read_header(batch).producer_id if is_v2 else NO_PRODUCER_ID


def is_accident(answer: Any) -> bool:
    """Whether UNKNOWN_SERVER_ERROR is anywhere in it."""
    if isinstance(answer, dict):
        return answer.get("error_code") == -1 or any(map(is_accident, answer.values()))
    return isinstance(answer, list) and any(map(is_accident, answer))


def differences(expected: Any, found: Any, where: str = "") -> list[str]:
    """One line for each place where two plain values differ."""
    if isinstance(expected, dict) and isinstance(found, dict):
        return [
            line
            for name in expected
            for line in differences(expected[name], found.get(name), f"{where}.{name}")
        ]
    if isinstance(expected, list) and isinstance(found, list):
        return _differences_of_lists(expected, found, where)
    if found == WORDS and expected in (None, ""):
        return []
    if expected == found:
        return []
    return [f"{where}: Kafka says {_short(expected)}, odradek {_short(found)}"]


def _differences_of_lists(expected: list[Any], found: list[Any], where: str) -> list[str]:
    """Of lists of different length, the first place where they differ."""
    pairs = enumerate(zip_longest(expected, found, fillvalue=NOTHING))
    lines = [differences(*pair, f"{where}[{index}]") for index, pair in pairs]
    if len(expected) == len(found):
        return [*chain.from_iterable(lines)]
    lengths = f"{where}: Kafka has {len(expected)}, odradek {len(found)}"
    return [lengths, *next(filter(None, lines), [])]


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= LONGEST_TEXT else f"{text[:LONGEST_TEXT]}…"
