"""The messages between the broker's own process and its workers. channel.py has their framing.

    to a worker       StartWorker           once, at first
    from it           Heartbeat...          it still works, from now on
    from it           Following             it has read the metadata log up to an offset
    to it             MetadataBatches...    what was appended to the log since
    from it           Applied...            it has done what the records say
    from it           Serving               it accepts connections
    from it           CheckpointPart...     its part of a checkpoint file
    from it           ForwardedRequest, ForwardCancelled
    to it             ForwardedResponse     the reply to ForwardedRequest
    from it           VerifyTransaction, answered by TransactionVerified
    to it             WriteMarker, answered by MarkerWritten
    from it           AssignDirectory, answered by DirectoryAssigned
    to it             ChangeLogLevels
    both              DirectoryFailed       a log directory is offline
    to it             StopWorker
    from it           Stopped               its logs are closed; then it ends

No message may be defined in a module that is run with `python -m`: a pickle names the module of
each class, and there that name is `__main__`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from odradek.broker.security.principal import Principal
from odradek.coordinator.metadata.config_changes import ConfigChange
from odradek.coordinator.runtime.producer import ProducerIdAndEpoch
from odradek.protocol.errors import ErrorCode
from odradek.storage.append import EndMarker
from odradek.storage.topic_partition import TopicPartition


class SharedDirectory(NamedTuple):
    """A log directory that the broker's own process has locked. See DataDirectory."""

    path: Path
    cluster_id: str
    directory_id: bytes
    had_clean_shutdown: bool


class StartWorker(NamedTuple):
    """What a worker needs to start.

    `is_restarted`: it has served before. `settings` are the keys and values of the configuration
    file. `ports` has the ports by listener name of every process, and `sockets` the bound sockets
    of this one, as file descriptors. `http_sockets` are those of odradek.http.listener, if that is
    set.
    """

    process: int
    is_restarted: bool
    settings: Mapping[str, str]
    log_format: str
    directories: Sequence[SharedDirectory]
    offline: Mapping[Path, str]
    ports: Sequence[Mapping[str, int]]
    sockets: Mapping[str, Sequence[int]]
    http_sockets: Sequence[int]


class Following(NamedTuple):
    """The worker has the metadata up to this offset (excluded)."""

    next_offset: int


class MetadataBatches(NamedTuple):
    """Batches of the metadata log, up to `end_offset` (excluded)."""

    batches: Sequence[bytes]
    end_offset: int
    kraft_version: int


class Applied(NamedTuple):
    """The worker has applied the metadata up to this offset (excluded)."""

    next_offset: int


class Serving(NamedTuple):
    """The worker accepts connections."""


class Heartbeat(NamedTuple):
    """The event loop of the worker still runs, or its start makes progress. See heartbeats.py."""


class CheckpointPart(NamedTuple):
    """The offsets of the worker's logs, for a checkpoint file."""

    path: Path
    offsets: Mapping[TopicPartition, int]


class ForwardedRequest(NamedTuple):
    """A request that the broker's own process answers, with what is known about its client.

    `frame` is the request with its header.
    """

    number: int
    frame: bytes
    listener: str
    peer: tuple[str, int]
    local_host: str
    principal: Principal | None
    token_authenticated: bool
    software: tuple[str, str] | None


class ForwardCancelled(NamedTuple):
    """The client of a forwarded request has closed its connection."""

    number: int


class ForwardedResponse(NamedTuple):
    """The framed response. It is None if the connection is to be closed, because of `reason`.

    `throttle_ms`: for how long to serve no request of the client.
    """

    number: int
    frame: bytes | None
    reason: str = ""
    throttle_ms: int = 0


class VerifyTransaction(NamedTuple):
    """A producer wants to write to partitions in its transaction. See transactions/verification.

    `support` is the value of what the client supports.
    """

    number: int
    transactional_id: str
    producer: ProducerIdAndEpoch
    partitions: frozenset[TopicPartition]
    support: int


class TransactionVerified(NamedTuple):
    """The answer to VerifyTransaction: error code and message of the partitions it refuses."""

    number: int
    refusals: Mapping[TopicPartition, tuple[int, str]]


class WriteMarker(NamedTuple):
    """The end of a transaction in a partition of the worker."""

    marker: EndMarker
    where: TopicPartition


class MarkerWritten(NamedTuple):
    """The marker is written and synced, or the error."""

    marker: EndMarker
    where: TopicPartition
    code: ErrorCode


class AssignDirectory(NamedTuple):
    """A log of the worker moves to a directory; the metadata is to record it."""

    number: int
    partition: TopicPartition
    directory_id: bytes


class DirectoryAssigned(NamedTuple):
    """The metadata has recorded it, on the disk, or the error."""

    number: int
    partition: TopicPartition
    code: ErrorCode
    message: str = ""


class ChangeLogLevels(NamedTuple):
    """A client changes the levels of the worker's loggers."""

    changes: Sequence[ConfigChange]


class DirectoryFailed(NamedTuple):
    """A log directory has failed in the process that sends this."""

    path: Path
    reason: str


class StopWorker(NamedTuple):
    """Answer the current requests, close the logs, and end."""


class Stopped(NamedTuple):
    """The directories in which the worker has closed all its logs cleanly."""

    clean: Sequence[Path]
