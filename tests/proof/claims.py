"""What must hold of a broker that starts on what a power cut, or an error of the disk, has left.

- It starts, and each topic that was created or not deleted is there.
- Each acknowledged record is there, unless it may lack (retention, a newer one of its key).
- Nothing is there that was never written, and each record is at its own offset. A record without
  an acknowledgement may be there, once.
- Of a transaction, all records are read or none. One that was said to be committed is read, one
  that was said to be aborted is not.
- A group's offset is the last that was acknowledged, or one that was sent after it.
- A record that a share group has accepted is not delivered again, and none that it has not is lost
  to it.
- After a clean stop, `odradek verify` finds no problem.
- A clean stop and a second start change nothing.
- It goes on: a record that is produced gets the next offset.
"""

import inspect
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, TypeVar

from odradek.broker.broker import Broker
from odradek.coordinator.share_partitions.in_flight import RecordState
from odradek.coordinator.share_state.batches import NO_OFFSET, DeliveryBatch
from odradek.coordinator.share_state.share_partition_key import SharePartitionKey
from odradek.coordinator.transactions.states import PREPARED
from odradek.protocol.batch_header import read_header
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
)
from odradek.protocol.record import read_records
from odradek.storage.filenames import FileKind
from odradek.storage.files import Files
from odradek.storage.log import PartitionLog
from odradek.storage.topic_names import CONSUMER_OFFSETS_TOPIC, TRANSACTION_STATE_TOPIC
from odradek.storage.txn_index import AbortedTransaction
from odradek.tools.verify.findings import Severity
from odradek.tools.verify.job import VerifySettings, run_verify
from tests.support.broker_in_loop import until
from tests.support.contexts import handled, request_context
from tests.support.log_box import NOW_MS, batch_of, read_slice, split
from tests.support.partition_logs import UnsyncedFiles
from tests.support.share_requests import SHARE_GROUP

from .life import (
    FIRST,
    GROUP,
    SECOND,
    Committed,
    Ended,
    Ledger,
    Made,
    MayGo,
    MayLack,
    Place,
    Sent,
    Settled,
    Stored,
    open_broker,
    stop,
)


class Found(NamedTuple):
    """A partition as readers find it. `visible`: the offsets that readers of committed data see."""

    records: Mapping[int, tuple[bytes | None, bytes | None]]
    visible: frozenset[int]
    start_offset: int
    end_offset: int
    last_stable_offset: int


State = dict[Place, Found]

Item = TypeVar("Item")
Result = TypeVar("Result")

MAX_BYTES = 1 << 20
# States of a record that is not delivered again.
SETTLED = (RecordState.ACKNOWLEDGED, RecordState.ARCHIVED)


class Shared(NamedTuple):
    """What a share group has in a partition: all before the start offset is done."""

    start_offset: int
    batches: tuple[DeliveryBatch, ...]

    def is_settled(self, offset: int) -> bool:
        return offset < self.start_offset or any(
            batch.first_offset <= offset <= batch.last_offset and batch.delivery_state in SETTLED
            for batch in self.batches
        )


async def recover(root: Path, files: Files) -> None:
    """Start a broker, let it complete what was begun, and stop it."""
    broker = open_broker(root, files)
    await settled(broker)
    await stop(broker)


async def faults(root: Path, ledger: Ledger, told: Sequence[object]) -> list[str]:
    """What does not hold of a broker that is started on `root`. `told`: what it had told others."""
    try:
        broker = open_broker(root, UnsyncedFiles())
    except Exception as error:  # noqa: BLE001 # whatever it is: the broker does not start
        return [f"it does not start: {type(error).__name__}: {error}"]
    await settled(broker)
    state = state_of(broker)
    offset = await committed_offset(broker)
    shared = shared_of(broker, state)
    found = [
        *_compared(state, ledger, told),
        *_offset_faults(offset, ledger, told),
        *_share_faults(shared, state, ledger, told),
    ]
    await stop(broker)
    found += problems_in(root)
    again = open_broker(root, UnsyncedFiles())
    await settled(again)
    second = state_of(again)
    found += [
        f"{place}: a second start has changed {state.get(place)} to {second.get(place)}"
        for place in sorted(state.keys() | second.keys())
        if state.get(place) != second.get(place)
    ]
    if await committed_offset(again) != offset:
        found.append("a second start has changed the offsets of the group")
    if shared_of(again, second) != shared:
        found.append("a second start has changed what the share group has")
    found += _written_on(again, second)
    await stop(again)
    return found


async def settled(broker: Broker) -> None:
    """Wait until the ends of transactions are written, and all is synced and so visible."""
    transactions = broker.coordinators.transactions

    def is_complete() -> bool:
        if TRANSACTION_STATE_TOPIC not in broker.metadata.topics:
            return True
        unserved = transactions.shards.unserved()
        assert not unserved, f"partitions of {TRANSACTION_STATE_TOPIC} are not served: {unserved}"
        try:
            return transactions.describe("shop").state not in PREPARED
        except ApiError as error:
            return error.code is ErrorCode.TRANSACTIONAL_ID_NOT_FOUND

    await until(is_complete)
    logs = broker.log_manager.logs()
    await until(lambda: all(log.high_watermark == log.log_end_offset for log in logs))


def state_of(broker: Broker) -> State:
    return {
        Place(name, topic.id, partition): _found(broker.log_manager.get(name, partition))
        for name, topic in broker.metadata.topics.items()
        if not name.startswith("__")
        for partition in topic.partitions
    }


def _found(log: PartitionLog) -> Found:
    records: dict[int, tuple[bytes | None, bytes | None]] = {}
    of_transactions: dict[int, int] = {}
    aborted: list[AbortedTransaction] = []
    stable = log.last_stable_offset
    offset = log.log_start_offset
    while batches := split(read_slice(log, offset)):
        if offset < stable:
            aborted += log.read_committed(offset, MAX_BYTES, at_least_one_batch=True).aborted
        for batch in batches:
            header = read_header(batch)
            if header.is_control:
                continue
            for record in read_records(batch):
                if record.offset >= offset:
                    records[record.offset] = record.key, record.value
                    if header.is_transactional:
                        of_transactions[record.offset] = header.producer_id
        offset = read_header(batches[-1]).last_offset + 1
    visible = frozenset(
        each
        for each in records
        if each < stable
        and not any(
            gone.producer_id == of_transactions.get(each)
            and gone.first_offset <= each <= gone.last_offset
            for gone in aborted
        )
    )
    return Found(records, visible, log.log_start_offset, log.log_end_offset, stable)


async def committed_offset(broker: Broker) -> int | None:
    if CONSUMER_OFFSETS_TOPIC not in broker.metadata.topics:
        return None
    context = request_context(broker, 9, NOW_MS)
    groups = [OffsetFetchRequestGroup(group_id=GROUP, topics=None)]
    answer = handled(context, OffsetFetchRequest(groups=groups))
    if inspect.isawaitable(answer):
        answer = await answer
    [group] = answer.groups
    assert group.error_code == ErrorCode.NONE, group
    offsets = [each.committed_offset for topic in group.topics for each in topic.partitions]
    return offsets[0] if offsets else None


def shared_of(broker: Broker, state: State) -> dict[Place, Shared]:
    """What the share group has in all partitions; none if it has no state."""
    states = broker.coordinators.share_states
    if not states.shards.is_open:
        return {}
    found: dict[Place, Shared] = {}
    for place in state:
        known = states.read_summary(SharePartitionKey(SHARE_GROUP, place.topic_id, place.partition))
        if known.start_offset != NO_OFFSET or known.batches:
            found[place] = Shared(known.start_offset, known.batches)
    return found


class _InThisProcess:
    parallelism = 1

    def run(
        self, work: Callable[[Item], Iterable[Result]], items: Sequence[Item], description: str
    ) -> Generator[tuple[int, list[Result]], None, None]:
        for number, item in enumerate(items):
            yield number, list(work(item))


def problems_in(root: Path) -> list[str]:
    """What `odradek verify` says of directories that nobody uses."""
    directories = [root / FIRST, root / SECOND]
    settings = VerifySettings(log_directories=directories, now_ms=NOW_MS, deep=True)
    report = run_verify(_InThisProcess(), settings)
    return [
        f"verify: {each.path.relative_to(root)}: {each.what}"
        for each in report.findings
        # A producer snapshot that nobody needs is not synced, and not looked at by a start.
        if each.severity is Severity.PROBLEM and each.path.suffix != FileKind.PRODUCER_SNAPSHOT
    ]


# -- what is compared ------------------------------------------------------------------------------


def _compared(state: State, ledger: Ledger, told: Sequence[object]) -> Iterator[str]:
    yield from _topic_faults(state, told)
    lacks, may_go = _lacks(told), _may_go(told)
    all_sent = _sent(state, ledger)
    for place, found in state.items():
        sent = all_sent.get(place, {})
        for offset, (key, value) in found.records.items():
            known = sent.get(offset)
            if known is None or (known.key, known.value) != (key, value):
                yield f"{place}: offset {offset} is {value!r}, and was sent as {known}"
    for each in told:
        if not isinstance(each, Stored) or each.place not in state or each.place in may_go:
            continue
        found = state[each.place]
        if each.offset in found.records:
            continue
        lack = lacks.get(each.place)
        if lack is not None and each.offset < lack.before:
            if not lack.newer_keys_only:
                continue
            key = ledger.sent[each.place][each.offset].key
            if any(offset > each.offset and key == of for offset, (of, _) in found.records.items()):
                continue
        yield f"{each.place}: the acknowledged record at offset {each.offset} is missing"
    yield from _transaction_faults(state, ledger, all_sent, told)


def _sent(state: State, ledger: Ledger) -> dict[Place, dict[int, Sent]]:
    """All records by offset; those without an acknowledgement at the first where they are found."""
    sent = {place: dict(records) for place, records in ledger.sent.items()}
    for place, found in state.items():
        by_offset = sent.setdefault(place, {})
        tried = {(each.key, each.value): each for each in ledger.tried.get(place, ())}
        for offset, record in found.records.items():
            if record in tried:
                by_offset.setdefault(offset, tried.pop(record))
    return sent


def _topic_faults(state: State, told: Sequence[object]) -> Iterator[str]:
    made = {each.topic: each.topic_id for each in told if isinstance(each, Made)}
    gone = {place.topic_id for place in _may_go(told)}
    there = {place.topic: place.topic_id for place in state}
    for topic, topic_id in made.items():
        if topic_id is not None and topic_id not in gone and there.get(topic) != topic_id:
            yield f"the topic {topic} is missing, or another one"


def _may_go(told: Sequence[object]) -> set[Place]:
    return {each.place for each in told if isinstance(each, MayGo)}


def _lacks(told: Sequence[object]) -> dict[Place, MayLack]:
    return {each.place: each for each in told if isinstance(each, MayLack)}


def _transaction_faults(
    state: State,
    ledger: Ledger,
    all_sent: Mapping[Place, Mapping[int, Sent]],
    told: Sequence[object],
) -> Iterator[str]:
    ended = {each.number: each.is_committed for each in told if isinstance(each, Ended)}
    for number, transaction in ledger.transactions.items():
        read = {
            (place, offset): offset in state[place].visible
            for place, records in all_sent.items()
            if place in state
            for offset, sent in records.items()
            if sent.transaction == number and offset in state[place].records
        }
        if len(set(read.values())) > 1:
            yield f"of transaction {number}, a part is read: {read}"
        if number in ended and set(read.values()) != {ended[number]}:
            end = "committed" if ended[number] else "aborted"
            yield f"transaction {number} was said to be {end}, and is read: {read}"
        if transaction.decided is not True and any(read.values()):
            yield f"transaction {number} was never committed, and is read: {read}"


def _offset_faults(offset: int | None, ledger: Ledger, told: Sequence[object]) -> Iterator[str]:
    acknowledged = [each.offset for each in told if isinstance(each, Committed)]
    last = max(acknowledged, default=None)
    if last is not None and (offset is None or offset < last):
        yield f"the group has offset {offset}, and {last} was acknowledged"


def _share_faults(
    shared: Mapping[Place, Shared], state: State, ledger: Ledger, told: Sequence[object]
) -> Iterator[str]:
    none = Shared(NO_OFFSET, ())
    for each in told:
        if not isinstance(each, Settled) or each.place not in state:
            continue
        if not shared.get(each.place, none).is_settled(each.offset):
            yield f"{each.place}: {each.offset} was accepted, and is delivered again"
    for place, known in shared.items():
        for offset in state[place].records:
            if known.is_settled(offset) and offset not in ledger.accepted[place]:
                yield f"{place}: nobody has accepted {offset}, and it is never delivered again"


def _written_on(broker: Broker, state: State) -> Iterator[str]:
    for place, found in state.items():
        log = broker.log_manager.get(place.topic, place.partition)
        offset = log.append(batch_of(b"more"), now_ms=NOW_MS).base_offset
        if offset != found.end_offset:
            yield f"{place}: the next record gets offset {offset}, not {found.end_offset}"
