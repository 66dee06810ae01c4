"""Members of a share group that go on while their broker dies and returns.

They speak by hand, each on connections of its own, and do all that a member may: accept, reject,
release, renew, acknowledge with the next ShareFetch, forget records until their locks end, and
leave with records that are locked. What they are told goes into a ledger (settled.py).
"""

import random
import threading
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any, NamedTuple

from odradek.protocol.any_batch import read_any_header, read_any_records
from odradek.protocol.errors import ErrorCode
from odradek.protocol.schema import Message
from tests.conformance.conversation import response_of
from tests.conformance.share_reader import ACCEPT, REJECT, RELEASE, RENEW, ShareReader
from tests.conformance.transcript import whole_batches
from tests.crash.settled import Place, Settled
from tests.support.wire import WireClient

PAUSE_SECONDS = 0.02
MAX_RECORDS = 40
# A record that was delivered so often is always accepted: none is archived for its count.
MAX_RELEASED = 4
FIRST_EPOCH = 0


class Group(NamedTuple):
    """What the members have in common. `partition_errors`: those that a partition may have."""

    port: int
    name: str
    topic: str
    topic_id: bytes
    partitions: int
    value_of: Callable[[int, int], bytes]
    partition_errors: Collection[int]


class Got(NamedTuple):
    """A range of records that were delivered together, both ends included."""

    partition: int
    first: int
    last: int
    delivery_count: int

    @property
    def places(self) -> list[Place]:
        return [(self.partition, offset) for offset in range(self.first, self.last + 1)]

    @property
    def counts(self) -> list[tuple[Place, int]]:
        return [(place, self.delivery_count) for place in self.places]


class Sharer:
    """One member, which works until it is stopped, and is patient until it is hurried."""

    def __init__(self, group: Group, member: str, settled: Settled, chance: random.Random) -> None:
        self._group = group
        self._member = member
        self._settled = settled
        self._chance = chance
        self._stop = threading.Event()
        self.is_hurried = False  # then it accepts all
        self._thread = threading.Thread(target=self._run, name=member)
        self._client: WireClient
        self._reader: ShareReader
        self._life = 0
        self._forgotten: list[Got] = []  # in this session: their locks end by themselves

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Stop after the current request."""
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stop.wait(PAUSE_SECONDS):
            try:
                self._work()
            except TimeoutError:
                self._settled.blame(f"{self._member}: no answer")
            except OSError:
                continue  # the broker is gone
            except Exception as error:  # noqa: BLE001 # the test reports it
                self._settled.blame(f"{self._member}: {error!r}")
                return

    def _work(self) -> None:
        """Read in one session, until it is over."""
        self._life = self._settled.life
        with WireClient(self._group.port, client_id=self._member) as client:
            if self._settled.life != self._life:
                return
            self._client = client
            self._forgotten.clear()
            group = self._group
            self._reader = ShareReader(
                self._ask, group.name, self._member, group.topic, group.topic_id
            )
            self._serve()

    def _ask(self, request: Message, version: int) -> Any:
        return self._client.ask(request, response_of(type(request)), version)

    def _serve(self) -> None:
        places = range(self._group.partitions)
        got = self._fetch(*places)
        while not self._stop.is_set():
            if self._may_wait(got) and self._chance.random() < 0.02:
                for each in [*got, *self._forgotten]:
                    self._settled.give_up(self._life, each.counts)
                return
            next_got: list[Got] = []
            for each in got:
                next_got += self._deal_with(each)
            got = next_got or self._fetch()

    def _may_wait(self, got: Sequence[Got]) -> bool:
        return not self.is_hurried and all(each.delivery_count <= MAX_RELEASED for each in got)

    # -- fetch -------------------------------------------------------------------------------------

    def _fetch(self, *partitions: int, **fields: Any) -> list[Got]:
        return self._got(time.monotonic(), self._ask_to_fetch(*partitions, **fields))

    def _ask_to_fetch(self, *partitions: int, **fields: Any) -> Any:
        asked = {
            "max_wait_ms": self._chance.choice([0, 20, 100]),
            "max_records": self._chance.randint(1, MAX_RECORDS),
            "max_bytes": self._chance.choice([2_000, 1 << 20]),
            "share_acquire_mode": self._chance.choice([0, 0, 1]),
            **fields,
        }
        answer = self._reader.fetch(*partitions, **asked)
        self._settled.errors.update(
            each.error_code for topic in answer.responses for each in topic.partitions
        )
        if answer.error_code:
            self._settled.blame(f"{self._member}: fetch has error {answer.error_code}")
        return answer

    def _got(self, asked_s: float, answer: Any) -> list[Got]:
        """What an answer has, after comparing it with what was written."""
        found = []
        for topic in answer.responses:
            for each in topic.partitions:
                if each.error_code and each.error_code not in self._group.partition_errors:
                    self._settled.blame(f"partition {each.partition_index}: {each.error_code}")
                values = dict(_values_of(whole_batches(bytes(each.records or b""))))
                for acquired in each.acquired_records:
                    got = Got(
                        each.partition_index,
                        acquired.first_offset,
                        acquired.last_offset,
                        acquired.delivery_count,
                    )
                    self._check(got, values, asked_s)
                    found.append(got)
        return found

    def _check(self, got: Got, values: dict[int, bytes], asked_s: float) -> None:
        for partition, offset in got.places:
            expected = self._group.value_of(partition, offset)
            if values.get(offset) != expected:
                self._settled.blame(f"{expected!r} is {values.get(offset)!r}")
            place = partition, offset
            self._settled.delivered(self._life, place, got.delivery_count, asked_s)

    # -- acknowledge -------------------------------------------------------------------------------

    def _deal_with(self, got: Got) -> list[Got]:
        """Do something with records. Returns what has come meanwhile."""
        may_wait = self._may_wait([got])
        draw = self._chance.random()
        if may_wait and draw < 0.05:
            self._forgotten.append(got)
            return []
        if may_wait and draw < 0.15:
            self._renew(got)
        size = got.last - got.first + 1
        if not may_wait:
            types = [ACCEPT]
        elif draw > 0.8:
            types = [self._chance.choice([ACCEPT, REJECT, RELEASE])]
        else:
            types = self._chance.choices([ACCEPT, RELEASE, REJECT], [8, 1, 1], k=size)
        return self._acknowledge(got, types)

    def _renew(self, got: Got) -> None:
        asked_s = time.monotonic()
        answer = self._reader.acknowledge(
            (got.first, got.last, [RENEW]), partition=got.partition, is_renew_ack=True
        )
        if self._result(answer) == ErrorCode.NONE:
            self._settled.renewed(self._life, got.counts, asked_s)

    def _acknowledge(self, got: Got, types: Sequence[int]) -> list[Got]:
        each_type = types if len(types) > 1 else [*types] * len(got.places)
        done = [place for place, one in zip(got.places, each_type, strict=True) if one != RELEASE]
        locked_until_s = self._settled.give_up(self._life, got.counts)
        self._settled.settling(done)
        batch = (got.first, got.last, types)
        if self._chance.random() < 0.3:
            asked_s = time.monotonic()
            answer = self._ask_to_fetch(got.partition, acknowledge=[batch])
            [code] = [
                each.acknowledge_error_code
                for topic in answer.responses
                for each in topic.partitions
                if each.partition_index == got.partition
            ]
            came = self._got(asked_s, answer)
        else:
            code = self._result(self._reader.acknowledge(batch, partition=got.partition))
            came = []
        is_late = time.monotonic() >= locked_until_s
        if code:
            self._settled.refused[code] += 1
            is_foreseen = code in (ErrorCode.INVALID_RECORD_STATE, *self._group.partition_errors)
            if not is_foreseen or not is_late:
                self._settled.blame(f"{got} is refused with {code} while it is locked")
        elif not is_late:
            rejected = zip(got.places, each_type, strict=True)
            self._settled.rejected.update(place for place, one in rejected if one == REJECT)
        counts = ((place, got.delivery_count) for place in done)
        self._settled.settled(self._life, counts, is_done=not code, is_late=is_late)
        return came

    def _result(self, answer: Any) -> int:
        if answer.error_code:
            self._settled.blame(f"{self._member}: acknowledge has error {answer.error_code}")
            return int(answer.error_code)
        [topic] = answer.responses
        [partition] = topic.partitions
        return int(partition.error_code)


def _values_of(data: bytes) -> Iterator[tuple[int, bytes]]:
    position = 0
    while position < len(data):
        header = read_any_header(data, position)
        batch = data[position : position + header.size_bytes]
        for record in read_any_records(batch, header):
            yield record.offset, bytes(record.value or b"")
        position += header.size_bytes
