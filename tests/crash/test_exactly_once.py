"""The judge of the copies notices every kind of fault."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from tests.crash.exactly_once import MAX_SHOWN, History, faults
from tests.crash.ledger import Stored
from tests.crash.transaction_log import Batch, Marker, log_faults

PRODUCER = 7


def data(
    base_offset: int, *values: bytes, epoch: int = 0, sequence: int = 0, producer_id: int = PRODUCER
) -> Batch:
    """A transactional batch."""
    records = [Stored(base_offset + index, value) for index, value in enumerate(values)]
    last_offset = records[-1].offset
    return Batch(base_offset, last_offset, producer_id, epoch, sequence, True, None, records)


def end(offset: int, marker: Marker, *, epoch: int = 0, producer_id: int = PRODUCER) -> Batch:
    """A marker."""
    return Batch(offset, offset, producer_id, epoch, -1, True, marker, [])


# Four records of one source partition, copied to two partitions: in transaction A the first two, in
# B, which is aborted, the third, and in C the last two.
SOURCE = {0: [Stored(offset, b"%d" % (100 + offset)) for offset in range(4)]}
A1, A2 = Stored(0, b"0 0 100 A 2"), Stored(0, b"0 1 101 A 2")
B1 = Stored(2, b"0 2 102 B 2")
C1, C2 = Stored(4, b"0 2 102 C 2"), Stored(2, b"0 3 103 C 2")
GOOD = History(
    written=[100, 101, 102, 103],
    source=SOURCE,
    source_log={0: [data(0, *(seen.value for seen in SOURCE[0])), end(4, "commit")]},
    log={
        0: [
            data(0, A1.value),
            end(1, "commit"),
            data(2, B1.value, sequence=1),
            end(3, "abort"),
            data(4, C1.value, sequence=2),
            end(5, "commit"),
        ],
        1: [data(0, A2.value), end(1, "commit"), data(2, C2.value, sequence=1), end(3, "commit")],
    },
    committed={0: [A1, C1], 1: [A2, C2]},
    uncommitted={0: [A1, B1, C1], 1: [A2, C2]},
    early_committed=[{0: [A1], 1: []}],
    early_uncommitted=[{0: [A1, B1], 1: [A2]}],
    offsets={0: 4},
    told_committed=frozenset("AC"),
    told_aborted=frozenset("B"),
)


def test_an_exact_copy_has_no_faults() -> None:
    assert faults(GOOD) == []


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"written": [100, 101, 102, 103, 104]}, "source: lost: 104"),
        ({"written": [100, 101, 102]}, "source: not committed: 103"),
        (
            {"committed": {0: [A1], 1: [A2, C2]}},
            "copy-0: committed, yet invisible: 4: b'0 2 102 C 2'",
        ),
        ({"committed": {0: [A1], 1: [A2, C2]}}, "torn: C shows 1 of 2 records"),
        ({"committed": {0: [A1], 1: [A2, C2]}}, "lost: 102, which is source-0 at 2"),
        (
            {"committed": {0: [A1, B1, C1], 1: [A2, C2]}},
            "copy-0: aborted, yet visible: 2: b'0 2 102 B 2'",
        ),
        (
            {"committed": {0: [A1, B1, C1], 1: [A2, C2]}},
            "doubled: 102, which is source-0 at 2: B, C",
        ),
        (
            {"committed": {0: [A1, B1, C1], 1: [A2, C2]}},
            "aborted, yet visible: B, of which the client was told",
        ),
        (
            {"committed": {0: [], 1: [C2]}},
            "committed, yet invisible: A, of which the client was told",
        ),
        ({"committed": {0: [C1, A1], 1: [A2, C2]}}, "copy-0: a reader got offset 0 after 4"),
        (
            {"committed": {0: [C1, A1], 1: [A2, C2]}},
            "copy-0: order: source-0 at 0 comes after 2",
        ),
        (
            {"uncommitted": {0: [A1, C1], 1: [A2, C2]}},
            "copy-0: read_uncommitted does not show what is in the log",
        ),
        (
            {"early_committed": [{0: [A1, B1]}]},
            f"copy-0: read_committed has shown {B1}, and later {C1}",
        ),
        (
            {"early_committed": [{1: [A2, C2, C1]}]},
            f"copy-1: read_committed has shown {C1}, and later nothing",
        ),
        (
            {"early_uncommitted": [{0: [A1, C1]}]},
            f"copy-0: read_uncommitted has shown {C1}, and later {B1}",
        ),
        (
            {"offsets": {0: 3}},
            "offsets: 3 is committed for source-0, which does not fit the copy at 3",
        ),
        ({"offsets": {}}, "offsets: 0 is committed for source-0, which does not fit the copy at 0"),
        (
            {"source": {0: SOURCE[0][:3]}},
            "a copy of source-0 at 3, where no committed record is",
        ),
        (
            {"source": {0: [*SOURCE[0][:2], SOURCE[0][3], SOURCE[0][2]]}},
            "source-0: order: 102 comes after 103",
        ),
        (
            {"source": {0: [*SOURCE[0][:3], Stored(3, b"102")]}},
            "source: doubled: 102",
        ),
        (
            {"source": {0: [*SOURCE[0][:3], Stored(3, b"102")]}},
            "source-0 at 3 is 102; its copy is"
            " Copied(partition=0, offset=3, number=103, transaction='C', size=2)",
        ),
        ({"source_log": {0: [data(1, b"0")]}}, "source-0: a gap: 1 follows -1"),
    ],
)
def test_a_fault_is_found(change: dict[str, Any], expected: str) -> None:
    assert expected in faults(replace(GOOD, **change))


def test_a_report_is_short() -> None:
    found = faults(replace(GOOD, written=range(1000)))
    assert len(found) == MAX_SHOWN + 1
    assert found[-1].startswith("and ")


@pytest.mark.parametrize(
    "batches",
    [
        pytest.param([], id="an empty log"),
        pytest.param([end(0, "abort")], id="a partition that was added and not written"),
        pytest.param(
            [data(0, b"a"), end(1, "commit"), end(2, "commit")], id="a marker written again"
        ),
        pytest.param(
            [
                data(0, b"a"),
                end(1, "commit", epoch=1),
                data(2, b"b", epoch=1),
                end(3, "abort", epoch=2),
                data(4, b"c", epoch=3),
                end(5, "commit", epoch=4),
            ],
            id="an epoch for each transaction",
        ),
        pytest.param(
            [
                data(0, b"a"),
                data(1, b"b", producer_id=8),
                end(2, "commit"),
                data(3, b"c", sequence=1),
                end(4, "abort", producer_id=8),
                end(5, "commit"),
            ],
            id="two producers",
        ),
        pytest.param(
            [data(0, b"a", sequence=-1), data(1, b"b", sequence=-1), end(2, "commit")],
            id="offsets of a group",
        ),
    ],
)
def test_a_sound_log_has_no_faults(batches: Sequence[Batch]) -> None:
    assert list(log_faults(batches)) == []


@pytest.mark.parametrize(
    ("batches", "expected"),
    [
        ([data(0, b"a"), data(2, b"b", sequence=1), end(3, "abort")], "a gap: 2 follows 0"),
        (
            [data(0, b"a"), data(1, b"b", sequence=2), end(2, "commit")],
            "producer 7 of epoch 0 has written sequence 2 instead of 1, at offset 1",
        ),
        (
            [data(0, b"a"), data(1, b"a"), end(2, "commit")],
            "producer 7 of epoch 0 has written sequence 0 instead of 1, at offset 1",
        ),
        (
            [data(0, b"a"), end(1, "abort", epoch=1), data(2, b"b", epoch=0, sequence=1)],
            "producer 7 of epoch 0 has written after epoch 1, at offset 2",
        ),
        (
            [data(0, b"a"), data(1, b"b", epoch=1), end(2, "commit", epoch=1)],
            "producer 7 of epoch 1 has written while the transaction of epoch 0 was open,"
            " at offset 1",
        ),
        ([end(0, "commit")], "a commit marker of producer 7 ends no data, at offset 0"),
        (
            [data(0, b"a"), end(1, "abort"), end(2, "commit")],
            "a commit marker of producer 7 ends no data, at offset 2",
        ),
        (
            [data(0, b"a", epoch=1), end(1, "abort", epoch=0), end(2, "abort", epoch=1)],
            "a marker of epoch 0 of producer 7 came after epoch 1, at offset 1",
        ),
        (
            [
                data(0, b"a"),
                end(1, "commit", epoch=1),
                data(2, b"b", epoch=1),
                end(3, "commit", epoch=1),
            ],
            "the marker of the last transaction of producer 7 ends the next, of epoch 1,"
            " at offset 3",
        ),
        ([data(0, b"a")], "the transaction of producer 7 was never ended"),
    ],
)
def test_a_fault_of_a_log_is_found(batches: Sequence[Batch], expected: str) -> None:
    assert list(log_faults(batches)) == [expected]


def test_what_an_open_transaction_has_written_must_not_be_visible() -> None:
    log = {**GOOD.log, 1: GOOD.log[1][:-1]}
    assert "copy-1: aborted, yet visible: 2: b'0 3 103 C 2'" in faults(replace(GOOD, log=log))
