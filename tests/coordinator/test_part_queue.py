"""Work in the background advances by one part in each turn of the loop."""

from collections.abc import Callable, Iterator

import pytest

from odradek.coordinator.runtime.part_queue import PartQueue


class Loop:
    """Keeps what is called soon. `made` has the parts that `work` has made."""

    def __init__(self) -> None:
        self.soon: list[Callable[[], None]] = []
        self.made: list[str] = []
        self.queue = PartQueue(self.soon.append)

    def work(self, name: str, parts: int, error: Exception | None = None) -> Iterator[None]:
        for number in range(parts):
            self.made.append(f"{name}{number}")
            yield
        if error is not None:
            raise error

    def turn(self) -> None:
        [call] = self.soon
        self.soon.clear()
        call()


def test_the_first_part_is_made_at_once_and_then_one_in_each_turn() -> None:
    loop = Loop()
    loop.queue.add(loop.work("a", 3))
    loop.queue.add(loop.work("b", 3))
    assert loop.made == ["a0"]
    made = len(loop.made)
    while loop.soon:
        loop.turn()
        assert len(loop.made) - made <= 1
        made = len(loop.made)
    assert loop.made == ["a0", "a1", "b0", "a2", "b1", "b2"]


def test_an_error_ends_the_work_that_raises_it() -> None:
    loop = Loop()
    loop.queue.add(loop.work("a", 1, ValueError("of a")))
    loop.queue.add(loop.work("b", 2))
    with pytest.raises(ValueError, match="of a"):
        loop.turn()
    while loop.soon:
        loop.turn()
    assert loop.made == ["a0", "b0", "b1"]
    loop.queue.add(loop.work("c", 1))
    assert loop.made[-1] == "c0"
