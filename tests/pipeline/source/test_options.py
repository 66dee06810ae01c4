"""The options of the source: names and checks as in Spark's Kafka source."""

from pathlib import Path

import pytest

from odradek.pipeline.option_values import OptionError
from odradek.pipeline.source.options import ReadOptions, read_options
from odradek.pipeline.source.positions import (
    EARLIEST,
    LATEST,
    AtTime,
    ByOffset,
    ByTime,
    Everywhere,
)
from odradek.pipeline.source.topics import Topics
from tests.pipeline.source.origins import tp

HERE = {"path": "/logs", "subscribe": "a"}


def options(streaming: bool | None = False, **given: str) -> ReadOptions:
    return read_options({**HERE, **given}, streaming=streaming)


def without(name: str) -> dict[str, str]:
    return {key: value for key, value in HERE.items() if key != name}


def test_defaults_are_those_of_sparks_source() -> None:
    batch, stream = options(), options(streaming=True)
    assert (batch.starting, batch.ending) == (Everywhere(EARLIEST), Everywhere(LATEST))
    assert stream.starting == Everywhere(LATEST)
    assert batch.fail_on_data_loss
    assert not batch.include_headers
    assert not batch.read_committed
    assert batch.verify_crc


def test_names_come_in_any_case() -> None:
    given = {"PATH": "/logs", "Subscribe": "a, b", "STARTINGOFFSETS": "Earliest"}
    found = read_options(given, streaming=True)
    assert found.starting == Everywhere(EARLIEST)
    assert found.topics.missing([tp("a-0")]) == ["b"]


def test_a_path_is_several_directories_and_becomes_absolute(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    found = options(path="one, file:///two/größe ,")
    assert found.directories == (tmp_path / "one", Path("/two/größe"))


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"endingOffset": "latest"}, "Unknown option 'endingoffset'"),
        ({"assign": '{"a":[0]}'}, "Only one of the following"),
        ({"subscribe": " , "}, "No topics to subscribe"),
        ({"mode": "file"}, "mode must be one of files, broker, auto"),
        ({"mode": "broker"}, "'kafka.bootstrap.servers' must be specified"),
        ({"bootstrap.servers": "h:1"}, "must be written 'kafka.bootstrap.servers'"),
        ({"kafka.auto.offset.reset": "earliest"}, "set the source option 'startingOffsets'"),
        ({"kafka.enable.auto.commit": "true"}, "never committed"),
        ({"kafka.ssl.truststore.location": "/t.jks"}, "librdkafka reads PEM"),
        ({"startingOffsets": "latest"}, "starting offset can't be latest"),
        ({"endingOffsets": "earliest"}, "ending offset can't be earliest"),
        ({"startingOffsets": '{"a":{"0":-1}}'}, "startingOffsets for a-0 can't be latest"),
        ({"endingOffsets": '{"a":{"0":-2}}'}, "endingOffsets for a-0 can't be earliest"),
        ({"startingOffsets": '{"a":{"0":-3}}'}, "less than -2"),
        ({"startingOffsets": '{"a":{"x":1}}'}, "a has invalid 'x': 1"),
        ({"startingOffsets": '{"a":{"0":true}}'}, "a has invalid '0': True"),
        ({"startingOffsets": '{"a":[0]}'}, "needs an object of partitions"),
        ({"startingOffsets": "soon"}, 'expected e.g. {"topicA"'),
        ({"startingTimestamp": "-1"}, "must not be negative"),
        ({"startingTimestamp": "now"}, "must be a whole number"),
        ({"startingOffsetsByTimestampStrategy": "none"}, "must be one of error, latest"),
        ({"minPartitions": "0"}, "must be a positive number"),
        ({"maxSplitBytes": "many"}, "a size such as 64m"),
        ({"failOnDataLoss": "yes"}, "must be true or false"),
        ({"kafka.isolation.level": "committed"}, "read_uncommitted, read_committed"),
        (
            {"kafka.isolation.level": "read_committed", "isolationLevel": "read_uncommitted"},
            "contradict",
        ),
        ({"view": "batches", "mode": "broker", "kafka.bootstrap.servers": "h:1"}, "view=batches"),
    ],
)
def test_invalid_options_are_errors(given: dict[str, str], says: str) -> None:
    with pytest.raises(OptionError, match=says.replace("{", "\\{")):
        options(**given)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (without("subscribe"), "One of the following options must be specified"),
        (without("path"), "'kafka.bootstrap.servers' must be specified"),
        ({**without("path"), "mode": "files"}, "mode=files requires the option 'path'"),
        ({**without("subscribe"), "subscribePattern": "("}, "no regular expression"),
        ({**without("subscribe"), "subscribePattern": " "}, "Pattern to subscribe is empty"),
        ({**without("subscribe"), "assign": "{}"}, "No topicpartitions to assign"),
        ({**without("subscribe"), "assign": '{"a":[-1]}'}, "a list of partitions"),
    ],
)
def test_missing_options_are_errors(given: dict[str, str], says: str) -> None:
    with pytest.raises(OptionError, match=says):
        read_options(given, streaming=False)


@pytest.mark.parametrize("name", ["endingOffsets", "endingTimestamp", "endingOffsetsByTimestamp"])
def test_a_stream_has_no_end(name: str) -> None:
    with pytest.raises(OptionError, match=f"{name} is not valid in streaming queries"):
        options(streaming=True, **{name: '{"a":{"0":1}}' if "Offsets" in name else "1"})


def test_a_streams_limits_must_not_contradict_each_other() -> None:
    with pytest.raises(OptionError, match="must not be less"):
        options(streaming=True, minOffsetsPerTrigger="5", maxOffsetsPerTrigger="4")


def test_the_schema_can_be_asked_for_before_it_is_known_whether_it_is_a_stream() -> None:
    assert options(None, startingOffsets="latest").starting == Everywhere(LATEST)


def test_a_timestamp_wins_over_offsets() -> None:
    given = {"startingOffsets": "earliest", "startingOffsetsByTimestamp": '{"a":{"0":5}}'}
    assert options(**given).starting == ByTime({tp("a-0"): 5})
    assert options(**given, startingTimestamp="7").starting == AtTime(7)


def test_offsets_of_each_partition() -> None:
    found = options(startingOffsets='{"a":{"0":-2,"11":9223372036854775807},"b.c":{"1":0}}')
    assert found.starting == ByOffset(
        {tp("a-0"): EARLIEST, tp("a-11"): (1 << 63) - 1, tp("b.c-1"): 0}
    )


def test_assigned_partitions() -> None:
    found = read_options({"path": "/l", "assign": '{"a":[0,2]}'}, streaming=False)
    assert found.topics == Topics(partitions=frozenset({tp("a-0"), tp("a-2")}))


@pytest.mark.parametrize(
    ("text", "size"), [("1024", 1024), ("64m", 64 << 20), ("64MB", 64 << 20), ("1 kb", 1024)]
)
def test_sizes_are_written_as_in_spark(text: str, size: int) -> None:
    assert options(maxSplitBytes=text).max_split_bytes == size


@pytest.mark.parametrize(
    ("text", "ms"), [("15m", 900_000), ("30s", 30_000), ("500ms", 500), ("2h", 7_200_000)]
)
def test_durations_are_written_as_in_spark(text: str, ms: int) -> None:
    assert options(streaming=True, maxTriggerDelay=text).max_trigger_delay_ms == ms


def test_options_that_mean_nothing_here_are_allowed() -> None:
    options(groupIdPrefix="x", **{"fetchOffset.numRetries": "3", "kafka.group.id": "g"})
