"""Logs full of what the cleaner has to decide about, and a round of cleaning over one."""

import random
from collections.abc import Callable

from odradek.config.topic_config import TopicConfig
from odradek.protocol.compression import CompressionType
from odradek.protocol.record import Record
from odradek.protocol.record_batch import build_batch
from odradek.storage.append import EndMarker
from odradek.storage.cleaning.cleaner import Cleaner
from odradek.storage.cleaning.plan import assess, task_for
from odradek.storage.cleaning.task import CleanedGroup, CleaningResult
from odradek.storage.files import Files
from odradek.storage.log import PartitionLog
from tests.support.log_box import NOW_MS

BUFFER_BYTES = 1 << 20


def end_transaction(log: PartitionLog, producer_id: int, epoch: int, *, commit: bool) -> None:
    """A marker, as the transaction coordinator has it written."""
    log.append_marker(EndMarker(producer_id, epoch, commit, 0, 0), NOW_MS)


class Writer:
    """Appends batches of random records, some of them of idempotent or transactional producers.

    `bumps_epochs`: every transaction has an epoch of its own. `leaves_open`: transactions that are
    open stay open for the next `write`. `empty_transactions`: some have a marker only.
    """

    def __init__(
        self,
        seed: int,
        *,
        keys: int = 30,
        codecs: tuple[CompressionType, ...] = (CompressionType.NONE,),
        null_keys: bool = True,
        producers: bool = True,
        bumps_epochs: bool = False,
        leaves_open: bool = False,
        empty_transactions: bool = False,
    ) -> None:
        self.random = random.Random(seed)
        self._keys = keys
        self._codecs = codecs
        self._null_keys = null_keys
        self._producers = producers
        self._bumps_epochs = bumps_epochs
        self._leaves_open = leaves_open
        self._empty_transactions = empty_transactions
        self._sequences: dict[int, int] = {}
        self._epochs: dict[int, int] = {}
        self._open: set[int] = set()

    def write(self, log: PartitionLog, batches: int) -> None:
        """That many batches of records, and markers between them."""
        for _ in range(batches):
            self._write_batch(log)
        for producer_id in sorted(self._open):
            if not self._leaves_open:
                self._end(log, producer_id)

    def _write_batch(self, log: PartitionLog) -> None:
        rng = self.random
        producer_id = rng.choice([-1, -1, 1, 2, 11, 12]) if self._producers else -1
        if producer_id in self._open and rng.random() < 0.4:
            self._end(log, producer_id)
            return
        is_transactional = producer_id > 10
        if self._empty_transactions and is_transactional and rng.random() < 0.3:
            self._end(log, producer_id)
            return
        records = [self.record() for _ in range(rng.randrange(1, 7))]
        batch = build_batch(
            records,
            compression=rng.choice(self._codecs),
            producer_id=producer_id,
            producer_epoch=self._epochs.get(producer_id, 0) if producer_id >= 0 else -1,
            base_sequence=self._sequences.get(producer_id, 0) if producer_id >= 0 else -1,
            is_transactional=is_transactional,
        )
        if is_transactional:
            self._open.add(producer_id)
        self._sequences[producer_id] = self._sequences.get(producer_id, 0) + len(records)
        log.append(bytes(batch), now_ms=NOW_MS + rng.randrange(500), transaction_verified=True)

    def record(self) -> Record:
        """One with a random key, mostly a value, and a time of its own."""
        rng = self.random
        key = b"key-%d" % rng.randrange(self._keys)
        value = None if rng.random() < 0.2 else bytes([rng.randrange(256)]) * rng.randrange(40)
        headers = (("name", b"x" * rng.randrange(5)),) if rng.random() < 0.2 else ()
        is_nobodys = self._null_keys and rng.random() < 0.05
        stamp_ms = NOW_MS - rng.randrange(100) * rng.choice([0, 1, 50, 10**6])
        return Record(None if is_nobodys else key, value, stamp_ms, headers)

    def _end(self, log: PartitionLog, producer_id: int) -> None:
        self._open.discard(producer_id)
        epoch = self._epochs.get(producer_id, 0)
        if self._bumps_epochs:
            epoch = self._epochs[producer_id] = epoch + 1
            self._sequences[producer_id] = 0
        end_transaction(log, producer_id, epoch, commit=self.random.random() < 0.5)


def clean(
    log: PartitionLog,
    now_ms: int,
    *,
    checkpoint: int | None = None,
    buffer_bytes: int = BUFFER_BYTES,
    files: Files | None = None,
    on_io: Callable[[int], None] = lambda _: None,
) -> CleaningResult:
    """One round, each group swapped in as soon as it is there."""
    to_clean = assess(log, checkpoint, now_ms)
    cleaner = Cleaner(
        files or Files(), dedupe_buffer_bytes=buffer_bytes, io_buffer_bytes=4096, on_io=on_io
    )

    return cleaner.clean(task_for(log, to_clean, now_ms), lambda group: swap_in(log, group, now_ms))


def swap_in(log: PartitionLog, group: CleanedGroup, now_ms: int) -> None:
    """All steps of a swap, here and now."""
    swap = log.stage_replacement(group.segments, now_ms)
    try:
        swap.sync()
    except OSError as error:
        log.take_offline(f"a sync failed: {error}")
        raise log.failed("sync", error) from error
    if not log.complete_replacement(swap, group.replaced):
        log.take_offline("a swap stopped half way")
        log.check_online()


def compacted(config: TopicConfig) -> TopicConfig:
    """The same settings for a topic that is compacted."""
    return config.replace(cleanup_policy=("compact",))
