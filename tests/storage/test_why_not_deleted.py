"""The explanation of each segment agrees with what retention then deletes."""

import os
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from odradek.storage.cleaning.plan import assess
from odradek.storage.log import PartitionLog
from odradek.storage.retention import delete_old_segments
from odradek.storage.retention_explanation import (
    Rule,
    WhyNotDeleted,
    why_not_deleted,
)
from odradek.storage.time_text import duration, rounded, utc
from tests.support.crashing_files import QuickFiles
from tests.support.lengths import by_length
from tests.support.log_box import NOW_MS, LogBox, batch_of, put

SIZE = len(batch_of(b"v"))
DAY_MS = 86_400_000


def aged(box: LogBox, *ages_ms: int) -> PartitionLog:
    """One record per segment, the last one in the active segment."""
    log = box.open()
    for age_ms in ages_ms:
        put(log, b"v", timestamps=[NOW_MS - age_ms])
    return log


def one_each(root: Path, **config: object) -> LogBox:
    return LogBox(root, files=QuickFiles(), segment_bytes=SIZE, **config)


def ask(log: PartitionLog, index: int = 0, now_ms: int = NOW_MS) -> WhyNotDeleted:
    return why_not_deleted(log, log.segments[index], now_ms)


def test_age_tells_the_first_time_at_which_a_segment_goes(tmp_path: Path) -> None:
    log = aged(one_each(tmp_path, retention_ms=DAY_MS), 1000, 0)
    found = ask(log)
    assert found.eligible_at_ms == NOW_MS - 1000 + DAY_MS + 1
    assert (found.deleted_by, found.waits_for, found.is_active) == (None, None, False)
    assert "its newest record is of 2023-11-14 22:13:19.000 UTC" in found.text
    assert "retention.ms is 86400000 (1 day)" in found.text
    assert "until 2023-11-15 22:13:19.001 UTC" in found.text
    assert delete_old_segments(log, found.eligible_at_ms - 1) == 0
    assert ask(log, now_ms=found.eligible_at_ms).deleted_by is Rule.AGE
    assert delete_old_segments(log, found.eligible_at_ms) == 1


def test_an_open_transaction_keeps_the_cleaner_from_later_segments_but_not_retention(
    tmp_path: Path,
) -> None:
    box = one_each(tmp_path, retention_ms=DAY_MS, cleanup_policy=("compact", "delete"))
    log = aged(box, 0)
    log.append(
        batch_of(b"v", producer=(9, 0, 0), is_transactional=True),
        now_ms=NOW_MS,
        transaction_verified=True,
    )
    put(log, b"v")
    put(log, b"v")
    assert [ask(log, index).is_uncleanable for index in range(4)] == [False, True, True, False]
    assert "it is not cleaned: a transaction is open from offset 1 on" in ask(log, 2).text
    assert assess(log, None, NOW_MS).first_uncleanable_offset == 1
    assert delete_old_segments(log, NOW_MS + DAY_MS + 1) == 4
    assert log.last_stable_offset == 4


def test_a_segment_waits_for_older_ones_that_are_younger(tmp_path: Path) -> None:
    log = aged(one_each(tmp_path, retention_ms=DAY_MS), 5, 9 * DAY_MS, 0)
    found = ask(log, 1)
    assert (found.deleted_by, found.waits_for) == (None, 0)
    assert "segments are deleted from the oldest on, and segment 0 stays" in found.text
    assert found.eligible_at_ms == NOW_MS - 5 + DAY_MS + 1
    assert delete_old_segments(log, found.eligible_at_ms) == 2


def test_size_tells_how_many_bytes_are_missing(tmp_path: Path) -> None:
    log = aged(one_each(tmp_path, retention_bytes=3 * SIZE, retention_ms=-1), 0, 0, 0)
    size = ask(log).rules[1]
    assert (size.rule, size.is_met, size.missing_bytes) == (Rule.SIZE, False, SIZE)
    assert ask(log).eligible_at_ms is None
    put(log, b"v")
    assert ask(log).deleted_by is Rule.SIZE
    assert delete_old_segments(log, NOW_MS) == 1


def test_the_log_start_deletes_what_is_before_it_under_any_policy(tmp_path: Path) -> None:
    log = aged(one_each(tmp_path, cleanup_policy=("compact",)), 0, 0, 0)
    found = ask(log, 1)
    assert found.rules[0].missing_offsets == 2
    assert "cleanup.policy is compact: neither size nor age count" in found.text
    log.increment_log_start_offset(2)
    assert ask(log, 1).deleted_by is Rule.LOG_START
    assert "log start offset 2" in ask(log, 1).text
    assert delete_old_segments(log, NOW_MS) == 2


def test_nothing_is_too_old_or_too_large_without_limits(tmp_path: Path) -> None:
    log = aged(one_each(tmp_path, retention_ms=-1), 9 * DAY_MS, 0)
    found = ask(log)
    assert (found.deleted_by, found.eligible_at_ms) == (None, None)
    assert "retention.bytes is -1" in found.text
    assert "retention.ms is -1" in found.text
    assert delete_old_segments(log, NOW_MS + 9999 * DAY_MS) == 0


def test_records_from_the_future_keep_their_segment_and_are_named(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    box = one_each(tmp_path, retention_ms=DAY_MS, message_timestamp_after_max_ms=9 * DAY_MS)
    log = aged(box, -5 * DAY_MS, 0)
    found = ask(log)
    assert "which is in the future" in found.text
    assert found.eligible_at_ms == NOW_MS + 6 * DAY_MS + 1
    for _ in range(3):  # it is said once, not at each check
        assert delete_old_segments(log, NOW_MS) == 0
    assert [record.getMessage() for record in caplog.records if "future" in record.message] == [
        f"{log.name}: segment 0 stays until retention.ms after 2023-11-19 22:13:20.000 UTC: "
        "a record of it is of that time, which is in the future"
    ]


def test_the_brokers_clock_counts_with_log_append_time(tmp_path: Path) -> None:
    box = one_each(tmp_path, retention_ms=DAY_MS, message_timestamp_type="LogAppendTime")
    log = aged(box, 9 * DAY_MS, -9 * DAY_MS, 0)
    for index in range(2):
        assert ask(log, index).eligible_at_ms == NOW_MS + DAY_MS + 1


def test_the_file_counts_where_records_have_no_timestamps(tmp_path: Path) -> None:
    box = one_each(tmp_path, retention_ms=DAY_MS)
    log = box.open()
    put(log, b"v", timestamps=[-1])
    put(log, b"v", timestamps=[-1])
    os.utime(box.path(0, ".log"), (1_600_000_000, 1_600_000_000))
    found = ask(log)
    assert "no timestamps, its file was last written 2020-09-13 12:26:40.000 UTC" in found.text
    assert found.deleted_by is Rule.AGE


def test_the_active_segment_says_what_is_special_about_it(tmp_path: Path) -> None:
    log = aged(one_each(tmp_path, retention_bytes=SIZE), 0, 0)
    found = ask(log, 1)
    assert found.is_active
    assert "only once another one follows it" in found.text
    log.roll(NOW_MS)
    assert ask(log, 2).text == "it is the active segment, and empty"
    assert delete_old_segments(log, NOW_MS + 99 * DAY_MS) == 2
    assert ask(log).deleted_by is None


def test_a_segment_that_was_deleted_raises_key_error(tmp_path: Path) -> None:
    log = aged(one_each(tmp_path), 99 * DAY_MS, 0)
    old = log.segments[0]
    delete_old_segments(log, NOW_MS)
    with pytest.raises(KeyError):
        why_not_deleted(log, old, NOW_MS)


def test_times_and_durations_are_for_people() -> None:
    assert utc(0) == "1970-01-01 00:00:00.000 UTC"
    assert utc(2**62) == f"{2**62} ms since 1970"
    assert [duration(ms) for ms in (7 * DAY_MS, 3_600_000, 90_000, 1500, 0)] == [
        "7 days",
        "1 hour",
        "90 seconds",
        "1500 ms",
        "0 ms",
    ]


@settings(max_examples=by_length(15, 400), deadline=None)
@given(
    ages=st.lists(st.integers(-50, 200), min_size=1, max_size=6),
    retention_ms=st.sampled_from([-1, 0, 60, 100]),
    retention_size=st.integers(-1, 5),
    policy=st.sampled_from([("delete",), ("compact",), ("compact", "delete"), ()]),
    start=st.integers(0, 6),
    rolled=st.booleans(),
)
def test_the_next_check_deletes_what_was_said_and_nothing_else(
    ages: list[int],
    retention_ms: int,
    retention_size: int,
    policy: tuple[str, ...],
    start: int,
    rolled: bool,
) -> None:
    limit = retention_size if retention_size < 0 else retention_size * SIZE
    with TemporaryDirectory() as root:
        config = {"retention_ms": retention_ms, "retention_bytes": limit, "cleanup_policy": policy}
        log = aged(one_each(Path(root), **config), *ages)
        if rolled:
            log.roll(NOW_MS)
        log.increment_log_start_offset(min(start, log.log_end_offset))
        said = [ask(log, index) for index in range(len(log.segments))]
        doomed = [each.segment.base_offset for each in said if each.deleted_by]
        assert delete_old_segments(log, NOW_MS) == len(doomed)
        left = [segment.base_offset for segment in log.segments]
        assert [base for base in doomed if base in left] == []
        first = next((each for each in said if not each.deleted_by), None)
        if first is not None and first.eligible_at_ms is not None and first.segment.size_bytes:
            assert delete_old_segments(log, first.eligible_at_ms - 1) == 0
            assert delete_old_segments(log, first.eligible_at_ms) >= 1
    ages = (2 * DAY_MS - 1, 60_000, 59_999, 999, 0)
    assert [rounded(ms) for ms in ages] == ["1 day", "1 minute", "59 seconds", "999 ms", "0 ms"]
