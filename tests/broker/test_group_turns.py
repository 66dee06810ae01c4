"""How the requests by which groups are kept give way: who is served in which turn of the loop."""

from collections.abc import Callable
from functools import partial

from odradek.broker.network.group_turns import TURN_S, UNTIMED_REQUESTS, GroupTurns

A_TURN = 50  # so many requests are served in the time that a turn has for them


class FakeLoop:
    """Keeps what is to be called soon; `turn` calls it."""

    def __init__(self) -> None:
        self.soon: list[Callable[[], None]] = []

    def call_soon(self, callback: Callable[..., None], *arguments: object) -> None:
        self.soon.append(partial(callback, *arguments))

    def turn(self) -> None:
        soon, self.soon = self.soon, []
        for callback in soon:
            callback()


class House:
    """Connections with a request each, and the numbers of those that were served."""

    def __init__(self) -> None:
        self.loop = FakeLoop()
        self.now = 0
        self.turns = GroupTurns(self.loop, self.look)  # type: ignore[arg-type] # as much of a loop as is needed
        self.cost = 1
        self.look_cost = 0
        self.arrived = 0
        self.served: list[int] = []

    def look(self) -> float:
        """What the clock says."""
        self.now += self.look_cost
        return self.now * TURN_S / A_TURN

    def requests(self, count: int) -> None:
        """So many arrive, on a connection each."""
        for _ in range(count):
            FakeConnection(self, self.arrived).take_turn()
            self.arrived += 1

    def turn(self) -> int:
        """Let the loop go on; how many were served."""
        before = len(self.served)
        self.loop.turn()
        return len(self.served) - before


class FakeConnection:
    """Its request takes the `cost` of its house, in ticks of the clock."""

    def __init__(self, house: House, number: int) -> None:
        self.house = house
        self.number = number

    def take_turn(self) -> None:
        if self.house.turns.has_room_for(self):  # type: ignore[arg-type] # it has what is asked of it
            self.house.now += self.house.cost
            self.house.served.append(self.number)


def test_the_odd_request_is_served_and_costs_the_loop_nothing() -> None:
    house = House()
    house.requests(UNTIMED_REQUESTS)
    assert len(house.served) == UNTIMED_REQUESTS
    assert not house.loop.soon


def test_a_turn_serves_its_part_and_the_next_ones_the_rest_in_order() -> None:
    house = House()
    house.requests(1000)
    assert len(house.served) == UNTIMED_REQUESTS + A_TURN
    assert all(house.turn() in (A_TURN, A_TURN + 1) for _ in range(10))  # by a rounding
    while house.loop.soon:
        house.turn()
    assert house.served == list(range(1000))


def test_who_comes_later_waits_behind_those_who_wait() -> None:
    house = House()
    house.requests(3 * A_TURN)
    house.turn()
    served = len(house.served)
    house.requests(3)
    assert len(house.served) == served
    while house.loop.soon:
        house.turn()
    assert house.served == list(range(3 * A_TURN + 3))


def test_a_turn_begins_anew_when_the_loop_has_gone_on() -> None:
    house = House()
    for _ in range(5):
        house.requests(A_TURN)
        assert len(house.served) == house.arrived
        house.turn()
    assert not house.loop.soon, "nobody waits, and the loop is called again"


def test_a_turn_serves_one_request_even_if_that_takes_all_its_time() -> None:
    house = House()
    house.requests(UNTIMED_REQUESTS + A_TURN)
    house.cost = 10 * A_TURN
    house.requests(3)
    assert [house.turn() for _ in range(4)] == [1, 1, 1, 0]


def test_what_is_to_follow_the_arrivals_follows_what_the_next_turn_reads() -> None:
    house = House()
    house.turns.after_arrivals(lambda: house.served.append(-1))
    house.turn()
    house.requests(1)  # a turn reads from the sockets after what was called
    house.turn()
    assert house.served == [0, -1]


def test_what_is_to_follow_the_arrivals_follows_those_who_wait_and_nobody_else() -> None:
    house = House()
    house.requests(3 * A_TURN)
    house.turns.after_arrivals(lambda: house.served.append(-1))
    while -1 not in house.served:
        house.turn()
        house.requests(A_TURN)
    before = house.served[: house.served.index(-1)]
    assert set(before) >= set(range(3 * A_TURN))
    assert len(before) < house.arrived


def test_who_has_waited_is_served_even_if_the_turn_ends_meanwhile() -> None:
    house = House()
    house.requests(UNTIMED_REQUESTS + A_TURN + 3)
    house.look_cost = A_TURN  # each look at the clock takes a whole turn
    while house.loop.soon:
        house.turn()
    assert house.served == list(range(house.arrived))
