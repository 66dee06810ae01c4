"""The judges of the crash tests notice what they are there for."""

import pytest

from tests.crash.ledger import Ledger, Stored, broken, out_of_order


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
