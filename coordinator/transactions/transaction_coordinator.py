"""The transaction coordinator: gives producers their ids, and begins and ends their transactions.

    request -> the shard of the transactional id -> a decision (transactions/) -> append, replay
            -> the markers of a transaction that ends (transactions/completion.py)

Every request is answered at once. In the background, transactions that are older than their timeout
are aborted, and transactional ids that nobody uses expire.

Kafka: TransactionCoordinator, TransactionStateManager.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable, Iterator
from collections.abc import Set as AbstractSet
from itertools import groupby, islice
from operator import itemgetter
from typing import NamedTuple

from odradek.coordinator.runtime.alarm import Alarm
from odradek.coordinator.runtime.load_queue import LoadQueue
from odradek.coordinator.runtime.producer import NO_PRODUCER, ProducerIdAndEpoch
from odradek.coordinator.runtime.shards import CoordinatorShards
from odradek.coordinator.runtime.steps import Step, no_step
from odradek.coordinator.runtime.timers import Deadline, Now
from odradek.protocol.batch_header import NO_PRODUCER_EPOCH, NO_PRODUCER_ID
from odradek.protocol.compression import CompressionType
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.storage.log import PartitionLog
from odradek.storage.producer_entry import FIRST_VERSION_WITH_EPOCH_BUMP
from odradek.storage.topic_names import TRANSACTION_STATE_TOPIC
from odradek.storage.topic_partition import TopicPartition

from .codec import PACKED_AHEAD, TransactionCodec
from .completion import Completion, TransactionShard, is_synced
from .ending import (
    must_end_v1,
    must_end_v2,
    prepare,
    prepare_fence,
    producer_after,
)
from .marker_writer import MarkerWriter
from .partitions import add_partitions, check_may_add, missing_partitions
from .settings import TransactionSettings
from .starting import (
    check_start,
    needs_producer_id,
    raise_epoch,
    rotate_producer_id,
)
from .states import PREPARED, TransactionState
from .table import NO_TIMEOUT_MS, TransactionTable
from .transaction import Transaction

logger = logging.getLogger("odradek.transactions")

# How many transactions that time out at once are named in the log.
LOGGED_TIMEOUTS = 10
# How long one turn of the loop aborts transactions. Each takes 200 us, and some milliseconds if it
# has thousands of partitions.
ABORTS_MS = 1
# At most this many transactional ids are examined in one turn of the loop.
CHECKS_PER_TURN = 300


class InitCall(NamedTuple):
    """An InitProducerId with a transactional id. `expected`: what the producer has; None: none."""

    transactional_id: str
    timeout_ms: int
    expected: ProducerIdAndEpoch | None = None
    is_two_phase: bool = False
    keeps_prepared: bool = False


class TransactionCoordinator:
    """All transactional ids of this broker."""

    def __init__(
        self,
        settings: TransactionSettings,
        *,
        loop: asyncio.AbstractEventLoop,
        after_arrivals: Callable[[Callable[[], None]], None],
        clock: Callable[[], Now],
        markers: MarkerWriter,
        new_producer_id: Callable[[int], int],
        transaction_version: Callable[[], int],
    ) -> None:
        """`after_arrivals` calls its argument when the requests that have arrived are served.
        `new_producer_id` takes the wall time (ms) and returns an id that is never given out again;
        it raises ApiError. `transaction_version` is the finalized one.
        """
        self._settings = settings
        self.alarm = Alarm(loop, clock, after_arrivals)
        self._clock = clock
        self._new_producer_id = new_producer_id
        self._version = transaction_version
        self.markers = markers
        self._loop = loop
        self._codec = TransactionCodec()
        self.shards: CoordinatorShards[TransactionTable] = CoordinatorShards(
            TRANSACTION_STATE_TOPIC,
            lambda _partition: TransactionTable(),
            self._codec,
            compression=CompressionType.NONE,
            logger=logger,
        )
        self._loads = LoadQueue(loop, self._on_shard_loaded)
        self._completion = Completion(
            serving=self.shards.serving,
            markers=markers,
            transaction_version=transaction_version,
            deadlines=self.alarm.deadlines,
            clock=clock,
        )
        self._timeouts = Deadline(self._abort_timed_out, None)
        self._expiry = Deadline(self._remove_expired, None)

    # -- the topic ---------------------------------------------------------------------------------

    def open_topic(self, logs: Iterable[PartitionLog], partition_count: int) -> None:
        """Load the transactions from the topic's partitions. One without a log is not served."""
        for shard in self.shards.open_topic(logs, partition_count):
            self._on_shard_loaded(shard)
        now = self._clock()
        deadlines, settings = self.alarm.deadlines, self._settings
        deadlines.schedule(self._timeouts, now.timer_ms + settings.abort_interval_ms)
        deadlines.schedule(self._expiry, now.timer_ms + settings.expiration_interval_ms)
        self.alarm.set(now)

    def partition_online(self, log: PartitionLog) -> None:
        """Load the transactions of a partition whose log has become readable."""
        self._loads.add(self.shards.load_in_slices(log))

    def partition_offline(self, partition: int) -> None:
        """Stop serving the transactions of a partition whose log is offline."""
        shard = self.shards.unavailable(partition)
        if shard is not None:
            self._completion.cancel(shard)

    def close(self) -> None:
        """Stop serving."""
        self.alarm.cancel()
        self._timeouts.cancel()
        self._expiry.cancel()
        self._completion.close(self._clock())
        self.shards.close()

    def _on_shard_loaded(self, shard: TransactionShard) -> None:
        self._resume_some(shard, iter(list(shard.state.by_id)))

    def _resume_some(self, shard: TransactionShard, ids: Iterator[str]) -> None:
        """Go on with some transactions of a shard that was loaded; the others in the next turns.

        Those whose end was decided are completed. The age of those that are open is noted.
        """
        if shard not in self.shards.serving():
            return
        now = self._clock()
        some = list(islice(ids, CHECKS_PER_TURN))
        if some:
            self._loop.call_soon(self._resume_some, shard, ids)
        for transactional_id in some:
            transaction = shard.state.find(transactional_id)
            if transaction is None:
                continue
            if transaction.state is TransactionState.ONGOING:
                shard.state.note_age(transactional_id, now)
            elif transaction.state in PREPARED:
                self._completion.resume(shard, transactional_id, now)
        self.alarm.set(now)

    # -- producers ---------------------------------------------------------------------------------

    def needs_producer_id(self, call: InitCall) -> bool:
        """Check the request, and return whether `init_producer_id` needs a new producer id.

        Raises ApiError: INVALID_REQUEST, INVALID_TRANSACTION_TIMEOUT, UNSUPPORTED_VERSION,
        TRANSACTIONAL_ID_AUTHORIZATION_FAILED, and those of `init_producer_id`.
        """
        self._check_init(call)
        transaction = self.shards.of(call.transactional_id).state.find(call.transactional_id)
        if transaction is None:
            return True
        check_start(transaction, call.expected)
        is_open = transaction.state is TransactionState.ONGOING
        return not is_open and needs_producer_id(transaction, call.expected)

    def init_producer_id(self, call: InitCall, new_producer_id: int | None) -> ProducerIdAndEpoch:
        """Give a producer the id and epoch of its transactional id, and fence older instances.

        `new_producer_id`: a new one if `needs_producer_id`, which is called first, has said so. An
        open transaction is aborted, and the request refused with CONCURRENT_TRANSACTIONS; the
        producer repeats it. Raises ApiError: PRODUCER_FENCED, CONCURRENT_TRANSACTIONS, and those of
        the coordinator.
        """
        now = self._clock()
        shard = self.shards.of(call.transactional_id)
        timeout_ms = NO_TIMEOUT_MS if call.is_two_phase else call.timeout_ms
        transaction = shard.state.find(call.transactional_id)
        if transaction is None:
            assert new_producer_id is not None
            transaction = Transaction(
                transactional_id=call.transactional_id,
                producer_id=new_producer_id,
                timeout_ms=timeout_ms,
                last_update_ms=now.wall_ms,
            )
        check_start(transaction, call.expected)
        if transaction.state is TransactionState.ONGOING:
            self._fence(shard, transaction, now)
            raise ApiError(
                ErrorCode.CONCURRENT_TRANSACTIONS,
                f"the open transaction of {call.transactional_id} has been aborted",
            )
        if needs_producer_id(transaction, call.expected):
            assert new_producer_id is not None
            started = rotate_producer_id(
                transaction,
                call.expected,
                new_producer_id=new_producer_id,
                timeout_ms=timeout_ms,
                now_ms=now.wall_ms,
            )
        else:
            started = raise_epoch(
                transaction,
                call.expected,
                last_epoch=shard.state.last_epoch(call.transactional_id),
                timeout_ms=timeout_ms,
                now_ms=now.wall_ms,
            )
        producer = ProducerIdAndEpoch(
            started.transaction.producer_id, started.transaction.producer_epoch
        )
        outcome = shard.state.write(
            started.transaction, self._version(), producer, last_epoch=started.last_epoch
        )
        return shard.journal.commit(outcome, now.wall_ms)

    def _check_init(self, call: InitCall) -> None:
        _check_not_empty(call.transactional_id)
        if call.is_two_phase and not self._settings.two_phase_commit:
            raise ApiError(
                ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
                "two-phase commit is off (transaction.two.phase.commit.enable)",
            )
        if call.keeps_prepared:
            raise ApiError(ErrorCode.UNSUPPORTED_VERSION, "a prepared transaction cannot be kept")
        highest_ms = self._settings.max_timeout_ms
        if not call.is_two_phase and not 0 < call.timeout_ms <= highest_ms:
            raise ApiError(
                ErrorCode.INVALID_TRANSACTION_TIMEOUT,
                f"a timeout of {call.timeout_ms} ms is not between 1 and {highest_ms}"
                " (transaction.max.timeout.ms)",
            )

    # -- transactions ------------------------------------------------------------------------------

    def add_partitions(
        self,
        transactional_id: str,
        producer: ProducerIdAndEpoch,
        partitions: AbstractSet[TopicPartition],
        *,
        client_version: int,
        step: Step = no_step,
    ) -> None:
        """Add partitions to a transaction; the first ones begin it.

        `partitions` must not change in a step. Raises ApiError: INVALID_REQUEST,
        INVALID_PRODUCER_ID_MAPPING, PRODUCER_FENCED, CONCURRENT_TRANSACTIONS, and those of the
        coordinator.
        """
        if len(partitions) >= PACKED_AHEAD:
            _, transaction = self._find(transactional_id)
            check_may_add(transaction, producer)
            self._codec.pack_ahead(transaction, partitions, step)
        now = self._clock()
        shard, transaction = self._find(transactional_id)
        changed = add_partitions(
            transaction,
            producer,
            partitions,
            client_version=client_version,
            now_ms=now.wall_ms,
        )
        if changed is not None:
            outcome = shard.state.write(changed, self._version(), None)
            shard.journal.commit(outcome, now.wall_ms)
            shard.state.note_age(transactional_id, now)

    def missing_partitions(
        self,
        transactional_id: str,
        producer: ProducerIdAndEpoch,
        partitions: AbstractSet[TopicPartition],
        step: Step = no_step,
    ) -> list[TopicPartition]:
        """Return those of the partitions that are not in the transaction. Raises ApiError."""
        _, transaction = self._find(transactional_id)
        return missing_partitions(transaction, producer, partitions, step)

    def unsynced_log(self, transactional_id: str) -> PartitionLog | None:
        """Return the log of the newest record of an id if that must be synced, and is not yet.

        Until then nothing may be written for its transaction: after a power cut, nobody would end
        it. The id must be known. Raises ApiError.
        """
        shard = self.shards.of(transactional_id)
        log = shard.journal.log
        return None if is_synced(log, shard.state.record_offsets[transactional_id]) else log

    def end(
        self,
        transactional_id: str,
        producer: ProducerIdAndEpoch,
        *,
        commit: bool,
        client_version: int,
    ) -> ProducerIdAndEpoch:
        """Commit or abort a transaction.

        Returns what the producer must use from now on; NO_PRODUCER in version 1, where nothing
        changes. Raises ApiError: INVALID_REQUEST, INVALID_PRODUCER_ID_MAPPING, PRODUCER_FENCED,
        CONCURRENT_TRANSACTIONS, INVALID_TXN_STATE, and those of the coordinator.
        """
        now = self._clock()
        shard, transaction = self._find(transactional_id)
        if client_version < FIRST_VERSION_WITH_EPOCH_BUMP:
            if must_end_v1(transaction, producer, commit=commit):
                self._end(shard, transaction, now, commit=commit, client_version=client_version)
            return NO_PRODUCER
        if not must_end_v2(transaction, producer, commit=commit):
            return ProducerIdAndEpoch(transaction.producer_id, transaction.producer_epoch)
        return self._end(shard, transaction, now, commit=commit, client_version=client_version)

    def _end(
        self,
        shard: TransactionShard,
        transaction: Transaction,
        now: Now,
        *,
        commit: bool,
        client_version: int,
    ) -> ProducerIdAndEpoch:
        is_v2 = client_version >= FIRST_VERSION_WITH_EPOCH_BUMP
        prepared = prepare(
            transaction,
            commit=commit,
            client_version=client_version,
            next_producer_id=self._next_producer_id(transaction, now) if is_v2 else NO_PRODUCER_ID,
            now_ms=now.wall_ms,
        )
        last_epoch = transaction.producer_epoch if is_v2 else None
        self._commit_and_complete(shard, prepared, now, last_epoch)
        return producer_after(prepared)

    def _fence(self, shard: TransactionShard, transaction: Transaction, now: Now) -> None:
        """Abort an open transaction, and raise the epoch, so that its producer is fenced."""
        version = self._version()
        is_v2 = version >= FIRST_VERSION_WITH_EPOCH_BUMP
        prepared = prepare_fence(
            transaction,
            transaction_version=version,
            next_producer_id=self._next_producer_id(transaction, now) if is_v2 else NO_PRODUCER_ID,
            now_ms=now.wall_ms,
        )
        last_epoch = transaction.producer_epoch if is_v2 else NO_PRODUCER_EPOCH
        self._commit_and_complete(shard, prepared, now, last_epoch)

    def _next_producer_id(self, transaction: Transaction, now: Now) -> int:
        if not transaction.is_epoch_exhausted:
            return NO_PRODUCER_ID
        return self._new_producer_id(now.wall_ms)

    def _commit_and_complete(
        self, shard: TransactionShard, prepared: Transaction, now: Now, last_epoch: int | None
    ) -> None:
        outcome = shard.state.write(prepared, self._version(), None, last_epoch=last_epoch)
        shard.journal.commit(outcome, now.wall_ms)
        self._completion.begin(shard, prepared, now)
        self.alarm.set(now)

    def _find(self, transactional_id: str) -> tuple[TransactionShard, Transaction]:
        _check_not_empty(transactional_id)
        shard = self.shards.of(transactional_id)
        return shard, shard.state.get(transactional_id)

    # -- administration ----------------------------------------------------------------------------

    def describe(self, transactional_id: str) -> Transaction:
        """Return the transaction of an id. Raises ApiError: TRANSACTIONAL_ID_NOT_FOUND."""
        _check_not_empty(transactional_id)
        known = self.shards.of(transactional_id).state.find(transactional_id)
        if known is None:
            raise ApiError(
                ErrorCode.TRANSACTIONAL_ID_NOT_FOUND,
                f"transactional id {transactional_id} is not known",
            )
        return known

    def transactions(self, step: Step = no_step) -> Iterator[Transaction]:
        """Iterate over all transactional ids. Raises ApiError while some are still loading."""
        return (known for shard in self.shards.all() for known in shard.state.all(step))

    # -- in the background -------------------------------------------------------------------------

    def _abort_timed_out(self, _subject: None, now: Now) -> None:
        self.alarm.deadlines.schedule(
            self._timeouts, now.timer_ms + self._settings.abort_interval_ms
        )
        self._abort_some(
            (shard, transactional_id)
            for shard in list(self.shards.serving())
            for transactional_id in shard.state.open_ids()
        )

    def _abort_some(self, ids: Iterator[tuple[TransactionShard, str]], found: int = 0) -> None:
        """Abort those of some ids that have timed out, and of the others in the next turns.

        `found`: how many had timed out in the turns before.
        """
        now = self._clock()
        is_done = True
        try:
            for shard, transactional_id in islice(ids, CHECKS_PER_TURN):
                is_done = False
                transaction = shard.state.timed_out(transactional_id, now)
                if transaction is None or shard not in self.shards.serving():
                    continue
                found += 1
                self._abort(shard, transaction, now, is_logged=found <= LOGGED_TIMEOUTS)
                if self._clock().timer_ms >= now.timer_ms + ABORTS_MS:
                    break
        finally:
            if not is_done:
                self._loop.call_soon(self._abort_some, ids, found)
            elif found > LOGGED_TIMEOUTS:
                logger.info("%d more transactions have timed out", found - LOGGED_TIMEOUTS)
            self.alarm.set(now)

    def _abort(
        self, shard: TransactionShard, transaction: Transaction, now: Now, *, is_logged: bool
    ) -> None:
        """Abort a transaction that has timed out; if that fails, the next pass tries again."""
        age_ms = max(now.wall_ms - transaction.start_ms, 0)
        what = (
            f"the transaction of {transaction.transactional_id} (producer id"
            f" {transaction.producer_id}, epoch {transaction.producer_epoch}) after {age_ms} ms"
        )
        try:
            self._fence(shard, transaction, now)
        except ApiError as error:
            if is_logged:
                logger.warning("cannot abort %s: %s", what, error)
        else:
            if is_logged:
                logger.info("aborted %s: its timeout is %d ms", what, transaction.timeout_ms)

    def _remove_expired(self, _subject: None, now: Now) -> None:
        self.alarm.deadlines.schedule(
            self._expiry, now.timer_ms + self._settings.expiration_interval_ms
        )
        self._remove_some(
            (shard, transactional_id)
            for shard in list(self.shards.serving())
            for transactional_id in list(shard.state.by_id)
        )

    def _remove_some(self, ids: Iterator[tuple[TransactionShard, str]]) -> None:
        """Remove those of some ids that have expired, and of the others in the next turns."""
        now = self._clock()
        some = list(islice(ids, CHECKS_PER_TURN))
        if some:
            self._loop.call_soon(self._remove_some, ids)
        for shard, of_shard in groupby(some, itemgetter(0)):
            if shard not in self.shards.serving():
                continue
            transactional_ids = [transactional_id for _, transactional_id in of_shard]
            expired = shard.state.expire(
                transactional_ids, now.wall_ms, self._settings.expiration_ms
            )
            try:
                shard.journal.commit(expired, now.wall_ms)
            except ApiError as error:
                logger.warning("transactional ids cannot expire: %s", error)


def _check_not_empty(transactional_id: str) -> None:
    if not transactional_id:
        raise ApiError(ErrorCode.INVALID_REQUEST, "the transactional id is empty")
