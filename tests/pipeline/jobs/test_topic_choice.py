"""Topics by name and by pattern."""

from pathlib import Path

import pytest

from odradek.pipeline.jobs import JobError
from odradek.pipeline.jobs.topic_choice import TopicChoice
from odradek.pipeline.reading.partitions import LogDirectories


@pytest.fixture
def directories(tmp_path: Path) -> LogDirectories:
    for name in ("a-0", "a-1", "ab-0", "__consumer_offsets-0", "__cluster_metadata-0"):
        (tmp_path / name).mkdir()
    return LogDirectories([tmp_path])


@pytest.mark.parametrize(
    ("choice", "expected"),
    [
        (TopicChoice(), ["a-0", "a-1", "ab-0"]),
        (TopicChoice(pattern="a"), ["a-0", "a-1"]),
        (TopicChoice(pattern=".*b|nothing"), ["ab-0"]),
        (TopicChoice(names=["ab"]), ["ab-0"]),
        (TopicChoice(names=["ab"], pattern="a"), ["a-0", "a-1", "ab-0"]),
        (TopicChoice(names=["__consumer_offsets"]), ["__consumer_offsets-0"]),
        (TopicChoice(pattern="__.*"), []),
    ],
)
def test_topics_are_selected(
    directories: LogDirectories, choice: TopicChoice, expected: list[str]
) -> None:
    assert list(map(str, choice.partitions(directories))) == expected


def test_a_topic_that_is_not_there_is_named(directories: LogDirectories) -> None:
    with pytest.raises(JobError, match="no topic b, c in"):
        TopicChoice(names=["c", "a", "b"]).partitions(directories)
    with pytest.raises(JobError, match="no topic b"):
        TopicChoice(names=["b"]).select(["a"])


def test_an_invalid_pattern_is_refused(directories: LogDirectories) -> None:
    with pytest.raises(JobError, match=r"invalid pattern '\('"):
        TopicChoice(pattern="(").partitions(directories)
