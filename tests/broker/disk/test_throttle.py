"""Work that is held back to a rate, by a clock that the test moves."""

import pytest

from odradek.broker.disk.throttle import Pace, Throttle
from odradek.broker.processes.cleaner_process import IoReporter
from odradek.broker.processes.messages import FromCleaner, Moved


class Clock:
    """Whoever sleeps moves it."""

    def __init__(self) -> None:
        self.now = 100.0
        self.slept: list[float] = []

    def sleep(self, seconds: float) -> None:
        assert len(self.slept) < 1000, "it never wakes up"
        self.slept.append(seconds)
        self.now += seconds


@pytest.fixture
def clock() -> Clock:
    return Clock()


def throttle(clock: Clock, rate: float) -> Throttle:
    return Throttle(rate, now=lambda: clock.now, sleep=clock.sleep)


def test_who_was_too_fast_sleeps_until_the_average_is_right(clock: Clock) -> None:
    held = throttle(clock, 1000)
    held.moved(500)
    assert clock.slept == []  # not looked at yet
    clock.now += 0.4
    held.moved(400)
    assert clock.now == pytest.approx(100.9)
    clock.now += 0.4
    held.moved(400)
    assert clock.now == pytest.approx(101.3)  # just in time


def test_what_was_not_used_is_not_saved_up(clock: Clock) -> None:
    held = throttle(clock, 1000)
    clock.now += 3600
    held.moved(1)
    clock.now += 0.4
    held.moved(1000)
    assert clock.slept == [pytest.approx(0.6)]


@pytest.mark.parametrize("rate", [1.7976931348623157e308, -1.0])
def test_no_limit_is_no_limit(clock: Clock, rate: float) -> None:
    held = throttle(clock, rate)
    clock.now += 0.4
    held.moved(1 << 40)
    assert clock.slept == []


@pytest.mark.parametrize("rate", [0.0, 1e-9])
def test_a_new_rate_ends_a_sleep_that_would_take_for_ever(clock: Clock, rate: float) -> None:
    held = throttle(clock, rate)

    def sleep(seconds: float) -> None:
        clock.sleep(seconds)
        if len(clock.slept) == 3:
            held.bytes_per_second = 1e9

    held._sleep = sleep
    clock.now += 0.4
    held.moved(1000)
    assert clock.slept == [1.0, 1.0, 1.0]


def test_the_broker_hears_every_second_how_much_was_moved_also_from_a_sleeper(
    clock: Clock,
) -> None:
    told: list[FromCleaner] = []
    reporter = IoReporter(told.append, now=lambda: clock.now, sleep=clock.sleep)
    reporter.moved(5)
    clock.now += 1.5
    reporter.moved(6)
    assert told == [Moved(11)]
    reporter.throttle.bytes_per_second = 10
    reporter.moved(30)
    clock.now += 0.5
    reporter.moved(0)
    assert told[1:] == [Moved(30), Moved(0)]


def test_a_pace_tells_how_long_to_wait_and_saves_nothing_up(clock: Clock) -> None:
    pace = Pace(1000, now=lambda: clock.now)
    pace.note(500)
    assert pace.wait_seconds() == pytest.approx(0.5)
    pace.bytes_per_second = 250
    assert pace.wait_seconds() == pytest.approx(2)
    clock.now += 3600
    assert pace.wait_seconds() < 0
    pace.restart()
    pace.note(250)
    assert pace.wait_seconds() == pytest.approx(1)
    pace.bytes_per_second = -1
    assert pace.wait_seconds() <= 0
    pace.bytes_per_second = 0
    assert pace.wait_seconds() == float("inf")
