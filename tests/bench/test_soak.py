"""The soak: what it complains of, and an hour of it in `make long`."""

from pathlib import Path

import pytest

from tests.bench.soak import SETTINGS, Minute, complaints, print_minute, soak
from tests.support.broker_process import running_broker
from tests.support.lengths import LONG, by_length, only_long

EVEN = Minute(records_per_s=5000, memory_mb=30, open_files=200, p99_ms=4)


def test_an_even_hour_gives_no_complaint() -> None:
    assert complaints([EVEN] * 60) == []


def test_growth_in_the_first_third_is_no_complaint() -> None:
    begin = [Minute(records_per_s=5000, memory_mb=n, open_files=n, p99_ms=4) for n in range(20)]
    assert complaints(begin + [EVEN] * 40) == []


def test_each_figure_that_grows_is_named() -> None:
    late = Minute(records_per_s=4000, memory_mb=33, open_files=300, p99_ms=30)
    named = [text.split()[0] for text in complaints([EVEN] * 40 + [late] * 20)]
    assert named == ["memory_mb", "open_files", "p99_ms", "records_per_s"]


@pytest.mark.slow
@only_long("an hour of it is promised")
def test_nothing_grows_under_half_of_the_load(tmp_path: Path) -> None:
    with running_broker(tmp_path, SETTINGS) as broker:
        minutes = soak(broker, by_length(3, 60), print_minute, minute_s=by_length(2.0, 60.0))
        assert broker.crashes_in_log() == []
    assert all(minute.records_per_s for minute in minutes)
    if LONG:  # seconds are too short for a verdict
        assert complaints(minutes) == []
