"""Rates over samples, and tokens that come back. test_kafka_throttles_alike.py asks Kafka, too."""

import pytest

from odradek.broker.quotas.rates import LONGEST_MS, SampledRate, TokenBucket, Window

WINDOW = Window(3, 1000)


def test_a_rate_is_that_of_a_window_from_the_start_on() -> None:
    rate = SampledRate(WINDOW, 0)
    assert rate.measure(0) == 0
    rate.record(6, 0)
    assert rate.measure(0) == 6 / 2
    assert rate.measure(500) == 6 / 2.5
    assert rate.measure(2000) == 6 / 2


def test_all_samples_of_the_window_count() -> None:
    rate = SampledRate(WINDOW, 0)
    for at_ms, amount, total in ((0, 1, 1), (1000, 10, 11), (2000, 100, 111)):
        rate.record(amount, at_ms)
        assert rate.measure(at_ms) == total / 2
    rate.record(1000, 3000)
    assert rate.measure(3000) == 1110 / 2, "the first is as old as the window"
    rate.record(10_000, 4000)
    assert rate.measure(4000) == 11_100 / 2


def test_amounts_of_one_sample_are_added_and_may_be_taken_back() -> None:
    rate = SampledRate(WINDOW, 0)
    rate.record(6, 0)
    rate.record(4, 999)
    rate.record(-7, 999)
    assert rate.measure(1000) == 3 / 2


def test_a_sample_expires_when_its_last_amount_is_as_old_as_the_window() -> None:
    rate = SampledRate(WINDOW, 0)
    rate.record(6, 500)
    assert rate.measure(3499) == 6 / 3.499
    assert rate.measure(3500) == 0


def test_after_silence_a_rate_is_measured_as_at_the_start() -> None:
    rate = SampledRate(WINDOW, 0)
    rate.record(6, 0)
    rate.record(8, 60_000)
    assert rate.measure(60_000) == 8 / 2


@pytest.mark.parametrize(
    ("limit", "throttle_ms"), [(3, 0), (2.5, 400), (1.5, 2000), (0.01, 598_000), (0, LONGEST_MS)]
)
def test_a_rate_above_the_limit_waits_until_it_is_down(limit: float, throttle_ms: int) -> None:
    rate = SampledRate(WINDOW, 0)
    assert rate.throttle_ms(limit, 0) == 0
    rate.record(6, 0)
    assert rate.throttle_ms(limit, 0) == throttle_ms


def test_tokens_come_back_at_the_limit_and_are_never_more_than_a_burst() -> None:
    bucket = TokenBucket(WINDOW, 2, 0)
    full = 2 * WINDOW.burst_s
    assert bucket.tokens(2, 60_000) == full
    bucket.take(full, 2, 60_000)
    assert bucket.throttle_ms(2, 60_000) == 0
    bucket.take(1, 2, 60_000)
    assert bucket.throttle_ms(2, 60_000) == 500
    assert bucket.tokens(2, 60_500) == 0
    assert bucket.tokens(2, 61_500) == 2
