"""The deadline queue: what falls when, and what a heartbeat costs."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.coordinator.runtime.timers import (
    RETRY_FAILED_MS,
    Deadline,
    DeadlineQueue,
    KeyedDeadlines,
    Now,
)


class Fallen:
    """A queue, and the subjects of the deadlines that have fallen since it was last asked."""

    def __init__(self) -> None:
        self.queue = DeadlineQueue()
        self.subjects: list[str] = []

    def deadline(self, subject: str) -> Deadline[str]:
        return Deadline(lambda subject, _now: self.subjects.append(subject), subject)

    def by(self, now_ms: int) -> list[str]:
        self.queue.expire_due(Now(wall_ms=0, timer_ms=now_ms))
        fallen, self.subjects = self.subjects, []
        return fallen


def test_deadlines_fall_in_the_order_of_time() -> None:
    fallen = Fallen()
    for name, at_ms in (("c", 30), ("a", 10), ("b", 20)):
        fallen.queue.schedule(fallen.deadline(name), at_ms)
    assert fallen.by(9) == []
    assert fallen.by(20) == ["a", "b"]
    assert fallen.by(20) == []
    assert fallen.by(99) == ["c"]
    assert fallen.queue.next_deadline_ms is None


def test_a_deadline_that_is_moved_later_falls_once_and_late() -> None:
    fallen = Fallen()
    deadline = fallen.deadline("session")
    fallen.queue.schedule(deadline, 10)
    fallen.queue.schedule(deadline, 25)
    assert fallen.by(10) == []
    assert fallen.queue.next_deadline_ms == 25
    assert fallen.by(24) == []
    assert fallen.by(25) == ["session"]
    assert fallen.by(1000) == []


def test_a_deadline_that_is_moved_earlier_falls_once_and_early() -> None:
    fallen = Fallen()
    deadline = fallen.deadline("session")
    fallen.queue.schedule(deadline, 300_000)
    fallen.queue.schedule(deadline, 10)
    assert fallen.queue.next_deadline_ms == 10
    assert fallen.by(10) == ["session"]
    assert fallen.by(300_000) == []


def test_entries_of_moved_and_cancelled_deadlines_take_time_too() -> None:
    fallen = Fallen()
    deadlines = [fallen.deadline(str(number)) for number in range(10)]
    for deadline in deadlines:
        fallen.queue.schedule(deadline, 10)
    for deadline in deadlines[:5]:
        deadline.cancel()
    for deadline in deadlines[5:]:
        fallen.queue.schedule(deadline, 30)
    left = iter((True, True, False))
    fallen.queue.expire_due(Now(wall_ms=0, timer_ms=20), lambda: next(left))
    assert list(left) == []
    assert len(fallen.queue) == 10 - 3
    assert fallen.by(20) == []
    assert fallen.by(30) == ["5", "6", "7", "8", "9"]


def test_a_cancelled_deadline_does_not_fall_and_wakes_nobody() -> None:
    fallen = Fallen()
    deadline = fallen.deadline("session")
    fallen.queue.schedule(deadline, 10)
    deadline.cancel()
    assert fallen.queue.next_deadline_ms is None
    assert fallen.by(10) == []
    fallen.queue.schedule(deadline, 20)
    assert fallen.by(20) == ["session"]


def test_what_is_scheduled_for_now_while_deadlines_fall_falls_a_millisecond_later() -> None:
    fallen = Fallen()
    again = fallen.deadline("again")
    first = Deadline(lambda _subject, _now: fallen.queue.schedule(again, 10), None)
    fallen.queue.schedule(first, 10)
    assert fallen.by(10) == []
    assert fallen.queue.next_deadline_ms == 11
    assert fallen.by(10) == []
    assert fallen.by(11) == ["again"]


def test_a_call_that_fails_is_logged_and_repeated_and_the_other_deadlines_fall(
    caplog: pytest.LogCaptureFixture,
) -> None:
    fallen = Fallen()
    times: list[int] = []

    def fail_once(_subject: str, now: Now) -> None:
        times.append(now.timer_ms)
        if len(times) == 1:
            raise LookupError("missing")

    fallen.queue.schedule(Deadline(fail_once, "unlucky"), 10)
    fallen.queue.schedule(fallen.deadline("next"), 10)
    assert fallen.by(10) == ["next"]
    (line,) = caplog.records
    assert "'unlucky'" in line.getMessage()
    assert line.exc_info is not None
    assert fallen.queue.next_deadline_ms == 10 + RETRY_FAILED_MS
    fallen.by(10 + RETRY_FAILED_MS)
    fallen.by(10 + 2 * RETRY_FAILED_MS)
    assert times == [10, 10 + RETRY_FAILED_MS]


@pytest.mark.parametrize(("at_ms", "calls"), [(None, [10]), (12, [10, 12])])
def test_a_call_that_fails_is_not_repeated_if_it_has_cancelled_or_scheduled_its_deadline(
    at_ms: int | None, calls: list[int]
) -> None:
    queue = DeadlineQueue()
    times: list[int] = []

    def expire(key: str, now: Now) -> None:
        times.append(now.timer_ms)
        keyed.cancel(key)
        if at_ms is not None and now.timer_ms < at_ms:
            keyed.schedule(key, at_ms)
        raise LookupError(key)

    keyed = KeyedDeadlines(queue, expire)
    keyed.schedule("key", 10)
    for now_ms in (10, 12, 20 + RETRY_FAILED_MS):
        queue.expire_due(Now(wall_ms=0, timer_ms=now_ms))
    assert times == calls
    assert len(keyed) == 0


def test_a_keyed_deadline_whose_call_fails_is_repeated() -> None:
    queue = DeadlineQueue()
    results = iter([LookupError("missing"), None])

    def expire(_key: str, _now: Now) -> None:
        result = next(results)
        if result is not None:
            raise result

    keyed = KeyedDeadlines(queue, expire)
    keyed.schedule("key", 10)
    queue.expire_due(Now(wall_ms=0, timer_ms=10))
    assert "key" in keyed
    queue.expire_due(Now(wall_ms=0, timer_ms=10 + RETRY_FAILED_MS))
    assert "key" not in keyed
    assert next(results, "called twice") == "called twice"


def test_a_keyed_deadline_falls_once_or_again_when_it_is_told_to() -> None:
    queue = DeadlineQueue()
    fallen: list[tuple[str, int]] = []

    def expire(key: str, now: Now) -> int | None:
        fallen.append((key, now.timer_ms))
        return 15 if key == "again" and now.timer_ms < 15 else None

    keyed = KeyedDeadlines(queue, expire)
    for key in ("once", "again", "cancelled"):
        keyed.schedule(key, 10)
        keyed.schedule_if_absent(key, 5)
    keyed.cancel("cancelled")
    keyed.cancel("unknown")
    for now_ms in (5, 10, 15, 20):
        queue.expire_due(Now(wall_ms=0, timer_ms=now_ms))
    assert fallen == [("once", 10), ("again", 10), ("again", 15)]
    assert len(keyed) == 0


def test_a_keyed_deadline_that_is_due_no_later_is_only_moved_ahead() -> None:
    queue = DeadlineQueue()
    fallen: list[int] = []
    keyed: KeyedDeadlines[str] = KeyedDeadlines(queue, lambda _, now: fallen.append(now.timer_ms))
    for at_ms in (10, 5, 20):
        keyed.schedule_no_later("one", at_ms)
    for now_ms in (4, 5, 10, 20):
        queue.expire_due(Now(wall_ms=0, timer_ms=now_ms))
    assert fallen == [5]


def test_a_heartbeat_does_not_touch_the_heap() -> None:
    fallen = Fallen()
    sessions = [fallen.deadline(str(number)) for number in range(100)]
    for beat_ms in range(0, 45_000, 3_000):
        for session in sessions:
            fallen.queue.schedule(session, beat_ms + 45_000)
        assert fallen.by(beat_ms) == []
    assert len(fallen.queue) == len(sessions)


@given(
    st.lists(
        st.tuples(st.integers(0, 4), st.one_of(st.none(), st.integers(0, 30)), st.integers(0, 5))
    )
)
def test_the_queue_does_what_a_plain_table_of_times_would_do(
    steps: list[tuple[int, int | None, int]],
) -> None:
    fallen = Fallen()
    deadlines = [fallen.deadline(str(number)) for number in range(5)]
    table: dict[str, int] = {}
    now_ms = 0
    for number, in_ms, pause_ms in steps:
        if in_ms is None:
            deadlines[number].cancel()
            table.pop(str(number), None)
        else:
            fallen.queue.schedule(deadlines[number], now_ms + in_ms)
            table[str(number)] = now_ms + in_ms
        now_ms += pause_ms
        assert sorted(fallen.by(now_ms)) == sorted(
            n for n, at_ms in table.items() if at_ms <= now_ms
        )
        table = {n: at_ms for n, at_ms in table.items() if at_ms > now_ms}
        wake_ms = fallen.queue.next_deadline_ms
        assert (wake_ms is None) == (not table)
        assert wake_ms is None or wake_ms <= min(table.values())
