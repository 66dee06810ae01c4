"""Where two answers differ, as it is reported."""

from odradek.protocol.record import Record
from odradek.protocol.record_batch import build_batch
from tests.conformance.transcript import Transcript, differences


def test_lists_of_different_length_differ_at_their_first_difference() -> None:
    kafka = [{"state": 0, "epoch": 1}, {"state": 1, "epoch": 1}, {"state": 2, "epoch": 1}]
    ours = [{"state": 0, "epoch": 1}, {"state": 2, "epoch": 1}]
    assert differences(kafka, ours, "x") == [
        "x: Kafka has 3, odradek 2",
        "x[1].state: Kafka says 1, odradek 2",
    ]


def test_a_list_that_lacks_its_end_differs_there() -> None:
    assert differences({"a": [1, 2]}, {"a": [1]}, "x") == [
        "x.a: Kafka has 2, odradek 1",
        "x.a[1]: Kafka says 2, odradek 'nothing'",
    ]


def fetched(*producer_ids: int, value: bytes = b"x") -> dict[str, bytes]:
    """A batch of each producer."""
    records = [Record(None, value, 1000)]
    batches = [
        build_batch(records, producer_id=each, producer_epoch=0, base_sequence=0)
        for each in producer_ids
    ]
    return {"records": b"".join(batches)}


def test_producer_ids_in_records_are_those_that_a_broker_draws() -> None:
    expected = Transcript(9092).plain(fetched(14, 14, 15))
    assert differences(expected, Transcript(9092).plain(fetched(44, 44, 45))) == []
    assert differences(expected, Transcript(9092).plain(fetched(44, 45, 45))) != []
    assert differences(expected, Transcript(9092).plain(fetched(44, 44, 45, value=b"y"))) != []
