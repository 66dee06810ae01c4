"""The ledger of what was sent finds what is missing, changed, doubled or too much in a table."""

import re
from collections.abc import Mapping

import pytest

from odradek.pipeline.jobs.offset_spans import Span
from tests.support.sent_records import Content, Fate, Held, Place, Row, SentRecords

PLACE = Place("orders", "00", 0)
KEPT, ABORTED, REPLACED, NEWEST = (
    Content(b"k", value, (), 7) for value in (b"kept", b"aborted", b"replaced", b"newest")
)


def row(content: Content) -> Row:
    return Row(*content[:3], content.timestamp_ms or 0, 0)


SENT = dict(enumerate(map(row, (KEPT, ABORTED, REPLACED, NEWEST))))
COMMITTED = {offset: SENT[offset] for offset in (0, 2, 3)}


def faults(
    rows: Mapping[int, Row], *, covered: int = 4, lost: int = 0, compacted: bool = False
) -> list[str]:
    sent = SentRecords()
    for offset, each in SENT.items():
        sent.send(PLACE, each.content, may_repeat=False)
        sent.acknowledge(PLACE, offset, each)
        fate = Fate.ABORTED if each.content == ABORTED else Fate.COMMITTED
        sent.settle([(PLACE, each.content)], fate)
    held = Held(rows, [Span(0, covered)], [Span(0, lost)])
    return [*sent.faults(PLACE, held, committed_only=True, compacted=compacted)]


def test_a_table_that_has_what_it_says_has_no_faults() -> None:
    assert faults(COMMITTED) == []
    assert faults({0: SENT[0]}, covered=2) == []
    assert faults({2: SENT[2], 3: SENT[3]}, lost=1) == []
    assert faults({3: SENT[3]}, compacted=True) == []


@pytest.mark.parametrize(
    ("rows", "fault"),
    [
        ({0: SENT[0], 3: SENT[3]}, "offset 2 is missing"),
        ({**COMMITTED, 1: SENT[1]}, "offset 1 was aborted"),
        ({**COMMITTED, 2: SENT[2]._replace(timestamp_ms=8)}, "offset 2 is .*, and was: "),
        ({**COMMITTED, 2: SENT[2]._replace(headers=(("a", b""),))}, "offset 2 is .*, and was: "),
        ({**COMMITTED, 4: SENT[3]._replace(key=None)}, "offset 4 was never sent"),
        ({**COMMITTED, 4: SENT[3]}, "offset 3 is there 2 times"),
    ],
)
def test_each_fault_is_found(rows: Mapping[int, Row], fault: str) -> None:
    assert re.search(fault, faults(rows)[0])


def test_the_newest_record_of_a_key_may_not_be_missing_from_a_compacted_topic() -> None:
    (fault,) = faults({2: SENT[2]}, compacted=True)
    assert "offset 3 is missing" in fault


def test_an_aborted_record_may_be_missing_only_from_a_compacted_topic() -> None:
    newest = SentRecords()
    for offset, (content, fate) in enumerate([(KEPT, Fate.COMMITTED), (ABORTED, Fate.ABORTED)]):
        newest.send(PLACE, content, may_repeat=False)
        newest.acknowledge(PLACE, offset, row(content))
        newest.settle([(PLACE, content)], fate)

    def missing(offset: int, *, compacted: bool) -> list[str]:
        held = Held({1 - offset: SENT[1 - offset]}, [Span(0, 2)])
        return [*newest.faults(PLACE, held, committed_only=False, compacted=compacted)]

    assert missing(1, compacted=True) == []
    assert "offset 1 is missing" in missing(1, compacted=False)[0]
    assert "offset 0 is missing" in missing(0, compacted=True)[0]


def test_a_fault_names_the_fate_and_the_newest_record_of_the_key() -> None:
    newest = "and the newest of its key that is not aborted has offset 3"
    (missing,) = faults({0: SENT[0], 3: SENT[3]})
    assert missing.endswith(f"; it is committed, {newest}")
    (aborted,) = faults(SENT)
    assert aborted.endswith(f"; it is aborted, {newest}")


# -- transactions whose commit had no answer -------------------------------------------------------

OTHER = PLACE._replace(partition=1)


def with_unknown() -> SentRecords:
    """A record in each of two partitions, in one transaction."""
    sent = SentRecords()
    transaction = [(PLACE, KEPT), (OTHER, NEWEST)]
    for place, content in transaction:
        sent.send(place, content, may_repeat=False)
        sent.acknowledge(place, 0, row(content))
    sent.settle(transaction, Fate.UNKNOWN)
    return sent


def held(*, first: bool, second: bool) -> dict[Place, Held]:
    covered = [Span(0, 1)]
    return {
        PLACE: Held({0: row(KEPT)} if first else {}, covered),
        OTHER: Held({0: row(NEWEST)} if second else {}, covered),
    }


@pytest.mark.parametrize("is_there", [True, False])
def test_a_transaction_of_unknown_fate_may_be_there_or_not(is_there: bool) -> None:
    sent = with_unknown()
    tables = held(first=is_there, second=is_there)
    assert [fault for place, each in tables.items() for fault in faults_of(sent, place, each)] == []
    assert sent.resolve(tables) == []
    wrong = held(first=not is_there, second=not is_there)
    found = [fault for place, each in wrong.items() for fault in faults_of(sent, place, each)]
    assert ["missing" in fault for fault in found] == [is_there] * 2


def test_a_transaction_of_unknown_fate_may_not_be_there_in_part() -> None:
    (fault,) = with_unknown().resolve(held(first=True, second=False))
    assert "are there" in fault
    sent = with_unknown()  # what is not read yet says nothing, and what is there decides
    assert sent.resolve({PLACE: held(first=True, second=False)[PLACE], OTHER: Held({})}) == []
    assert sent.resolve(held(first=True, second=False)) == []
    assert "is missing" in faults_of(sent, OTHER, Held({}, [Span(0, 1)]))[0]


def faults_of(sent: SentRecords, place: Place, table: Held) -> list[str]:
    return [*sent.faults(place, table, committed_only=True, compacted=False)]
