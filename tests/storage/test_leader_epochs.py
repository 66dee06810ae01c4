"""Leader epochs of a log: the cases of Kafka's LeaderEpochFileCache."""

import itertools
import logging
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from odradek.storage.checkpoints import CheckpointError, read_epochs, write_epochs
from odradek.storage.files import Files
from odradek.storage.leader_epochs import EpochEntry, LeaderEpochs


@pytest.fixture
def epochs(tmp_path: Path) -> LeaderEpochs:
    return LeaderEpochs(Files(), tmp_path / "leader-epoch-checkpoint")


def on_disk(epochs: LeaderEpochs) -> list[tuple[int, int]]:
    return read_epochs(Files(), epochs.path)


def fill(epochs: LeaderEpochs, *entries: tuple[int, int]) -> LeaderEpochs:
    for entry in entries:
        epochs.assign(*entry)
    return epochs


def test_a_new_log_has_no_epochs(epochs: LeaderEpochs) -> None:
    assert epochs.latest is None
    assert epochs.earliest is None
    assert epochs.end_offset_for(0, 100) == (-1, -1)


def test_a_flush_writes_the_epochs(epochs: LeaderEpochs) -> None:
    fill(epochs, (0, 0))
    assert not epochs.is_stored
    assert epochs.flush()
    assert epochs.is_stored
    fill(epochs, (2, 10))
    assert on_disk(epochs) == [(0, 0)]
    assert epochs.flush()
    again = LeaderEpochs(Files(), epochs.path)
    assert again.entries == [EpochEntry(0, 0), EpochEntry(2, 10)]


def test_assigning_the_latest_epoch_again_changes_nothing(epochs: LeaderEpochs) -> None:
    epochs.assign(3, 10)
    epochs.assign(3, 10)
    epochs.assign(3, 500)
    assert epochs.entries == [EpochEntry(3, 10)]


def test_an_earlier_start_of_the_latest_epoch_moves_it(epochs: LeaderEpochs) -> None:
    fill(epochs, (1, 0), (3, 10), (3, 8))
    assert epochs.entries == [EpochEntry(1, 0), EpochEntry(3, 8)]


def test_an_epoch_in_which_nothing_was_written_is_replaced_in_silence(
    epochs: LeaderEpochs, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        fill(epochs, (1, 0), (2, 10), (3, 10))
    assert epochs.entries == [EpochEntry(1, 0), EpochEntry(3, 10)]
    assert caplog.text == ""


def test_entries_that_contradict_a_new_one_go_with_a_warning(
    epochs: LeaderEpochs, caplog: pytest.LogCaptureFixture
) -> None:
    fill(epochs, (1, 0), (2, 10), (3, 20))
    with caplog.at_level(logging.WARNING):
        epochs.assign(2, 5)
    assert epochs.entries == [EpochEntry(1, 0), EpochEntry(2, 5)]
    assert "contradicts" in caplog.text


@pytest.mark.parametrize("entry", [(-1, 0), (0, -1)])
def test_negative_entries_are_refused(epochs: LeaderEpochs, entry: tuple[int, int]) -> None:
    with pytest.raises(ValueError, match="is no leader epoch"):
        epochs.assign(*entry)


@pytest.mark.parametrize(
    ("requested", "answer"),
    [
        (-1, (-1, -1)),  # undefined
        (0, (0, 5)),  # before the first: its records were deleted
        (2, (2, 10)),
        (3, (2, 10)),  # unknown, in between
        (4, (4, 20)),
        (7, (7, 100)),  # the latest ends with the log
        (8, (-1, -1)),  # newer than all
    ],
)
def test_the_end_of_an_epoch_is_the_start_of_the_next(
    epochs: LeaderEpochs, requested: int, answer: tuple[int, int]
) -> None:
    fill(epochs, (2, 5), (4, 10), (7, 20))
    assert epochs.end_offset_for(requested, 100) == answer


def test_truncating_the_end_drops_epochs_that_start_there(epochs: LeaderEpochs) -> None:
    fill(epochs, (2, 5), (4, 10), (7, 20))
    epochs.truncate_from_end(21)
    assert len(epochs.entries) == 3
    epochs.truncate_from_end(20)
    assert epochs.latest == EpochEntry(4, 10)
    epochs.truncate_from_end(-1)
    assert epochs.latest == EpochEntry(4, 10)
    epochs.truncate_from_end(0)
    assert epochs.entries == []


def test_truncating_the_start_moves_the_epoch_that_holds_it(epochs: LeaderEpochs) -> None:
    fill(epochs, (2, 5), (4, 10), (7, 20))
    epochs.truncate_from_start(4)
    assert epochs.earliest == EpochEntry(2, 5)
    epochs.truncate_from_start(7)
    assert epochs.earliest == EpochEntry(2, 7)
    epochs.truncate_from_start(10)
    assert epochs.entries == [EpochEntry(4, 10), EpochEntry(7, 20)]
    epochs.truncate_from_start(1000)
    assert epochs.entries == [EpochEntry(7, 1000)]


def test_truncation_reaches_the_disk_with_the_next_flush(epochs: LeaderEpochs) -> None:
    fill(epochs, (2, 5), (4, 10)).flush()
    epochs.truncate_from_end(10)
    assert on_disk(epochs) == [(2, 5), (4, 10)]
    epochs.flush()
    assert on_disk(epochs) == [(2, 5)]
    epochs.truncate_from_start(8)
    epochs.flush()
    assert on_disk(epochs) == [(2, 8)]
    epochs.clear()
    epochs.flush()
    assert on_disk(epochs) == []


def test_a_flush_without_changes_writes_nothing(epochs: LeaderEpochs) -> None:
    fill(epochs, (2, 5)).flush()
    epochs.path.unlink()
    epochs.truncate_from_start(5)
    epochs.truncate_from_end(6)
    assert not epochs.flush()
    assert not epochs.path.exists()


def test_a_failed_write_is_tried_again_by_the_next_flush(tmp_path: Path) -> None:
    class FailsOnce(Files):
        failures = 1

        def atomic_write(self, path: Path, data: object, *, sync: bool = True) -> None:
            if self.failures:
                self.failures -= 1
                raise OSError(28, "No space left on device")
            assert isinstance(data, bytes)
            super().atomic_write(path, data, sync=sync)

    epochs = LeaderEpochs(FailsOnce(), tmp_path / "c")
    epochs.assign(1, 0)
    with pytest.raises(OSError, match="No space"):
        epochs.flush()
    epochs.flush()
    assert on_disk(epochs) == [(1, 0)]


def test_a_broken_file_is_reported_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "leader-epoch-checkpoint"
    path.write_text("0\n1\nzero zero\n")
    with pytest.raises(CheckpointError, match="line 3"):
        LeaderEpochs(Files(), path)


def test_a_file_whose_entries_contradict_each_other_is_put_right(tmp_path: Path) -> None:
    path = tmp_path / "leader-epoch-checkpoint"
    write_epochs(Files(), path, [(1, 0), (3, 30), (2, 20)])
    assert LeaderEpochs(Files(), path).entries == [EpochEntry(1, 0), EpochEntry(2, 20)]


@pytest.mark.slow
@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 50)), max_size=12))
def test_epochs_and_offsets_always_ascend(
    tmp_path_factory: pytest.TempPathFactory, assigned: list[tuple[int, int]]
) -> None:
    epochs = LeaderEpochs(Files(), tmp_path_factory.mktemp("epochs") / "c")
    fill(epochs, *assigned)
    entries = epochs.entries
    for earlier, later in itertools.pairwise(entries):
        assert earlier.epoch < later.epoch
        assert earlier.start_offset < later.start_offset
    epochs.flush()
    assert on_disk(epochs) == entries


class KafkasRules:
    """A model with the rules of Kafka's class: entries by epoch, truncated from either end."""

    def __init__(self) -> None:
        self.entries: list[tuple[int, int]] = []

    def assign(self, epoch: int, start_offset: int) -> None:
        if self.entries and self.entries[-1][0] == epoch and start_offset >= self.entries[-1][1]:
            return
        while self.entries and (
            self.entries[-1][0] >= epoch or self.entries[-1][1] >= start_offset
        ):
            self.entries.pop()
        self.entries.append((epoch, start_offset))

    def truncate_from_end(self, end_offset: int) -> None:
        while end_offset >= 0 and self.entries and self.entries[-1][1] >= end_offset:
            self.entries.pop()

    def truncate_from_start(self, start_offset: int) -> None:
        removed = [entry for entry in self.entries if entry[1] <= start_offset]
        if removed:
            self.entries[: len(removed)] = [(removed[-1][0], start_offset)]

    def end_offset_for(self, epoch: int, log_end_offset: int) -> tuple[int, int]:
        if epoch == -1:
            return -1, -1
        if self.entries and self.entries[-1][0] == epoch:
            return epoch, log_end_offset
        higher = [entry for entry in self.entries if entry[0] > epoch]
        floor = [entry for entry in self.entries if entry[0] <= epoch]
        if not higher:
            return -1, -1
        return (floor[-1][0] if floor else epoch), higher[0][1]


steps = st.one_of(
    st.tuples(st.just("assign"), st.integers(0, 9), st.integers(0, 50)),
    st.tuples(st.just("truncate_from_end"), st.integers(-1, 60)),
    st.tuples(st.just("truncate_from_start"), st.integers(0, 60)),
)


@pytest.mark.slow
@settings(deadline=None)
@given(st.lists(steps, max_size=15))
def test_after_any_steps_entries_and_answers_are_kafkas(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, int]]
) -> None:
    epochs = LeaderEpochs(Files(), tmp_path_factory.mktemp("epochs") / "c")
    rules = KafkasRules()
    for name, *arguments in steps:
        getattr(epochs, name)(*arguments)
        getattr(rules, name)(*arguments)
        assert epochs.entries == rules.entries
    for epoch in range(-1, 11):
        assert epochs.end_offset_for(epoch, 100) == rules.end_offset_for(epoch, 100)
    epochs.flush()
    assert on_disk(epochs) == rules.entries
