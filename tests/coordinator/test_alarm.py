"""The alarm of a coordinator's deadlines."""

from odradek.coordinator.runtime.alarm import Alarm
from odradek.coordinator.runtime.timers import Deadline, Now
from tests.support.groups import ManualLoop


def test_a_turn_of_the_loop_calls_deadlines_for_a_millisecond() -> None:
    loop = ManualLoop()
    alarm = Alarm(loop, loop.clock, loop.after_arrivals)  # type: ignore[arg-type] # as much of a loop as is needed
    called: list[int] = []

    def expire(number: int, _now: Now) -> None:
        called.append(number)
        if number % 3 == 2:
            loop.now_ms += 1  # three of them take a millisecond

    for number in range(30):
        alarm.deadlines.schedule(Deadline(expire, number), loop.now_ms + 10)
    alarm.set(loop.clock())
    loop.now_ms += 10
    for turn in range(1, 11):
        loop.turn()
        assert called == list(range(3 * turn))


def test_a_deadline_that_is_moved_before_its_turn_is_not_called() -> None:
    loop = ManualLoop()
    alarm = Alarm(loop, loop.clock, loop.after_arrivals)  # type: ignore[arg-type] # as much of a loop as is needed
    called: list[str] = []

    def expire(name: str, _now: Now) -> None:
        called.append(name)
        loop.now_ms += 1

    first, second = Deadline(expire, "first"), Deadline(expire, "second")
    for deadline in (first, second):
        alarm.deadlines.schedule(deadline, loop.now_ms + 10)
    alarm.set(loop.clock())
    loop.now_ms += 10
    loop.turn()
    alarm.deadlines.schedule(second, loop.now_ms + 1000)
    loop.advance(900)
    assert called == ["first"]
