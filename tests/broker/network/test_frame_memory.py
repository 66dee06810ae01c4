"""Grants of memory for large frames: who gets one, who waits, who is woken, who is too slow."""

from odradek.broker.network.frame_memory import CHECKS, NEVER_WAITS_BYTES, PARTS, FrameMemory

MIB = 1024 * 1024


class FakeLoop:
    """Keeps the callbacks of `call_soon`; `run` calls them, and those that they add."""

    def __init__(self) -> None:
        self.soon: list = []

    def call_soon(self, callback) -> None:
        self.soon.append(callback)

    def run(self) -> None:
        while self.soon:
            self.soon.pop(0)()


class FakeConnection:
    """Asks for `wanted` bytes whenever memory is released. `received` bytes have arrived."""

    def __init__(self, memory: FrameMemory, wanted: int) -> None:
        self.memory = memory
        self.wanted = wanted
        self.granted = False
        self.received = 0
        self.why_closed = ""

    def ask(self) -> bool:
        self.granted = self.memory.try_grant(self, self.wanted)
        return self.granted

    on_memory_released = ask

    @property
    def partial_frame(self) -> tuple[int, int] | None:
        return None if self.received == self.wanted else (self.received, self.wanted)

    def close(self, reason: str | None) -> None:
        self.why_closed = reason or ""
        self.memory.forget(self)


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


def test_waiting_connections_are_woken_in_order_when_memory_is_released() -> None:
    loop, memory = make(100)
    first, second, third, fourth = (FakeConnection(memory, 50 * MIB) for _ in range(4))
    for connection in (first, second, third, fourth):
        connection.ask()
    memory.release(first)
    loop.run()
    assert (third.granted, fourth.granted) == (True, False)
    memory.release(second)
    loop.run()
    assert fourth.granted
    assert memory.granted_bytes == 100 * MIB


def test_a_connection_that_still_does_not_fit_keeps_its_place_in_the_queue() -> None:
    loop, memory = make(100)
    holder, small_holder = FakeConnection(memory, 60 * MIB), FakeConnection(memory, 10 * MIB)
    big, late = FakeConnection(memory, 90 * MIB), FakeConnection(memory, 80 * MIB)
    for connection in (holder, small_holder, big, late):
        connection.ask()
    memory.release(small_holder)
    loop.run()
    assert not big.granted
    memory.release(holder)
    loop.run()
    assert (big.granted, late.granted) == (True, False)


def test_a_closed_connection_leaves_the_queue_and_loses_its_grant() -> None:
    loop, memory = make(20)
    holder, waiter = FakeConnection(memory, 20 * MIB), FakeConnection(memory, 20 * MIB)
    holder.ask()
    waiter.ask()
    memory.forget(waiter)
    memory.forget(holder)
    loop.run()
    assert not waiter.granted
    assert memory.granted_bytes == 0


def test_one_release_wakes_all_that_fit() -> None:
    loop, memory = make(100)
    holder = FakeConnection(memory, 90 * MIB)
    waiters = [FakeConnection(memory, 30 * MIB) for _ in range(4)]
    for connection in (holder, *waiters):
        connection.ask()
    memory.release(holder)
    loop.run()
    assert [waiter.granted for waiter in waiters] == [True, True, True, False]


def test_a_frame_that_waits_is_overtaken_by_no_more_bytes_than_the_limit() -> None:
    loop, memory = make(100)
    holder, big = FakeConnection(memory, 50 * MIB), FakeConnection(memory, 90 * MIB)
    assert [holder.ask(), big.ask()] == [True, False]
    for overtaken_mib in range(0, 100, 25):
        small = FakeConnection(memory, 25 * MIB)
        assert small.ask(), f"after {overtaken_mib} MiB"
        memory.release(small)
    late = FakeConnection(memory, 25 * MIB)
    assert not late.ask()
    memory.release(holder)
    loop.run()
    assert (big.granted, late.granted) == (True, False)


def test_the_bytes_that_overtook_a_closed_connection_do_not_count_for_the_next_one() -> None:
    _, memory = make(100)
    holder, closed, big = (FakeConnection(memory, size * MIB) for size in (50, 90, 90))
    assert [holder.ask(), closed.ask(), big.ask()] == [True, False, False]
    for first in (closed, big):
        for _ in range(4):
            small = FakeConnection(memory, 25 * MIB)
            assert small.ask()
            memory.release(small)
        first.close(None)


def check(memory: FrameMemory, *rates: tuple[FakeConnection, int]) -> None:
    """Let connections receive so many bytes each between two checks, as often as one judges."""
    for _ in range(CHECKS):
        for connection, rate in rates:
            connection.received = min(connection.wanted, connection.received + rate)
        memory.check_progress()


def test_slow_frames_are_closed_when_others_wait_for_their_memory() -> None:
    loop, memory = make(100)
    slow = [FakeConnection(memory, 33 * MIB) for _ in range(3)]
    fast, waiter = FakeConnection(memory, MIB), FakeConnection(memory, 3 * MIB)
    for connection in (*slow, fast):
        assert connection.ask()
        connection.received = connection.wanted // 2
    trickle = [(connection, 1) for connection in slow]
    check(memory, *trickle)
    assert not any(connection.why_closed for connection in slow), "nobody waits"
    waiter.ask()
    check(memory, *trickle)
    loop.run()
    assert waiter.granted
    assert all("arrives too slowly" in connection.why_closed for connection in slow)
    assert not fast.why_closed


def test_a_frame_that_arrives_in_time_is_not_closed_although_others_wait() -> None:
    _, memory = make(100)
    steady, waiter = FakeConnection(memory, 60 * MIB), FakeConnection(memory, 60 * MIB)
    assert [steady.ask(), waiter.ask()] == [True, False]
    for _ in range(PARTS):
        assert steady.received < steady.wanted
        check(memory, (steady, steady.wanted // (PARTS * CHECKS) + 1))
        assert not steady.why_closed
    assert steady.received == steady.wanted


def test_progress_from_the_time_before_others_waited_does_not_count() -> None:
    _, memory = make(100)
    paused, waiter = FakeConnection(memory, 60 * MIB), FakeConnection(memory, 60 * MIB)
    paused.ask()
    check(memory, (paused, 10 * MIB))
    waiter.ask()
    check(memory, (paused, 0))
    assert paused.why_closed


def test_a_request_that_takes_long_to_answer_loses_its_grant_when_others_wait() -> None:
    loop, memory = make(100)
    served, waiter = FakeConnection(memory, 60 * MIB), FakeConnection(memory, 60 * MIB)
    served.ask()
    check(memory, (served, served.wanted))
    assert not waiter.ask()
    check(memory)
    loop.run()
    assert waiter.granted
    assert not served.why_closed
    memory.release(served)
    assert memory.granted_bytes == waiter.wanted
