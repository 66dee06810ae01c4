"""Grants of memory for large frames: which connection gets one, which waits, which is woken."""

from odradek.broker.network.frame_memory import NEVER_WAITS_BYTES, FrameMemory

MIB = 1024 * 1024


class FakeLoop:
    """Keeps the callbacks of `call_soon`; `turn` calls them."""

    def __init__(self) -> None:
        self.soon: list = []

    def call_soon(self, callback) -> None:
        self.soon.append(callback)

    def turn(self) -> None:
        soon, self.soon = self.soon, []
        for callback in soon:
            callback()


class FakeConnection:
    """Asks for `wanted` bytes whenever memory is released."""

    def __init__(self, memory: FrameMemory, wanted: int) -> None:
        self.memory = memory
        self.wanted = wanted
        self.granted = False

    def ask(self) -> bool:
        self.granted = self.memory.try_grant(self, self.wanted)
        return self.granted

    on_memory_released = ask


def make(limit_mib: int) -> tuple[FakeLoop, FrameMemory]:
    loop = FakeLoop()
    return loop, FrameMemory(loop, limit_mib * MIB)


def test_a_small_frame_never_waits() -> None:
    _, memory = make(0)
    assert FakeConnection(memory, NEVER_WAITS_BYTES).ask()


def test_without_a_limit_no_frame_waits() -> None:
    assert FakeConnection(FrameMemory(FakeLoop(), None), 2**31).ask()


def test_large_frames_together_stay_under_the_limit() -> None:
    _, memory = make(100)
    connections = [FakeConnection(memory, 40 * MIB) for _ in range(5)]
    assert [connection.ask() for connection in connections] == [True, True, False, False, False]
    assert memory.granted_bytes == 80 * MIB
    assert memory.has_waiting


def test_a_frame_that_was_granted_asks_for_nothing_more() -> None:
    _, memory = make(50)
    connection = FakeConnection(memory, 50 * MIB)
    assert [connection.ask(), connection.ask()] == [True, True]
    assert memory.granted_bytes == 50 * MIB


def test_waiting_connections_are_woken_in_order_when_memory_is_released() -> None:
    loop, memory = make(100)
    first, second, third, fourth = (FakeConnection(memory, 50 * MIB) for _ in range(4))
    for connection in (first, second, third, fourth):
        connection.ask()
    memory.release(first)
    loop.turn()
    assert (third.granted, fourth.granted) == (True, False)
    memory.release(second)
    loop.turn()
    assert fourth.granted
    assert not memory.has_waiting


def test_a_connection_that_still_does_not_fit_keeps_its_place_in_the_queue() -> None:
    loop, memory = make(100)
    holder, small_holder = FakeConnection(memory, 60 * MIB), FakeConnection(memory, 10 * MIB)
    big, late = FakeConnection(memory, 90 * MIB), FakeConnection(memory, 80 * MIB)
    for connection in (holder, small_holder, big, late):
        connection.ask()
    memory.release(small_holder)
    loop.turn()
    assert not big.granted
    memory.release(holder)
    loop.turn()
    assert (big.granted, late.granted) == (True, False)


def test_a_closed_connection_leaves_the_queue_and_loses_its_grant() -> None:
    loop, memory = make(20)
    holder, waiter = FakeConnection(memory, 20 * MIB), FakeConnection(memory, 20 * MIB)
    holder.ask()
    waiter.ask()
    memory.forget(waiter)
    assert not memory.has_waiting
    waiter.ask()
    memory.forget(holder)
    loop.turn()
    assert waiter.granted
