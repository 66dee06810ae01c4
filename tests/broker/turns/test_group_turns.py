"""Group requests wait for a turn of the event loop: which one is served in which turn."""

from collections.abc import Callable
from functools import partial

from odradek.broker.turns.group_turns import TURN_S, UNTIMED_REQUESTS, GroupTurns

A_TURN = 50  # the number of requests that the time of a turn is enough for


class FakeLoop:
    """Keeps the callbacks of `call_soon`; `turn` calls them."""

    def __init__(self) -> None:
        self.soon: list[Callable[[], None]] = []

    def call_soon(self, callback: Callable[..., None], *arguments: object) -> None:
        self.soon.append(partial(callback, *arguments))

    def turn(self) -> None:
        soon, self.soon = self.soon, []
        for callback in soon:
            callback()


class Rig:
    """Connections with a request each, and the numbers of those that were served."""

    def __init__(self) -> None:
        self.loop = FakeLoop()
        self.now = 0
        self.turns = GroupTurns(self.loop, self.read_clock)  # type: ignore[arg-type] # as much of a loop as is needed
        self.cost = 1
        self.clock_cost = 0
        self.arrived = 0
        self.served: list[int] = []

    def read_clock(self) -> float:
        """The time; each call costs `clock_cost` ticks."""
        self.now += self.clock_cost
        return self.now * TURN_S / A_TURN

    def requests(self, count: int) -> None:
        """`count` requests arrive, each on its own connection."""
        for _ in range(count):
            FakeConnection(self, self.arrived).take_turn()
            self.arrived += 1

    def turn(self) -> int:
        """Run one turn of the loop. Returns the number of requests served."""
        before = len(self.served)
        self.loop.turn()
        return len(self.served) - before


class FakeConnection:
    """A connection whose request takes `Rig.cost` ticks of the clock."""

    def __init__(self, rig: Rig, number: int) -> None:
        self.rig = rig
        self.number = number

    def take_turn(self) -> None:
        if self.rig.turns.has_room_for(self):  # type: ignore[arg-type] # it has what is asked of it
            self.rig.now += self.rig.cost
            self.rig.served.append(self.number)


def test_a_few_requests_are_served_without_a_call_of_the_loop() -> None:
    rig = Rig()
    rig.requests(UNTIMED_REQUESTS)
    assert len(rig.served) == UNTIMED_REQUESTS
    assert not rig.loop.soon


def test_the_requests_that_a_turn_does_not_serve_are_served_in_order_in_the_next_turns() -> None:
    rig = Rig()
    rig.requests(1000)
    assert len(rig.served) == UNTIMED_REQUESTS + A_TURN
    assert all(rig.turn() in (A_TURN, A_TURN + 1) for _ in range(10))  # by a rounding
    while rig.loop.soon:
        rig.turn()
    assert rig.served == list(range(1000))


def test_a_later_request_waits_after_those_that_wait_already() -> None:
    rig = Rig()
    rig.requests(3 * A_TURN)
    rig.turn()
    served = len(rig.served)
    rig.requests(3)
    assert len(rig.served) == served
    while rig.loop.soon:
        rig.turn()
    assert rig.served == list(range(3 * A_TURN + 3))


def test_each_turn_of_the_loop_has_its_own_time() -> None:
    rig = Rig()
    for _ in range(5):
        rig.requests(A_TURN)
        assert len(rig.served) == rig.arrived
        rig.turn()
    assert not rig.loop.soon, "nobody waits, and the loop is called again"


def test_a_turn_serves_one_request_even_if_that_takes_all_its_time() -> None:
    rig = Rig()
    rig.requests(UNTIMED_REQUESTS + A_TURN)
    rig.cost = 10 * A_TURN
    rig.requests(3)
    assert [rig.turn() for _ in range(4)] == [1, 1, 1, 0]


def test_after_arrivals_runs_after_the_requests_that_the_next_turn_reads() -> None:
    rig = Rig()
    rig.turns.after_arrivals(lambda: rig.served.append(-1))
    rig.turn()
    rig.requests(1)  # a turn reads from the sockets after what was called
    rig.turn()
    assert rig.served == [0, -1]


def test_after_arrivals_runs_after_the_requests_that_wait_and_no_later_ones() -> None:
    rig = Rig()
    rig.requests(3 * A_TURN)
    rig.turns.after_arrivals(lambda: rig.served.append(-1))
    while -1 not in rig.served:
        rig.turn()
        rig.requests(A_TURN)
    before = rig.served[: rig.served.index(-1)]
    assert set(before) >= set(range(3 * A_TURN))
    assert len(before) < rig.arrived


def test_a_request_that_has_waited_is_served_even_if_the_turn_ends_meanwhile() -> None:
    rig = Rig()
    rig.requests(UNTIMED_REQUESTS + A_TURN + 3)
    rig.clock_cost = A_TURN  # each look at the clock takes a whole turn
    while rig.loop.soon:
        rig.turn()
    assert rig.served == list(range(rig.arrived))
