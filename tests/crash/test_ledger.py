"""The judges of the crash tests notice what they are there for."""

import pytest

from tests.crash.keyed_history import Fate, Found, History, Transaction, Written
from tests.crash.ledger import Ledger, Stored, broken, out_of_order

DELETED = ((b"old", b"1"), (b"tombstone", None))


def test_a_record_that_is_gone_or_became_another_is_noticed() -> None:
    promised = {0: b"w-0", 1: b"w-1", 2: b"w-2"}
    kept = [Stored(0, b"w-0"), Stored(1, b"w-1"), Stored(2, b"w-2"), Stored(3, b"w-3")]
    assert broken(promised, kept) == []
    assert broken(promised, kept[:2]) == ["offset 2: b'w-2' became None"]
    moved = [Stored(0, b"w-0"), Stored(1, b"w-2"), Stored(2, b"w-1")]
    assert len(broken(promised, moved)) == 2


def test_doubles_and_changed_order_are_noticed() -> None:
    assert out_of_order([Stored(0, b"w-1"), Stored(1, b"v-0"), Stored(2, b"w-5")]) == []
    assert len(out_of_order([Stored(0, b"w-1"), Stored(1, b"w-1")])) == 1
    assert len(out_of_order([Stored(0, b"w-2"), Stored(1, b"w-1")])) == 1


def test_an_offset_is_promised_once() -> None:
    ledger = Ledger()
    ledger.acknowledge(0, 7, b"w-1")
    ledger.acknowledge(1, 7, b"w-2")
    with pytest.raises(AssertionError, match="offset 7 was given to"):
        ledger.acknowledge(0, 7, b"w-3")
    assert len(ledger) == 2
    assert ledger.promises() == {0: {7: b"w-1"}, 1: {7: b"w-2"}}


def test_a_compacted_topic_keeps_the_newest_committed_record_of_each_key() -> None:
    history, committed = History(), Transaction(Fate.COMMITTED)
    old = Written(b"old", 0, b"k", b"1", None)
    new = Written(b"new", 0, b"k", b"2", committed)
    aborted = Written(b"aborted", 0, b"k", b"3", Transaction(Fate.ABORTED))
    still_open = Written(b"open", 0, b"k", b"4", Transaction())
    records = (old, new, aborted, still_open)
    history.send(records)
    history.acknowledge(records, 0)

    def faults(*found: Found, committed_only: bool) -> int:
        ends = [history.open_from(0) or 0] if committed_only else [4]
        judged = history.faults(found, ends, committed_only=committed_only, while_cleaning=False)
        return len(list(judged))

    first, second, third, fourth = (found_at(offset, each) for offset, each in enumerate(records))
    assert faults(first, second, committed_only=True) == 0
    assert faults(second, committed_only=True) == 0
    assert faults(first, committed_only=True) == 1  # the newest is lost
    assert faults(second, first, committed_only=True) == 1  # the offsets do not rise
    assert faults(second, third, committed_only=True) == 1  # aborted
    assert faults(second, fourth, committed_only=True) == 1  # open
    assert faults(second, third, fourth, committed_only=False) == 0
    assert faults(second, third, committed_only=False) == 1  # what is open is lost
    assert faults(second._replace(offset=2), fourth, committed_only=False) == 1  # it has moved
    assert faults(second._replace(value=b"x"), fourth, committed_only=False) == 1


def test_what_a_tombstone_has_deleted_does_not_come_back() -> None:
    history = History()
    old, tombstone = (Written(each, 0, b"k", value, None) for each, value in DELETED)
    history.send([old, tombstone])
    history.acknowledge([old, tombstone], 0)

    def faults(*found: Found, while_cleaning: bool = False) -> int:
        return len(
            list(history.faults(found, [2], committed_only=True, while_cleaning=while_cleaning))
        )

    assert faults() == faults(found_at(1, tombstone)) == 0
    assert faults(found_at(0, old)) == 1
    assert faults(found_at(0, old), while_cleaning=True) == 0


def test_a_transaction_of_unknown_fate_is_there_as_a_whole_or_not_at_all() -> None:
    history, transaction = History(), Transaction(Fate.UNKNOWN)
    records = [Written(b"%d" % key, 0, b"%d" % key, b"v", transaction) for key in range(2)]
    history.send(records)
    history.acknowledge(records, 0)
    for count, expected in ((0, 0), (2, 0), (1, 1)):
        transaction.fate = Fate.UNKNOWN
        found = [found_at(offset, each) for offset, each in enumerate(records[:count])]
        history.settle(found)
        judged = history.faults(found, [2], committed_only=True, while_cleaning=False)
        assert len(list(judged)) == expected


def found_at(offset: int, record: Written) -> Found:
    return Found(record.partition, offset, record.id, record.key, record.value)
