"""The share groups of a broker on real logs, without sockets, with a clock that a test moves."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from odradek.broker.security.session import Session
from odradek.broker.shares.sessions import Place, SessionKey
from odradek.broker.shares.share_read import Answers, ShareFetchCall, ShareRead
from odradek.broker.shares.shares import Shares
from odradek.coordinator.any_group.group_settings import ShareGroupSettings
from odradek.coordinator.runtime.steps import no_step
from odradek.coordinator.share_groups.group_configs import ShareGroupConfigs
from odradek.coordinator.share_partitions.changes import Acknowledgement
from odradek.coordinator.share_state.share_partition_key import SharePartitionKey
from odradek.protocol.errors import ApiError
from odradek.storage.files import Files, NonBlockingReads, OpenFile, WouldWaitError
from odradek.storage.log import PartitionLog
from tests.support.partition_logs import UnsyncedFiles, open_log
from tests.support.share_states import TOPIC_ID, ShareStates

GROUP = "g"


class ColdFiles(UnsyncedFiles):
    """Files of which the reads in `cold` are not in memory until another thread has made them."""

    def __init__(self) -> None:
        self.cold: set[tuple[str, int]] = set()

    def pread_cached(self, file: OpenFile, size: int, position: int) -> bytes | None:
        if (file.path.parent.name, size) in self.cold:
            return None
        return super().pread_cached(file, size, position)


class AtOnce:
    """Runs at once what is to run in slices."""

    step = staticmethod(no_step)

    def run(self, make: Callable[[Any], Any]) -> "AtOnce":
        with suppress(StopIteration):
            make(self).send(None)
        return self

    def add_done_callback(self, _callback: object) -> None: ...


class NoQueues:
    """No group has a dead-letter queue."""

    def has(self, _group_id: str) -> bool:
        return False


class ShareRig:
    """A topic of some partitions, of which group "g" reads from the first record on."""

    def __init__(
        self, root: Path, *, partitions: int = 2, files: Files | None = None, slices: Any = None
    ) -> None:
        self._slices: Any = slices or AtOnce()
        self.files = files or UnsyncedFiles()
        self.logs = [
            open_log(root, "t", index, topic_id=TOPIC_ID, files=self.files)
            for index in range(partitions)
        ]
        self.states = ShareStates(topics={TOPIC_ID: partitions})
        self.overrides = {"share.auto.offset.reset": "earliest"}
        self.has_lost_state = False
        self.shares = self._shares()
        for index in range(partitions):
            self.states.initialize(self.key(index))

    def _shares(self) -> Shares:
        loop = self.states.loop
        return Shares(
            loop=loop,  # type: ignore[arg-type] # as much of a loop as is needed
            clock=loop.clock,
            after_arrivals=loop.after_arrivals,
            states=self.states.coordinator,
            configs=ShareGroupConfigs(ShareGroupSettings(), lambda _group_id: self.overrides),
            find_log=self._find_log,
            slices=self._slices,
            queues=NoQueues(),  # type: ignore[arg-type] # as much of them as is needed
            create_lost_state=self._create_lost_state,
        )

    def _create_lost_state(self, key: SharePartitionKey) -> bool:
        if self.has_lost_state:
            self.states.initialize(key)
        return self.has_lost_state

    def _find_log(self, _topic_id: bytes, partition: int) -> PartitionLog:
        return self.logs[partition]

    @staticmethod
    def key(partition: int = 0) -> SharePartitionKey:
        return SharePartitionKey(GROUP, TOPIC_ID, partition)

    def open_session(self, member: str, *partitions: int, connection: Session) -> None:
        places = [(TOPIC_ID, partition) for partition in partitions]
        self.shares.sessions.open(SessionKey(GROUP, member), places, connection)

    def fetch(self, member: str, *partitions: int, **fields: Any) -> Answers:
        """What a ShareFetch of open share-partitions gets at once.

        Cold reads are made as a disk thread makes them.
        """
        for partition in partitions or (0,):
            with suppress(ApiError):
                self.shares.open(self.key(partition))
        return self.first_fetch(member, *partitions, **fields)

    def first_fetch(self, member: str, *partitions: int, **fields: Any) -> Answers:
        """Like `fetch`, and the share-partitions may not be open."""
        asked: dict[str, Any] = {
            "min_bytes": 1,
            "max_bytes": 1 << 20,
            "max_records": 500,
            "batch_size": 500,
            "has_record_limit": False,
        }
        places: Sequence[Place] = [(TOPIC_ID, partition) for partition in partitions or (0,)]
        call = ShareFetchCall(GROUP, member, places=places, **asked | fields)
        read = ShareRead(self.shares, self.files, call)
        reads = NonBlockingReads(self.files)
        while True:
            try:
                with reads:
                    answers = read.attempt(self.states.loop.clock(), is_last=True)
                assert answers is not None
                return answers
            except WouldWaitError as error:
                for cold in error.calls.values():
                    cold()
                reads.made.update(error.calls)

    def acquire(self, member: str, *partitions: int, **fields: Any) -> list[tuple[int, int, int]]:
        """First and last offset and delivery count of what a ShareFetch gets."""
        return [
            (one.first_offset, one.last_offset, one.delivery_count)
            for answer in self.fetch(member, *partitions, **fields).values()
            for one in answer.acquired_records
        ]

    def acknowledge(self, member: str, *acknowledged: tuple[int, int, Sequence[int]]) -> None:
        """Acknowledge records of the first partition."""
        self.shares.acknowledge(self.key(), member, [Acknowledgement(*one) for one in acknowledged])
