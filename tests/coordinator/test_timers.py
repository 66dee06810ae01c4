"""The deadline queue: what falls when, and what a heartbeat costs."""

from itertools import islice

from hypothesis import given
from hypothesis import strategies as st

from odradek.coordinator.timers import Deadline, DeadlineQueue


def test_deadlines_fall_in_the_order_of_time() -> None:
    queue: DeadlineQueue[str] = DeadlineQueue()
    for name, at_ms in (("c", 30), ("a", 10), ("b", 20)):
        queue.schedule(Deadline(name), at_ms)
    assert list(queue.due(9)) == []
    assert list(queue.due(20)) == ["a", "b"]
    assert list(queue.due(20)) == []
    assert list(queue.due(99)) == ["c"]
    assert queue.next_deadline_ms is None


def test_a_deadline_that_is_moved_later_falls_once_and_late() -> None:
    queue: DeadlineQueue[str] = DeadlineQueue()
    deadline = Deadline("session")
    queue.schedule(deadline, 10)
    queue.schedule(deadline, 25)
    assert list(queue.due(10)) == []
    assert queue.next_deadline_ms == 25
    assert list(queue.due(24)) == []
    assert list(queue.due(25)) == ["session"]
    assert list(queue.due(1000)) == []


def test_a_deadline_that_is_moved_earlier_falls_once_and_early() -> None:
    queue: DeadlineQueue[str] = DeadlineQueue()
    deadline = Deadline("session")
    queue.schedule(deadline, 300_000)
    queue.schedule(deadline, 10)
    assert queue.next_deadline_ms == 10
    assert list(queue.due(10)) == ["session"]
    assert list(queue.due(300_000)) == []


def test_a_cancelled_deadline_does_not_fall_and_wakes_nobody() -> None:
    queue: DeadlineQueue[str] = DeadlineQueue()
    deadline = Deadline("session")
    queue.schedule(deadline, 10)
    queue.cancel(deadline)
    assert queue.next_deadline_ms is None
    assert list(queue.due(10)) == []
    queue.schedule(deadline, 20)
    assert list(queue.due(20)) == ["session"]


def test_what_is_scheduled_for_now_while_deadlines_fall_falls_a_millisecond_later() -> None:
    queue: DeadlineQueue[str] = DeadlineQueue()
    queue.schedule(Deadline("first"), 10)
    again = Deadline("again")
    fallen = []
    for name in islice(queue.due(10), 5):
        fallen.append(name)
        queue.schedule(again, 10)
    assert fallen == ["first"]
    assert queue.next_deadline_ms == 11
    assert list(queue.due(10)) == []
    assert list(queue.due(11)) == ["again"]


def test_a_heartbeat_does_not_touch_the_heap() -> None:
    queue: DeadlineQueue[int] = DeadlineQueue()
    sessions = [Deadline(number) for number in range(100)]
    for beat_ms in range(0, 45_000, 3_000):
        for session in sessions:
            queue.schedule(session, beat_ms + 45_000)
        assert list(queue.due(beat_ms)) == []
    assert len(queue) == len(sessions)


@given(
    st.lists(
        st.tuples(st.integers(0, 4), st.one_of(st.none(), st.integers(0, 30)), st.integers(0, 5))
    )
)
def test_the_queue_does_what_a_plain_table_of_times_would_do(
    steps: list[tuple[int, int | None, int]],
) -> None:
    queue: DeadlineQueue[int] = DeadlineQueue()
    deadlines = [Deadline(number) for number in range(5)]
    table: dict[int, int] = {}
    now_ms = 0
    for number, in_ms, pause_ms in steps:
        if in_ms is None:
            queue.cancel(deadlines[number])
            table.pop(number, None)
        else:
            queue.schedule(deadlines[number], now_ms + in_ms)
            table[number] = now_ms + in_ms
        now_ms += pause_ms
        fallen = sorted(queue.due(now_ms))
        assert fallen == sorted(n for n, at_ms in table.items() if at_ms <= now_ms)
        table = {n: at_ms for n, at_ms in table.items() if at_ms > now_ms}
        wake_ms = queue.next_deadline_ms
        assert (wake_ms is None) == (not table)
        assert wake_ms is None or wake_ms <= min(table.values())
