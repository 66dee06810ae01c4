"""Where two answers differ, as it is reported."""

from tests.conformance.transcript import differences


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
