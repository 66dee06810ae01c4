"""The calls that a test makes to its broker's process, and what they return.

Each call is a line on the process's standard input, and its Reply a line on standard output. The
next call is sent after the reply. A line is a number and JSON: `7 {"type": ...}`. A reply has the
number of its call, so that the reply to a call that was interrupted is not taken for that of the
next one. Lines without a number are ignored: an interrupted call may leave a part of a line.
"""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Raw, Struct, field

from odradek.protocol.api_keys import ApiKey

from .call import Call, Milliseconds
from .cluster_calls import AnyClusterCall
from .fault import Fault, FaultEvent

MAX_LINE_BYTES = 1 << 26  # of a call: a record of 48 MiB in base64
MAX_WALL_MS = 253_402_300_799_999  # the end of the year 9999, the last one that can be written


class Reply(Struct, omit_defaults=True, frozen=True):
    """The result of a call as JSON, or the error."""

    result: Raw = Raw(b"null")
    error: str | None = None


class Ports(Struct, frozen=True):
    """The ports of the broker's listeners, of the schema registry, and of HTTP; 0: none.

    `nodes` has a list for each node, with the port of each of its listeners.
    """

    nodes: list[list[int]] = field(default_factory=list)
    registry: int = 0
    http: int = 0


class Start(Call, frozen=True):
    """Start the broker. The first call; returns its Ports."""

    settings: dict[str, str]
    ports: Ports = Ports()  # those of the last start; empty and 0: as configured


class Stop(Call, frozen=True):
    """Stop the broker cleanly, and end the process."""


class CreateTopic(Call, frozen=True):
    name: str
    partitions: int | None = None
    configs: dict[str, str] = field(default_factory=dict)


class AddUser(Call, frozen=True):
    """Let a user log in by SCRAM."""

    name: str
    password: str


class ListTopics(Call, frozen=True):
    """Returns the partition counts of all topics that are not internal, by name."""


class ReadRecords(Call, frozen=True):
    """Returns a list of StoredRecord."""

    topic: str
    partition: int | None = None
    committed: bool = True  # only records of transactions that are committed, or of none


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
    partition: int = 0
    key: bytes | None = None
    value: bytes | None = None
    headers: list[tuple[str, bytes | None]] = field(default_factory=list)


class CommittedOffsets(Call, frozen=True):
    """Returns the committed offsets of a group in a topic, by partition."""

    group_id: str
    topic: str


class ExpireGroup(Call, frozen=True):
    """Remove all members of a group."""

    group_id: str


class Reset(Call, frozen=True):
    """Return to an empty broker between two tests; connections stay open.

    Deletes topics, groups, transactions, altered settings, quotas, ACLs, and all users but
    `kept_user`. Removes faults, and returns to the true time. `test` is the name of the test that
    begins, "" if it is not known.
    """

    kept_user: str = ""
    test: str = ""


class ListLeftoverClients(Call, frozen=True):
    """Returns a list of LeftoverClient."""


class LeftoverClient(Struct, frozen=True):
    """A client that was connected before the last reset, and what it has done since.

    `client_id`, `software` and `software_version` are "" if it has not sent them. `address` is
    host:port. `connected_after` is the test during which it connected: that of the last reset
    before, "" if there was none. `topics` are those that it has made, `groups` those that it has
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
    """Delete what retention allows, now."""


class RunCompaction(Call, frozen=True):
    """Compact all logs, now."""


class SetClock(Call, frozen=True):
    """Set the wall clock."""

    wall_ms: Annotated[int, Meta(ge=0, le=MAX_WALL_MS)]


class AdvanceClock(Call, frozen=True):
    """Advance all clocks, and do what is due by then."""

    by_ms: Milliseconds


class Inject(Call, frozen=True):
    """Begin a script of faults. Returns its id."""

    faults: list[Fault]


class ReadFaults(Call, frozen=True):
    """Returns the FaultsSoFar of a script, without the events if they are not wanted."""

    id: str
    with_events: bool = True


class FaultsSoFar(Struct, frozen=True):
    """How many requests a script has changed, and the last of them."""

    fired: int
    events: list[FaultEvent]


class RemoveFaults(Call, frozen=True):
    """End one script of faults."""

    id: str


class Pretend(Call, frozen=True):
    """Be an older broker: serve these APIs only up to a version; -1: not at all."""

    max_versions: dict[ApiKey, int] = field(default_factory=dict)


class ClearFaults(Call, frozen=True):
    """End all scripts of faults, and what Pretend has set."""


class SetDiskFull(Call, frozen=True):
    """Let every write fail as on a full disk, or succeed again."""

    is_full: bool


class TakeSnapshot(Call, frozen=True):
    """Returns the directory of the snapshot."""


class RestoreSnapshot(Call, frozen=True):
    directory: str


# The calls to a broker that runs.
RunningCall = (
    CreateTopic
    | AddUser
    | ListTopics
    | ReadRecords
    | Produce
    | CommittedOffsets
    | ExpireGroup
    | Reset
    | ListLeftoverClients
    | RunRetention
    | RunCompaction
    | SetClock
    | AdvanceClock
    | Inject
    | ReadFaults
    | RemoveFaults
    | Pretend
    | ClearFaults
    | SetDiskFull
    | TakeSnapshot
    | RestoreSnapshot
    | AnyClusterCall
)

AnyCall = Start | Stop | RunningCall
