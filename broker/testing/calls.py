"""The calls that a test makes to its broker's process, and what they return.

They travel as lines, a call to the process's standard input, and its Reply back from standard
output, one after another. A line is a number and JSON: `7 {"type": ...}`. A reply has the number of
its call, so that the reply to a call that was interrupted is not taken for that of the next one.
Lines that have no number are not for anybody: an interrupted call may leave a part of one.
"""

from __future__ import annotations

from msgspec import Raw, Struct, field

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode

from .call import Call
from .cluster_calls import AnyClusterCall

# Of a call: a record of 48 MB.
MAX_LINE_BYTES = 1 << 26


class Reply(Struct, omit_defaults=True, frozen=True):
    """The result of a call as JSON, or the error."""

    result: Raw = Raw(b"null")
    error: str | None = None


class Ports(Struct, frozen=True):
    """The ports of each node's first listener, of the schema registry, and of HTTP; 0: none."""

    nodes: list[int]
    registry: int
    http: int


class Start(Call, frozen=True):
    """Start the broker. The first call; returns its Ports."""

    settings: dict[str, str]
    node_ports: list[int] = field(default_factory=list)  # of the nodes of a cluster; empty: any


class Stop(Call, frozen=True):
    """Stop the broker cleanly, and end the process."""


class CreateTopic(Call, frozen=True):
    name: str
    partitions: int | None
    configs: dict[str, str]


class AddUser(Call, frozen=True):
    """Let a user log in by SCRAM."""

    name: str
    password: str


class ListTopics(Call, frozen=True):
    """Returns the partition counts of all topics that are not internal, by name."""


class ReadRecords(Call, frozen=True):
    """Returns a list of StoredRecord."""

    topic: str
    partition: int | None
    committed: bool


class StoredRecord(Struct, frozen=True):
    """A record as it is in the log."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes | None]]


class Produce(Call, frozen=True):
    """Append a record, and create the topic if there is none. Returns the record's offset."""

    topic: str
    partition: int
    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes | None]]


class CommittedOffsets(Call, frozen=True):
    """Returns the committed offsets of a group in a topic, by partition."""

    group_id: str
    topic: str


class ExpireGroup(Call, frozen=True):
    """Remove all members of a group."""

    group_id: str


class Reset(Call, frozen=True):
    """Delete topics, groups, transactions, overrides and access; clear faults and the wall clock.

    Of the users, `kept_user` is kept. `test` is the one that begins, "" if that is not known.
    """

    kept_user: str
    test: str


class ListStrangers(Call, frozen=True):
    """Returns a list of Stranger."""


class Stranger(Struct, frozen=True):
    """A client that was connected before the last reset, and what it has done since.

    `client_id`, `software` and `software_version` are "" if it has not sent them. `address` is
    host:port. `connected_after` is the test before which the broker was reset last when the client
    connected, "" if there was none. `topics` are those that it has made, `groups` those that it has
    joined.
    """

    client_id: str
    software: str
    software_version: str
    address: str
    connected_after: str
    topics: list[str] = field(default_factory=list)
    groups: list[str] = field(default_factory=list)


class RunRetention(Call, frozen=True):
    pass


class RunCompaction(Call, frozen=True):
    pass


class SetClock(Call, frozen=True):
    wall_ms: int


class AdvanceClock(Call, frozen=True):
    by_ms: int


class FailNext(Call, frozen=True):
    api_key: ApiKey
    error_code: ErrorCode
    times: int


class DropConnection(Call, frozen=True):
    api_key: ApiKey
    times: int
    handled: bool


class Delay(Call, frozen=True):
    api_key: ApiKey
    delay_ms: int


class Pretend(Call, frozen=True):
    max_versions: dict[ApiKey, int] = field(default_factory=dict)


class ClearFaults(Call, frozen=True):
    pass


class FillDisk(Call, frozen=True):
    is_full: bool


class TakeSnapshot(Call, frozen=True):
    """Returns the directory of the snapshot."""


class RestoreSnapshot(Call, frozen=True):
    directory: str


AnyCall = (
    Start
    | Stop
    | CreateTopic
    | AddUser
    | ListTopics
    | ReadRecords
    | Produce
    | CommittedOffsets
    | ExpireGroup
    | Reset
    | ListStrangers
    | RunRetention
    | RunCompaction
    | SetClock
    | AdvanceClock
    | FailNext
    | DropConnection
    | Delay
    | Pretend
    | ClearFaults
    | FillDisk
    | TakeSnapshot
    | RestoreSnapshot
    | AnyClusterCall
)
