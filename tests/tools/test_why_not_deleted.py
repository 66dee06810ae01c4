"""`odradek why-not-deleted`: what keeps each segment, from the files alone."""

import json
import os
import re
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from odradek.coordinator.runtime.outcome import JournalRecord
from odradek.coordinator.runtime.record_codec import MetadataRecordCodec
from odradek.coordinator.transactions.states import TransactionState
from odradek.coordinator.transactions.transaction import Transaction
from odradek.protocol.batch_header import BatchHeader
from odradek.protocol.record import Record
from odradek.protocol.record_batch import build_batch
from odradek.protocol.records.cluster_metadata import ConfigRecord
from odradek.storage.checkpoints import write_offsets
from odradek.storage.filenames import LOG_START_OFFSET_CHECKPOINT
from odradek.storage.files import Files
from odradek.storage.inspect.open_transactions import OpenTransaction
from odradek.storage.log import PartitionLog
from odradek.storage.log_reader import LogReader, SegmentFile
from odradek.tools.app import app
from odradek.tools.retention.stored_retention import PartitionFilter, StoredLog, StoredRetention
from odradek.tools.transactions.ownership import described
from tests.support.log_box import NOW_MS, LogBox, batch_of, put
from tests.support.old_logs import lay_down, single
from tests.support.transaction_directories import end, stopped_directory, transactional

GOLDEN = Path(__file__).resolve().parents[1] / "golden" / "metadata" / "dynamic"
SIZE = len(batch_of(b"v"))
MARKER_BYTES = 78
TOPIC, BROKER = 2, 4
LONG = "retention.ms=3153600000000"  # a hundred years


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Three segments of `orders-0`, one record each."""
    log = LogBox(tmp_path, segment_bytes=SIZE).open()
    for number in range(3):
        put(log, b"v", timestamps=[NOW_MS + number])
    log.close(NOW_MS)
    return tmp_path


def run(data: Path, *arguments: str) -> Result:
    result = CliRunner().invoke(app, ["why-not-deleted", str(data), *arguments])
    assert result.exception is None or isinstance(result.exception, SystemExit)
    return result


def answers(data: Path, *arguments: str) -> list[dict[str, Any]]:
    result = run(data, "--json", *arguments)
    assert result.exit_code == 0
    return [json.loads(line) for line in result.stdout.splitlines()]


def configure(data: Path, *settings: tuple[int, str, str, str]) -> None:
    """A metadata log that stores these, of resource type and name."""
    directory = data / "__cluster_metadata-0"
    shutil.copytree(GOLDEN / directory.name, directory)
    shutil.copy(GOLDEN / "meta.properties", data)
    codec = MetadataRecordCodec.of_cluster()
    encoded = [
        codec.encode(
            JournalRecord(
                ConfigRecord(resource_type=kind, resource_name=name, name=key, value=value), 0
            )
        )
        for kind, name, key, value in settings
    ]
    reader = LogReader(directory)
    batch = build_batch(
        [Record(key, value, NOW_MS) for key, value in encoded],
        base_offset=reader.end_offset(),
        partition_leader_epoch=1,
    )
    with reader.segments()[-1].path.open("ab") as file:
        file.write(batch)


def test_what_is_too_old_is_told_by_segment(data: Path) -> None:
    result = run(data)
    assert result.exit_code == 0
    head, *segments, interval, last = result.stdout.splitlines()
    assert head == (
        f"orders-0 ({data}/orders-0): cleanup.policy=delete retention.ms=604800000 "
        "retention.bytes=-1 log start 0"
    )
    assert [line.split()[0] for line in segments] == [f"{n:020}" for n in range(3)]
    assert all(
        "the next check deletes it: its newest record is of 2023-11-14" in s for s in segments
    )
    assert f"{SIZE} bytes, active:" in segments[2]
    default = "the default of log.retention.check.interval.ms"
    assert interval == f"A running broker checks every 5 minutes ({default})."
    assert last == (
        "The broker's file is not known without --config: settings that neither the topic nor the"
        " metadata log has are shown with their defaults."
    )
    assert "topics are shown with the defaults" in result.stderr


def test_a_record_that_a_broker_writes_meanwhile_is_not_called_one_of_the_future(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = StoredRetention.logs

    def logs(stored: StoredRetention, is_included: PartitionFilter) -> Iterator[StoredLog]:
        log = LogBox(data, segment_bytes=SIZE).open()
        moment_ms = time.time_ns() // 1_000_000 + 1
        put(log, b"v", now_ms=moment_ms, timestamps=[moment_ms])
        log.close(NOW_MS)
        while time.time_ns() // 1_000_000 < moment_ms:
            pass
        yield from read(stored, is_included)

    monkeypatch.setattr(StoredRetention, "logs", logs)
    *_, newest, _, _ = run(data).stdout.splitlines()
    assert "it stays until" in newest
    assert "in the future" not in newest


def test_the_interval_of_the_checks_comes_with_its_source(data: Path) -> None:
    file = data / "server.properties"
    file.write_text(f"log.dirs={data}\n")
    last = run(data, "--config", str(file)).stdout.splitlines()[-1]
    unset = f"the default of log.retention.check.interval.ms, which {file} does not set"
    assert last == f"A running broker checks every 5 minutes ({unset})."
    file.write_text("log.retention.check.interval.ms=60000\n")
    last = run(data, "--config", str(file)).stdout.splitlines()[-1]
    assert last == "A running broker checks every 1 minute (log.retention.check.interval.ms)."


def test_the_settings_are_those_of_the_node_that_has_the_directory(data: Path) -> None:
    configure(
        data,
        (BROKER, "7", "log.retention.bytes", "1"),
        (TOPIC, "orders", "cleanup.policy", "delete"),
    )
    properties = data / "meta.properties"
    text = properties.read_text()
    properties.write_text(re.sub("node.id=.*", "node.id=7", text))
    assert [each["deletedBy"] for each in answers(data)] == [
        "retention.bytes",
        "retention.bytes",
        "retention.ms",
    ]


def test_the_same_in_json(data: Path) -> None:
    first, second, active = answers(data, "--override", f"log.{LONG}")
    assert (first["topic"], first["partition"], first["baseOffset"]) == ("orders", 0, 0)
    assert (first["deletedBy"], first["eligibleAt"]) == (None, NOW_MS + 3153600000001)
    assert (second["waitsFor"], active["isActive"]) == (0, True)
    assert [rule["rule"] for rule in first["rules"]] == [
        "log start offset",
        "retention.bytes",
        "retention.ms",
    ]


def test_settings_come_from_the_file_the_brokers_and_the_topic(data: Path) -> None:
    file = data / "server.properties"
    file.write_text(f"log.{LONG}\nlog.retention.bytes=1\nlog.dirs={data}\n")
    config = ("--config", str(file))
    assert [each["deletedBy"] for each in answers(data, *config)] == ["retention.bytes"] * 2 + [
        None
    ]
    configure(
        data,
        (BROKER, "", "log.retention.bytes", "-1"),
        (TOPIC, "orders", "cleanup.policy", "delete"),  # there is one that is compacted
        (TOPIC, "orders", "retention.ms", "5"),
    )
    assert [each["deletedBy"] for each in answers(data, *config)] == ["retention.ms"] * 3
    assert run(data, *config).stderr == ""


def test_a_setting_that_is_not_valid_any_more_is_left_out_with_a_warning(data: Path) -> None:
    shutil.copytree(data / "orders-0", data / "orders-1")
    configure(
        data,
        (TOPIC, "orders", "cleanup.policy", "delete"),  # there is one that is compacted
        (TOPIC, "orders", "retention.ms", "5"),
        (TOPIC, "orders", "segment.bytes", "102400"),  # as Apache Kafka 3 allows
    )
    result = run(data, "--json", "--topic", "orders")
    lines = result.stdout.splitlines()
    assert [json.loads(line)["deletedBy"] for line in lines] == ["retention.ms"] * 6
    (warning,) = result.stderr.splitlines()
    assert all(word in warning for word in ("orders", "segment.bytes", "102400"))


def test_a_topic_and_a_partition_can_be_asked_for(data: Path) -> None:
    shutil.copytree(data / "orders-0", data / "orders-1")
    shutil.copytree(data / "orders-0", data / "others-0")
    both = answers(data, "--topic", "orders")
    assert {(each["topic"], each["partition"]) for each in both} == {("orders", 0), ("orders", 1)}
    one = answers(data, "--topic", "orders", "--partition", "1")
    assert {each["partition"] for each in one} == {1}
    assert answers(data, "--topic", "nobody") == []


def test_the_log_start_of_the_checkpoint_counts(data: Path) -> None:
    write_offsets(Files(), data / LOG_START_OFFSET_CHECKPOINT, {("orders", 0): 2})
    found = answers(data, "--override", "log.retention.ms=-1")
    assert [each["deletedBy"] for each in found] == ["log start offset"] * 2 + [None]


def test_messages_of_old_formats_count_by_their_file(data: Path) -> None:
    lay_down(data / "old-0", [single(0, 0, NOW_MS)], [single(1, 1, NOW_MS)])
    path = data / "old-0" / f"{0:020}.log"
    os.utime(path, (1_600_000_000, 1_600_000_000))
    first, second = answers(data, "--topic", "old")
    assert (first["isFileTime"], first["newestTimestamp"]) == (True, 1_600_000_000_000)
    assert (second["isFileTime"], second["newestTimestamp"]) == (False, NOW_MS)
    assert first["deletedBy"] == "retention.ms"


@pytest.fixture
def pinned(tmp_path: Path) -> Path:
    """Five segments, a batch each. A transaction is open from offset 1 on, another one was."""

    def write(log: PartitionLog) -> None:
        put(log, b"v")
        for producer_id in (9, 8):
            transactional(log, (producer_id, 0, 0))
        end(log, 8, 0, commit=True)
        put(log, b"v")

    return stopped_directory(
        tmp_path, write, [transaction()], policy="compact", segment_bytes=MARKER_BYTES
    )


def transaction(**fields: Any) -> Transaction:
    return Transaction(
        transactional_id="pay",
        producer_id=9,
        producer_epoch=0,
        timeout_ms=60_000,
        last_update_ms=NOW_MS,
        **{"state": TransactionState.ONGOING, "partitions": frozenset({("orders", 0)}), **fields},
    )


def test_the_transaction_that_keeps_the_cleaner_away_is_named(pinned: Path) -> None:
    _, pin, *segments, _, _ = run(pinned, "--topic", "orders").stdout.splitlines()
    assert pin.startswith(
        "  not cleaned from offset 1 on: the transaction of producer id 9, epoch 0, is open from "
        "offset 1 on, since 2023-11-14 22:13:20.000 UTC (for "
    )
    assert pin.endswith(
        "; transactional id pay has it, Ongoing: it ends with its producer, after its timeout of "
        "60000 ms, or by: kafka-transactions.sh --bootstrap-server HOST:PORT "
        "forceTerminateTransaction --transactionalId pay"
    )
    words = "it is not cleaned: a transaction is open from offset 1 on"
    assert [words in line for line in segments] == [False, True, True, True, False]


def test_the_same_transaction_in_json(pinned: Path) -> None:
    first, second, *_, active = answers(pinned, "--topic", "orders")
    assert (first["notCleanedBecause"], active["notCleanedBecause"]) == (None, None)
    pin = second["notCleanedBecause"]
    why = pin.pop("why")
    assert pin == {
        "producerId": 9,
        "producerEpoch": 0,
        "firstOffset": 1,
        "firstTimestamp": NOW_MS,
        "lastTimestamp": NOW_MS,
    }
    assert "transactional id pay" in why


def test_a_hanging_transaction_is_named_with_the_command_that_ends_it(pinned: Path) -> None:
    log = pinned / "__transaction_state-0" / f"{0:020}.log"
    log.write_bytes(b"")
    *_, pin = (line for line in run(pinned).stdout.splitlines() if "not cleaned from" in line)
    assert pin.endswith(
        "it seems to be hanging: no transactional id has this producer id; odradek verify tells "
        "whether it is hanging; then end it with: "
        "kafka-transactions.sh --bootstrap-server HOST:PORT abort --topic orders --partition 0"
        " --start-offset 1"
    )
    shutil.rmtree(log.parent)
    assert "no transactional id that can be read here has it" in run(pinned).stdout


def test_an_open_transaction_keeps_no_segment_from_being_deleted(pinned: Path) -> None:
    compact = "log.cleanup.policy=compact,delete"
    shutil.rmtree(pinned / "__cluster_metadata-0")
    found = answers(pinned, "--topic", "orders", "--override", compact)
    assert {each["deletedBy"] for each in found} == {"retention.ms"}
    assert {each["notCleanedBecause"] for each in found} == {None}
    plain = answers(pinned, "--topic", "orders", "--override", f"log.{LONG}")
    assert {each["notCleanedBecause"] for each in plain} == {None}


def test_a_transaction_that_began_before_the_log_is_known_after_a_clean_stop(pinned: Path) -> None:
    for base in (0, 1):
        for path in (pinned / "orders-0").glob(f"{base:020}.*"):
            path.unlink()
    found = answers(pinned, "--topic", "orders")
    assert [each["notCleanedBecause"] is None for each in found] == [False, False, True]
    assert found[0]["notCleanedBecause"]["firstOffset"] == 1


def test_nothing_is_changed_and_damage_is_named(data: Path) -> None:
    path = data / "orders-0" / f"{2:020}.log"
    path.write_bytes(path.read_bytes() + b"x" * 70)
    before = {p: (p.stat().st_mtime_ns, p.stat().st_size) for p in data.rglob("*")}
    result = run(data)
    assert f"the rest of the segment cannot be read: {path} at byte {SIZE}" in result.stderr
    assert f"{SIZE} bytes, active:" in result.stdout
    assert {p: (p.stat().st_mtime_ns, p.stat().st_size) for p in data.rglob("*")} == before


def when_read(monkeypatch: pytest.MonkeyPatch, change: Callable[[], object]) -> None:
    """Call `change` before the first segment is read."""
    headers, changes = LogReader.headers, iter([change])

    def busy_headers(reader: LogReader, segment: SegmentFile) -> Iterator[tuple[int, BatchHeader]]:
        for each in changes:
            each()
        return headers(reader, segment)

    monkeypatch.setattr(LogReader, "headers", busy_headers)


def test_a_segment_that_is_deleted_meanwhile_is_left_out(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    when_read(monkeypatch, (data / "orders-0" / f"{0:020}.log").unlink)
    assert [each["baseOffset"] for each in answers(data)] == [1, 2]


def test_a_topic_that_is_deleted_meanwhile_is_left_out(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    when_read(monkeypatch, lambda: shutil.rmtree(data / "orders-0"))
    assert answers(data) == []


def test_a_bad_configuration_is_refused_in_one_line(data: Path) -> None:
    result = run(data, "--override", "log.retention.bytes=many")
    assert result.exit_code == 1
    assert result.stderr.startswith("odradek: ")
    assert run(data / "nowhere").exit_code == 2


@pytest.mark.parametrize(
    ("first_ms", "since"),
    [
        (NOW_MS - 120_000, ", since 2023-11-14 22:11:20.000 UTC (for 2 minutes)"),
        (NOW_MS + 120_000, ", since 2023-11-14 22:15:20.000 UTC (for 0 ms)"),  # of a wrong clock
        (-1, ""),
    ],
)
def test_an_open_transaction_is_described_with_its_age(first_ms: int, since: str) -> None:
    open_ = OpenTransaction(
        producer_id=7,
        producer_epoch=1,
        first_offset=5,
        first_timestamp_ms=first_ms,
        last_timestamp_ms=NOW_MS,
    )
    said = described(open_, NOW_MS)
    assert f"is open from offset 5 on{since}, last written" in said
