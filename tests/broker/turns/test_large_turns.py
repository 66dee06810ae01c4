"""Large requests wait for a turn of the event loop each; what has arrived is served before them."""

import asyncio

from odradek.broker.turns.large_turns import LargeTurns


class Client:
    """A connection with large requests. `served` gets its name for each."""

    def __init__(self, name: str, turns: LargeTurns, served: list[str], requests: int = 1) -> None:
        self.name = name
        self._turns = turns
        self._served = served
        self._left = requests

    def take_turn(self) -> None:
        while self._left and self._turns.has_room_for(self):
            self._served.append(self.name)
            self._left -= 1


async def turn() -> None:
    """Let the event loop read what has arrived, and begin a turn."""
    for _ in range(2):
        await asyncio.sleep(0)


async def test_each_turn_serves_one_large_request() -> None:
    served: list[str] = []
    turns = LargeTurns(asyncio.get_running_loop())
    for name in "abc":
        Client(name, turns, served).take_turn()
    assert not served
    for expected in ("a", "ab", "abc"):
        await turn()
        assert "".join(served) == expected


async def test_a_client_with_more_large_requests_waits_behind_the_others() -> None:
    served: list[str] = []
    turns = LargeTurns(asyncio.get_running_loop())
    Client("a", turns, served, requests=3).take_turn()
    Client("b", turns, served).take_turn()
    for _ in range(4):
        await turn()
    assert "".join(served) == "abaa"


async def test_a_client_that_is_gone_does_not_keep_its_turn() -> None:
    served: list[str] = []
    turns = LargeTurns(asyncio.get_running_loop())
    gone = Client("gone", turns, served, requests=1)
    gone.take_turn()
    gone._left = 0
    Client("a", turns, served).take_turn()
    for _ in range(2):
        await turn()
    assert served == ["a"]
