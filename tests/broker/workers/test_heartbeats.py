"""When a worker counts as hanging."""

from odradek.broker.workers.heartbeats import Heartbeats


def test_a_worker_is_silent_after_the_timeout() -> None:
    heartbeats = Heartbeats(interval_ms=2_000, timeout_ms=6_000, now_ms=100)
    assert [heartbeats.is_silent(now_ms) for now_ms in (2_100, 4_100, 6_100)] == [
        False,
        False,
        True,
    ]


def test_a_heartbeat_starts_the_timeout_again() -> None:
    heartbeats = Heartbeats(interval_ms=2_000, timeout_ms=4_000, now_ms=0)
    assert not heartbeats.is_silent(2_000)
    heartbeats.heard()
    assert not heartbeats.is_silent(4_000)
    assert heartbeats.is_silent(6_000)


def test_the_first_heartbeat_may_take_longer() -> None:
    heartbeats = Heartbeats(interval_ms=2_000, timeout_ms=4_000, now_ms=0, first_ms=6_000)
    assert [heartbeats.is_silent(now_ms) for now_ms in (2_000, 4_000, 6_000)] == [
        False,
        False,
        True,
    ]
    heartbeats.heard()
    assert [heartbeats.is_silent(now_ms) for now_ms in (8_000, 10_000)] == [False, True]


def test_time_in_which_nobody_checked_counts_as_one_interval() -> None:
    heartbeats = Heartbeats(interval_ms=2_000, timeout_ms=6_000, now_ms=0)
    assert not heartbeats.is_silent(60_000)
    heartbeats.heard()
    assert not heartbeats.is_silent(62_000)
