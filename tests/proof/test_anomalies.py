"""The checker of histories finds each anomaly, and none in a sound history."""

import itertools
import json
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from .anomalies import ANOMALIES, CYCLES, anomalies
from .components import components
from .history import FINAL, Key, Kind, Operation, Outcome, Polled, Sent, operations

A, B = Key("t", 0), Key("t", 1)
G = {"group": "g"}
clock = itertools.count(1)


def done(process: str, **fields: Any) -> Operation:
    """An operation that ends before the next one begins."""
    return Operation(process=process, invoked_ns=next(clock), completed_ns=next(clock), **fields)


def send(value: str, offset: int | None = None, key: Key = A, **fields: Any) -> Operation:
    return done(fields.pop("by", "w"), sends=(Sent(key, value, offset),), **fields)


def poll(*records: tuple[int, str], by: str = FINAL, key: Key = A, **fields: Any) -> Operation:
    return done(by, polls=tuple(Polled(key, *each) for each in records), **fields)


def transaction(process: str, *records: Sent, **fields: Any) -> Operation:
    return done(process, **{"sends": records, "is_transaction": True, "commit_ns": 0, **fields})


def assign(by: str, *, beginning: bool = False) -> Operation:
    return done(by, kind=Kind.ASSIGN, new=(A,), keys=(A,), from_beginning=beginning)


def owns(member: str, generation: int) -> Operation:
    return done(
        member, kind=Kind.ASSIGN, keys=(A,), member=member, generation=generation, group="g"
    )


def told(kind: Kind, offset: int) -> Operation:
    return done("c", kind=kind, offsets={A: offset}, group="g")


def topic(kind: Kind) -> Operation:
    return done("nemesis", kind=kind, topic="t")


THREE = [send("1", 0), send("2", 1), send("3", 2), poll((0, "1"), (1, "2"), (2, "3"))]
CROSSED = [
    transaction("x", Sent(A, "1"), Sent(B, "4")),
    transaction("y", Sent(A, "2"), Sent(B, "3")),
]
BOTH = [poll((0, "1"), (1, "2")), poll((0, "3"), (1, "4"), key=B)]


def mutual(*, x_polls: tuple[Polled, ...], y_polls: tuple[Polled, ...]) -> list[Operation]:
    return [
        transaction("x", Sent(A, "1"), polls=x_polls),
        transaction("y", Sent(B, "2"), polls=y_polls),
        poll((0, "0"), (1, "1")),
        poll((0, "9"), (1, "2"), key=B),
        send("0", 0),
        send("9", 0, B),
    ]


WRONG: Sequence[tuple[str, list[Operation]]] = [
    ("lost write", [*THREE[:3], poll((0, "1"), (2, "3"))]),
    ("lost write", [send("0"), *THREE]),
    (
        "lost write",
        [send("1", outcome=Outcome.UNKNOWN), poll((0, "1"), by="r"), send("2", 1), poll((1, "2"))],
    ),
    ("unseen", [*THREE[:3], poll((0, "1"), (1, "2"))]),
    ("unseen", THREE[:3]),
    ("duplicate", [send("1", 0), poll((0, "1"), (1, "1"))]),
    ("duplicate", [send("1", 0), send("2", 0, B), poll((0, "1")), poll((0, "2"), (1, "1"), key=B)]),
    ("inconsistent offsets", [send("1", 0), send("2", 0), poll((0, "1"), (1, "2"))]),
    ("aborted read", [send("1", outcome=Outcome.FAIL), poll((0, "1"))]),
    ("aborted read", [poll((0, "1"))]),
    ("aborted read", [transaction("x", Sent(A, "1"), commit_ns=None), poll((0, "1"))]),
    (
        "precommitted read",
        [transaction("x", Sent(A, "1"), polls=(Polled(A, 0, "1"),)), poll((0, "1"))],
    ),
    (
        "precommitted read",
        [poll((0, "1"), by="r"), transaction("x", Sent(A, "1"), commit_ns=1 << 60), poll((0, "1"))],
    ),
    ("torn transaction", [CROSSED[0], poll((0, "1")), poll((9, "0"), key=B), send("0", 9, B)]),
    ("poll skip", [*THREE, poll((0, "1"), by="r"), poll((2, "3"), by="r")]),
    ("poll skip", [*THREE, assign("r", beginning=True), poll((1, "2"), by="r")]),
    ("nonmonotonic poll", [*THREE, poll((0, "1"), (1, "2"), by="r"), poll((1, "2"), by="r")]),
    ("nonmonotonic send", [send("1", 1), send("2", 0), poll((0, "2"), (1, "1"))]),
    ("G0", [*CROSSED, *BOTH]),
    ("G1c of reads", mutual(x_polls=(Polled(B, 1, "2"),), y_polls=(Polled(A, 1, "1"),))),
    ("G2", mutual(x_polls=(Polled(B, 0, "9"),), y_polls=(Polled(A, 0, "0"),))),
    (
        "G1c",
        [
            transaction("x", Sent(A, "1"), Sent(B, "3")),
            transaction("y", Sent(A, "2"), polls=(Polled(B, 0, "3"),)),
            poll((0, "2"), (1, "1")),
            poll((0, "3"), key=B),
        ],
    ),
    ("double owner", [owns("one", 1), owns("two", 1)]),
    ("double owner", [done("n", kind=Kind.OWNERS, owners={"one": (A,), "two": (A, B)}, **G)]),
    ("offset goes back", [told(Kind.COMMIT, 5), told(Kind.COMMITTED, 4)]),
    ("offset goes back", [told(Kind.COMMITTED, 5), told(Kind.COMMITTED, 4)]),
    ("offset goes back", [transaction("x", offsets={A: 5}, **G), told(Kind.COMMITTED, 4)]),
    ("settled twice", [done("s", kind=Kind.SETTLED, records=((A, 1),), **G) for _ in range(2)]),
    (
        "settled twice",
        [done("s", kind=kind, records=((A, 1),), **G) for kind in (Kind.SETTLED, Kind.DELIVERED)],
    ),
    (
        "resurrected",
        [
            send("1", 0),
            topic(Kind.DELETE),
            topic(Kind.CREATE),
            send("2", 0),
            poll((0, "1"), (1, "2")),
        ],
    ),
    ("resurrected", [topic(Kind.DELETE), topic(Kind.CREATE), send("2", 0), poll((0, "1"))]),
]


@pytest.mark.parametrize(("name", "history"), WRONG)
def test_an_anomaly_is_found_by_its_name(name: str, history: list[Operation]) -> None:
    found = anomalies(history)
    assert name in found
    # A cycle of one kind is also one of those that allow more; and what is wrong is wrong in one
    # way, except where one place and one value are at odds.
    related = {*CYCLES, "G1c of reads", "inconsistent offsets", "duplicate", "lost write"}
    assert found.keys() - {name} <= related


def test_every_anomaly_has_an_example() -> None:
    assert {name for name, _ in WRONG} == ANOMALIES.keys()


SOUND: Mapping[str, list[Operation]] = {
    "nothing": [],
    "records": THREE,
    "a send without an answer, which is there": [
        send("1", outcome=Outcome.UNKNOWN, by="u"),
        poll((0, "1")),
    ],
    "a send without an answer, which is not": [send("1", outcome=Outcome.UNKNOWN)],
    "a transaction whose commit has no answer, whole": [
        transaction("x", Sent(A, "1"), Sent(B, "2"), outcome=Outcome.UNKNOWN),
        poll((0, "1")),
        poll((0, "2"), key=B),
    ],
    "an aborted one": [transaction("x", Sent(A, "1", 0), outcome=Outcome.FAIL)],
    "offsets of markers and of aborted records": [
        send("1", 0),
        transaction("x", Sent(A, "2", 1), outcome=Outcome.FAIL),
        send("3", 3),
        poll((0, "1"), (3, "3")),
        poll((0, "1"), by="r"),
        poll((3, "3"), by="r"),
    ],
    "partitions that are assigned again": [
        *THREE,
        poll((0, "1"), (1, "2"), by="r"),
        assign("r"),
        poll((1, "2"), by="r"),
    ],
    "owners one after the other": [owns("one", 1), owns("two", 2), owns("two", 3)],
    "offsets that rise, and one that is set": [
        told(Kind.COMMIT, 5),
        told(Kind.COMMITTED, 5),
        told(Kind.RESET, 2),
        told(Kind.COMMITTED, 2),
        told(Kind.COMMIT, 3),
        told(Kind.COMMITTED, 3),
    ],
    "a record that was delivered before it was settled": [
        done("s", kind=kind, records=((A, 1),), **G) for kind in (Kind.DELIVERED, Kind.SETTLED)
    ],
    "a topic that was created again": [
        send("1", 0),
        topic(Kind.DELETE),
        topic(Kind.CREATE),
        send("2", 0),
        poll((0, "2")),
    ],
}


@pytest.mark.parametrize("name", SOUND)
def test_a_sound_history_has_no_anomaly(name: str) -> None:
    assert anomalies(SOUND[name]) == {}


@given(st.lists(st.sampled_from(["w", "x", "y"]), max_size=20), st.data())
def test_what_is_taken_from_a_log_is_lost_and_what_is_doubled_is_a_duplicate(
    writers: list[str], data: st.DataObject
) -> None:
    sends = [send(str(at), at, by=by) for at, by in enumerate(writers)]
    log = [(at, str(at)) for at in range(len(writers))]
    assert anomalies([*sends, poll(*log)]) == {}
    if len(log) > 1:
        gone = data.draw(st.integers(0, len(log) - 2))
        assert list(anomalies([*sends, poll(*log[:gone], *log[gone + 1 :])])) == ["lost write"]
        assert "duplicate" in anomalies([*sends, poll(*log, (len(log), str(gone)))])


@given(st.sets(st.tuples(st.integers(0, 8), st.integers(0, 8)), max_size=25))
def test_components_are_the_nodes_that_reach_each_other(edges: set[tuple[int, int]]) -> None:
    nodes = {node for edge in edges for node in edge}
    reached = {(node, node) for node in nodes} | edges
    for via, one, other in itertools.product(nodes, repeat=3):
        if (one, via) in reached and (via, other) in reached:
            reached.add((one, other))
    expected = {
        frozenset(other for other in nodes if {(one, other), (other, one)} <= reached)
        for one in nodes
    }
    assert {frozenset(each) for each in components(edges)} == expected


def test_the_lines_of_a_process_become_operations() -> None:
    steps = [
        {"id": 1, "at": 5, "is": "invoke", "kind": "work", "sends": [["t", 0, "v", None]]},
        {"id": 2, "at": 6, "is": "invoke", "kind": "work", "is_transaction": True},
        {"id": 2, "at": 7, "is": "commit", "polls": [["t", 1, 3, "u"]]},
        {"id": 1, "at": 8, "is": "ok", "sends": [["t", 0, "v", 9]]},
    ]
    lines = [*map(json.dumps, steps), '{"id": 3, "at'[:9]]
    assert list(operations("p", lines)) == [
        Operation(process="p", invoked_ns=5, completed_ns=8, sends=(Sent(A, "v", 9),)),
        Operation(
            process="p",
            invoked_ns=6,
            outcome=Outcome.UNKNOWN,
            is_transaction=True,
            commit_ns=7,
            polls=(Polled(B, 3, "u"),),
        ),
    ]
