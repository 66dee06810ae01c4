"""A crash before any write: each transaction ends as it was decided, once, in all its partitions.

Apache Kafka writes a marker again when it does not know that it is there (its coordinator has the
Prepare record, and no Complete record), and its logs take a marker that repeats the last one. So
does odradek: a repeated marker ends no records.
"""

import os
import random
import shutil
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import count, pairwise, product
from pathlib import Path
from typing import NamedTuple

import pytest

from odradek.coordinator.runtime.shards import CoordinatorShards
from odradek.storage.files import Files
from tests.support.crashing_files import CrashedError, CrashingFiles, QuickFiles
from tests.support.groups import TOPIC
from tests.support.lengths import SEED, by_length
from tests.support.transaction_life import (
    LOGS,
    OFFSETS,
    PARTITIONS,
    STATE,
    Event,
    Life,
    Marker,
    Producer,
    RecordingFiles,
    Script,
)

SCRIPTS = [
    Script([(0, b"a0"), (1, b"a1")], 5, commit=True),
    Script([(0, b"b0"), (1, b"b1"), (0, b"b00")], 6, commit=False),
    Script([(1, b"c1")], 7, commit=True),
    Script([(0, b"d0"), (1, b"d1")], None, commit=False),
]


class Outcome(NamedTuple):
    """By partition: the markers with the records that they ended, and the committed records.

    Then the markers of offsets, and the committed offset.
    """

    markers: list[list[tuple[bool, tuple[bytes, ...]]]]
    records: list[list[bytes]]
    offset_markers: list[bool]
    offset: int


VERSIONS = by_length((2,), (1, 2))
KILLS = 12


def live(root: Path, files: Files, producer: Producer, *, syncs: bool) -> None:
    """The first life."""
    life = Life(root, files, 0, syncs=syncs)
    producer.go_on(life)
    life.settle()


def check_log(life: Life) -> None:
    """The live transactions are those of the log."""
    shards = life.transactions.shards
    replayed = CoordinatorShards(
        shards.topic,
        lambda _partition: type(shards.at(0).state)(),
        shards._codec,
        compression=shards._compression,
        logger=shards._logger,
    )
    replayed.open_topic([life.logs[STATE]], 1)
    assert replayed.at(0).state.by_id == shards.at(0).state.by_id


def check_empty(markers: list[Marker]) -> None:
    """A marker that ended no records repeats the one before it, or aborts a transaction that had
    not got further than to add the partition.
    """
    for before, marker in pairwise(markers):
        repeats = (marker.is_commit, marker.epoch) == (before.is_commit, before.epoch)
        assert marker.values or repeats or not marker.is_commit


def outcome(life: Life) -> Outcome:
    """What has become of the transactions."""
    by_log = {key: life.markers(key) for key in LOGS if key != STATE}
    for markers in by_log.values():
        check_empty(markers)
    return Outcome(
        [
            [(one.is_commit, one.values) for one in by_log[TOPIC[0], each] if one.values]
            for each in PARTITIONS
        ],
        [life.committed(each) for each in PARTITIONS],
        [one.is_commit for one in by_log[OFFSETS] if one.values],
        life.committed_offset(),
    )


def expected(scripts: Sequence[Script]) -> Outcome:
    """What becomes of these transactions, and no others."""
    committed = [script for script in scripts if script.commit]
    offsets = [script.offset for script in committed if script.offset is not None]
    return Outcome(
        [
            [(one.commit, one.values(each)) for one in scripts if one.values(each)]
            for each in PARTITIONS
        ],
        [[value for one in committed for value in one.values(each)] for each in PARTITIONS],
        [one.commit for one in scripts if one.offset is not None],
        offsets[-1] if offsets else -1,
    )


def possible(ended: int) -> Iterator[Sequence[Script]]:
    """The transactions that may have taken place when the ends of some were answered.

    The one after them has ended as a whole, or was aborted where it had come to.
    """
    yield SCRIPTS[:ended]
    for last in SCRIPTS[ended : ended + 1]:
        yield SCRIPTS[: ended + 1]
        for size in range(1, len(last.records) + 1):
            yield [*SCRIPTS[:ended], Script(last.records[:size], None, commit=False)]
        yield [*SCRIPTS[:ended], last._replace(commit=False)]


def kills(scratch: Path, version: int) -> Iterator[tuple[Path, Producer]]:
    """The directories that a process leaves when it is killed before any write or in the middle of
    one, each with its producer.
    """
    counting = CrashingFiles(1 << 30)
    Life(scratch / "empty", counting, 0, syncs=False)
    begun = counting.changes
    live(scratch / "whole", counting, Producer(SCRIPTS, version), syncs=False)
    kinds = counting.kinds[begun:]
    for limit, kind in enumerate(kinds[begun:], begun):
        for tears in (False, True) if kind == "append" else (False,):
            root = scratch / f"{limit}-{tears}"
            producer = Producer(SCRIPTS, version)
            with suppress(CrashedError):
                live(root, CrashingFiles(limit, tears=tears), producer, syncs=False)
            (root / "data" / ".lock").unlink(missing_ok=True)  # a dead process holds no lock
            yield root, producer


def power_cuts(scratch: Path, version: int) -> Iterator[tuple[Path, Producer]]:
    """The directories that are left when the power goes after any write or fsync.

    What a log has after its last fsync is lost in some of them, whatever the other logs lose.
    """
    whole = scratch / "whole"
    producer = Producer(SCRIPTS, version)
    files = RecordingFiles(whole, producer)
    live(whole, files, producer, syncs=True)
    (whole / "data" / ".lock").unlink()
    seen = set()
    for event in files.events:
        for sizes in possible_sizes(event):
            if (event.memory.steps, sizes) not in seen:
                seen.add((event.memory.steps, sizes))
                root = scratch / f"{len(seen)}"
                shutil.copytree(whole, root)
                for path in files.events[-1].sizes:
                    os.truncate(root / path, dict(sizes).get(path, 0))
                yield root, Producer(SCRIPTS, version, event.memory)


def possible_sizes(event: Event) -> Iterator[tuple[tuple[Path, int], ...]]:
    """How much may be left of each log. In the long variant the last batch may also be torn."""
    choices = []
    for path, size in event.sizes.items():
        synced = event.synced.get(path, 0)
        left = {synced, size, *by_length([], [max(size - 10, synced)])}
        choices.append([(path, each) for each in sorted(left)])
    return product(*choices)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.slow
def test_after_a_kill_the_producer_goes_on(scratch: Path, version: int) -> None:
    for root, producer in kills(scratch, version):
        life = Life(root, QuickFiles(), 1, syncs=False)
        producer.go_on(life)
        life.settle()
        assert outcome(life) == expected(SCRIPTS)
        check_log(life)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.slow
def test_after_a_kill_the_producer_never_comes_back(scratch: Path, version: int) -> None:
    for root, producer in kills(scratch, version):
        life = Life(root, QuickFiles(), 1, syncs=False)
        life.expire()
        assert outcome(life) in [expected(each) for each in possible(producer.memory.ended)]
        check_log(life)


@pytest.mark.parametrize("version", VERSIONS)
def test_after_many_kills_and_in_small_segments_the_producer_goes_on(
    scratch: Path, version: int
) -> None:
    for seed in range(by_length(4, 500)):
        chance = random.Random(f"{SEED} {seed} {version}")
        root = scratch / f"{seed}"
        producer = Producer(SCRIPTS, version)
        for number in count():
            limit = chance.randrange(180) if number < KILLS else 1 << 30
            files = CrashingFiles(limit, tears=chance.random() < 0.5)
            with suppress(CrashedError):
                life = Life(root, files, number, syncs=False, segment_bytes=800)
                producer.go_on(life)
                life.settle()
                break
            (root / "data" / ".lock").unlink(missing_ok=True)
        assert outcome(life) == expected(SCRIPTS)
        check_log(life)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.slow
def test_after_a_power_cut_the_producer_goes_on(scratch: Path, version: int) -> None:
    for root, producer in power_cuts(scratch, version):
        life = Life(root, QuickFiles(), 1, syncs=True)
        producer.go_on(life)
        life.settle()
        assert outcome(life) == expected(SCRIPTS)
        check_log(life)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.slow
def test_after_a_power_cut_the_producer_never_comes_back(scratch: Path, version: int) -> None:
    for root, producer in power_cuts(scratch, version):
        life = Life(root, QuickFiles(), 1, syncs=True)
        life.expire()
        assert outcome(life) in [expected(each) for each in possible(producer.memory.ended)]
        check_log(life)
