"""`odradek verify`: what it finds in a data directory, and that it only looks."""

import contextlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from odradek.coordinator.runtime.outcome import JournalRecord
from odradek.coordinator.runtime.record_codec import MetadataRecordCodec
from odradek.protocol.batch_header import read_header, stamp_crc
from odradek.protocol.primitives import uuid_text
from odradek.protocol.record import Record
from odradek.protocol.record_batch import build_batch
from odradek.protocol.records.cluster_metadata import ConfigRecord, PartitionRecord, TopicRecord
from odradek.storage.checkpoints import (
    MetaProperties,
    write_clean_shutdown,
    write_meta_properties,
    write_offsets,
)
from odradek.storage.filenames import (
    CLEANER_OFFSET_CHECKPOINT,
    LOCK,
    RECOVERY_POINT_CHECKPOINT,
)
from odradek.storage.files import Files
from odradek.tools.app import app
from tests.support.lengths import only_long
from tests.support.log_box import NOW_MS, LogBox, batch_of
from tests.support.log_files import old_messages, used_log, v2_batches, write_internal_logs

GOLDEN = Path(__file__).resolve().parents[1] / "golden" / "metadata"
CLUSTER = uuid_text(bytes(range(16)))


class Verdict:
    """What a run said."""

    def __init__(self, code: int, summary: dict[str, Any]) -> None:
        self.code = code
        self.summary = summary
        lines = summary["findings"]
        self.problems = [line for line in lines if line["type"] == "problem"]
        self.notes = [line for line in lines if line["type"] == "note"]

    def __str__(self) -> str:
        return "\n".join(map(str, [*self.problems, *self.notes]))

    def says(self, name: str, *words: str) -> bool:
        """Whether there is a problem of a file with this name, with all these words."""
        return _says(self.problems, name, words)

    def notes_that(self, name: str, *words: str) -> bool:
        """The same of a note."""
        return _says(self.notes, name, words)


def _says(lines: list[dict[str, object]], name: str, words: tuple[str, ...]) -> bool:
    return any(
        Path(str(line["path"])).name == name
        and all(word in f"{line['what']}. {line['atStart']}" for word in words)
        for line in lines
    )


def verdict(*directories: Path, deep: bool = False) -> Verdict:
    arguments = ["verify", "--json", *map(str, directories), *(["--deep"] if deep else [])]
    result = CliRunner().invoke(app, arguments)
    assert result.exception is None or isinstance(result.exception, SystemExit)
    return Verdict(result.exit_code, json.loads(result.stdout))


@pytest.fixture(scope="module")
def used(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A log directory that was stopped cleanly, with one log that has been used."""
    root = tmp_path_factory.mktemp("data")
    box = used_log(root)
    end = int(box.names(".snapshot")[-1].partition(".")[0])
    write_meta_properties(Files(), root, MetaProperties(CLUSTER, 1, bytes(range(1, 17))))
    write_offsets(Files(), root / RECOVERY_POINT_CHECKPOINT, {("orders", 0): end})
    write_clean_shutdown(Files(), root, 7)
    return root


@pytest.fixture
def data(used: Path, tmp_path: Path) -> Path:
    """A copy of it, to be damaged."""
    return Path(shutil.copytree(used, tmp_path / "data"))


def segments(data: Path, suffix: str = ".log") -> list[Path]:
    return sorted((data / "orders-0").glob(f"*{suffix}"))


def killed(data: Path, recovery_point: int = 0) -> None:
    (data / ".kafka_cleanshutdown").unlink()
    write_offsets(Files(), data / RECOVERY_POINT_CHECKPOINT, {("orders", 0): recovery_point})


def flip(path: Path, at: int, bit: int = 0) -> None:
    data = bytearray(path.read_bytes())
    data[at] ^= 1 << bit
    path.write_bytes(data)


def test_a_directory_that_was_stopped_is_sound(used: Path) -> None:
    found = verdict(used, deep=True)
    assert (found.code, found.problems, found.notes) == (0, [], [])
    assert found.summary["partitions"] == 1
    assert found.summary["segments"] == len(segments(used))
    assert found.summary["sound"] is True


@pytest.mark.parametrize("form", ["dynamic", "static", "formatted"])
def test_what_is_there_of_a_directory_of_kafka_is_sound(form: str) -> None:
    # The golden files leave out the indexes and the topics' logs.
    found = verdict(GOLDEN / form, deep=True)
    assert all("missing" in str(line["what"]) for line in found.problems), found


def test_nothing_is_changed(data: Path) -> None:
    flip(segments(data)[0], 100)
    segments(data, ".index")[0].unlink()
    (data / LOCK).touch()
    before = _everything(data)
    verdict(data, deep=True)
    assert _everything(data) == before


def _everything(data: Path) -> dict[str, tuple[int, bytes]]:
    return {
        str(path): (path.stat().st_mtime_ns, path.read_bytes())
        for path in sorted(data.rglob("*"))
        if path.is_file()
    }


def test_a_broker_that_runs_on_it_is_told_and_not_disturbed(data: Path) -> None:
    lock = Files().lock(data / LOCK)
    found = verdict(data)
    assert found.code == 0
    assert found.notes_that("data", "a broker is running")
    lock.release()
    assert not verdict(data).notes


# --- batches


@pytest.mark.slow
@only_long("bits are flipped in storage/test_bit_flips.py")
def test_no_bit_of_a_log_can_be_flipped_unseen(tmp_path: Path, used: Path) -> None:
    data = tmp_path / "small"
    box = LogBox(data, index_interval_bytes=1)
    log = box.open()
    log.become_leader(0)
    for value in (b"a", b"b"):
        log.append(batch_of(value, producer=(4, 0, ord(value) - 97)), now_ms=NOW_MS)
    log.close(NOW_MS)
    for name in ("meta.properties", ".kafka_cleanshutdown"):
        shutil.copy(used / name, data / name)
    (data / "__cluster_metadata-0").mkdir()
    (data / "__cluster_metadata-0" / f"{0:020}.log").write_bytes(_metadata_of("orders"))
    assert [
        line["path"] for line in verdict(data).problems if "orders-0" in str(line["path"])
    ] == []
    unseen = []
    for path in sorted(box.directory.iterdir()):
        whole = path.read_bytes()
        for at in range(len(whole)):
            flip(path, at, at % 8)
            found = [line for line in verdict(data).problems if "orders-0" in str(line["path"])]
            if not found:
                unseen.append((path.suffix, at))
            path.write_bytes(whole)
    assert unseen == []


def _metadata_of(topic: str, policy: str = "delete") -> bytes:
    topic_id = b"t" * 16
    records = [
        TopicRecord(name=topic, topic_id=topic_id),
        PartitionRecord(
            partition_id=0,
            topic_id=topic_id,
            replicas=[1],
            isr=[1],
            removing_replicas=[],
            adding_replicas=[],
            directories=[bytes(range(1, 17))],
        ),
        ConfigRecord(resource_type=2, resource_name=topic, name="cleanup.policy", value=policy),
    ]
    codec = MetadataRecordCodec.of_cluster()
    versions = (0, 1, 0)
    encoded = [
        codec.encode(JournalRecord(record, version))
        for record, version in zip(records, versions, strict=True)
    ]
    return bytes(build_batch([Record(key, value, NOW_MS) for key, value in encoded]))


def test_a_broken_batch_is_not_looked_at_after_a_clean_stop(data: Path) -> None:
    flip(segments(data)[1], 200)
    found = verdict(data)
    assert found.code == 1
    assert found.says(segments(data)[1].name, "do not match the stored CRC", "after a clean stop")
    assert len(found.problems) == 1


def test_a_broken_batch_behind_the_recovery_point_ends_the_log(data: Path) -> None:
    flip(segments(data)[1], 200)
    killed(data)
    later = len(segments(data)) - 2
    found = verdict(data)
    assert found.says(
        segments(data)[1].name, "recovery cuts this segment", f"{later} later segments"
    )


def test_a_broken_batch_before_the_recovery_point_stays(data: Path) -> None:
    flip(segments(data)[1], 200)
    point = int(segments(data)[2].stem)
    killed(data, point)
    found = verdict(data)
    assert found.says(segments(data)[1].name, f"recovery begins after it, at offset {point}")


def test_a_torn_tail_is_a_problem_after_a_clean_stop_and_none_after_a_kill(data: Path) -> None:
    last = segments(data)[-1]
    with last.open("ab") as file:
        file.write(batch_of(b"torn")[:50])
    assert verdict(data).says(last.name, "50 bytes after the last complete batch")
    killed(data)
    found = verdict(data)
    assert found.code == 0, found
    assert found.notes_that(
        last.name, "50 bytes after the last complete batch", "50 bytes are lost"
    )


def test_a_preallocated_segment_is_no_problem_after_a_kill(data: Path) -> None:
    last = segments(data)[-1]
    with last.open("ab") as file:
        file.write(bytes(5000))
    killed(data)
    found = verdict(data)
    assert found.code == 0, found
    assert found.notes_that(last.name, "5000 bytes were preallocated")


def test_offsets_that_do_not_ascend_are_told(data: Path) -> None:
    first = segments(data)[0]
    first.write_bytes(first.read_bytes() + batch_of(b"again", base_offset=0))
    assert verdict(data).says(first.name, "offset 0 where")


def test_a_segment_that_is_lost_is_told_unless_the_cleaner_was_there(data: Path) -> None:
    for path in (data / "orders-0").glob(f"{segments(data)[1].stem}.*"):
        path.unlink()
    lost = segments(data)[1].name
    assert verdict(data).says(lost, "are missing before it", "no sign")
    (data / "__cluster_metadata-0").mkdir()
    metadata = data / "__cluster_metadata-0" / f"{0:020}.log"
    for policy in ("delete", "compact,delete"):
        metadata.write_bytes(_metadata_of("orders", policy))
        # The cleaner of a broker that is killed may leave no sign.
        assert verdict(data).says(lost, "are missing before it") == (policy == "delete")
        assert verdict(data).notes_that(lost, "are missing before it") == (policy != "delete")
    shutil.rmtree(data / "__cluster_metadata-0")
    write_offsets(Files(), data / CLEANER_OFFSET_CHECKPOINT, {("orders", 0): 10_000})
    assert verdict(data).code == 0


def test_batches_whose_inside_is_broken_are_found_with_deep(data: Path) -> None:
    write_offsets(Files(), data / RECOVERY_POINT_CHECKPOINT, {})
    broken = bytearray(batch_of(b"v" * 30, base_offset=0))
    broken[61] ^= 1  # the length of the record
    stamp_crc(broken)
    shutil.rmtree(data / "orders-0")
    LogBox(data).open().close(NOW_MS)
    path = data / "orders-0" / f"{0:020}.log"
    path.write_bytes(broken)
    assert verdict(data).problems == []
    assert verdict(data, deep=True).says(path.name, "has a valid CRC but cannot be read")


@pytest.mark.parametrize("magic", [0, 1])
def test_old_message_formats_are_looked_at_as_well(data: Path, magic: int) -> None:
    shutil.rmtree(data / "orders-0")
    box = LogBox(data)
    box.directory.mkdir()
    path = box.path(1000, ".log")
    path.write_bytes(old_messages(magic)[: 3 * 40])
    assert verdict(data, deep=True).says(path.name, "after the last complete batch")
    flip(path, 20)
    assert verdict(data).says(path.name, "do not match the stored CRC")


# --- files beside the batches


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-3])


def garble(path: Path) -> None:
    path.write_bytes(b"7\nnonsense\n")


DAMAGES: list[tuple[str, Callable[[Path], object], str]] = [
    (".index", Path.unlink, "the index is missing"),
    (".index", cut, "not a multiple of 8"),
    (".index", lambda path: flip(path, 3), "do not match the log"),
    (".timeindex", Path.unlink, "the index is missing"),
    (".timeindex", cut, "not a multiple of 12"),
    (".timeindex", lambda path: flip(path, 7), "do not match the log"),
    (".txnindex", Path.unlink, "was aborted and is not in the index"),
    (".txnindex", lambda path: flip(path, 17, 6), "a transaction from"),
    (".snapshot", lambda path: flip(path, 9), "cannot be read"),
    ("leader-epoch-checkpoint", garble, "version 7 is unknown"),
    ("leader-epoch-checkpoint", lambda path: path.write_text("0\n1\n0 0\n"), "the file says 0"),
]


@pytest.mark.parametrize(("suffix", "damage", "words"), DAMAGES)
def test_damage_to_files_beside_the_log_is_told(
    data: Path, suffix: str, damage: Callable[[Path], object], words: str
) -> None:
    path = segments(data, suffix)[0]
    damage(path)
    found = verdict(data)
    assert found.code == 1
    assert found.says(path.name, words), found
    assert len(found.problems) == 1


def test_what_a_crash_leaves_is_noted(data: Path) -> None:
    for name in (
        f"{99:020}.log.deleted",
        f"{98:020}.log.cleaned",
        f"{97:020}.log.swap",
        f"{96:020}.index",
        "leader-epoch-checkpoint.tmp",
        "surprise",
    ):
        (data / "orders-0" / name).touch()
    found = verdict(data)
    assert found.code == 0
    assert found.notes_that(f"{99:020}.log.deleted", "about to be deleted", "removed")
    assert found.notes_that(f"{98:020}.log.cleaned", "not finished", "removed")
    assert found.notes_that(f"{97:020}.log.swap", "a finished log cleaning", "put in place")
    assert found.notes_that(f"{96:020}.index", "no segment")
    assert found.notes_that("leader-epoch-checkpoint.tmp", "not finished")
    assert found.notes_that("surprise", "an unknown file")


def test_a_log_start_offset_behind_the_end_is_told(data: Path) -> None:
    write_offsets(Files(), data / "log-start-offset-checkpoint", {("orders", 0): 10_000})
    assert verdict(data).says("orders-0", "starts at 10000", "all records are dropped")


# --- the log directory


def test_directories_of_every_kind_are_named(data: Path) -> None:
    unique = "0" * 32
    for name in (
        f"a-0.{unique}-delete",
        f"b-0.{unique}-future",
        f"c-0.{unique}-stray",
        "what",
        "d-2147483648",
    ):
        (data / name).mkdir()
    found = verdict(data)
    assert found.says("what", "odradek ignores it. Apache Kafka refuses to start")
    assert found.says("d-2147483648", "odradek ignores it. Apache Kafka refuses to start")
    assert found.notes_that(f"a-0.{unique}-delete", "being deleted")
    assert found.notes_that(f"b-0.{unique}-future", "being moved")
    assert found.notes_that(f"c-0.{unique}-stray", "no topic")


def test_directories_that_odradek_expects_are_noted_if_apache_kafka_does_not(data: Path) -> None:
    for name in ("lost+found", ".snapshots", ".Trash-1000", "remote-log-index-cache"):
        (data / name).mkdir()
    found = verdict(data)
    assert found.problems == []
    assert found.notes_that("lost+found", "odradek ignores it. Apache Kafka refuses to start")
    assert found.notes_that(".snapshots", "odradek ignores it. Apache Kafka refuses to start")
    assert found.notes_that(".Trash-1000", "odradek ignores it. Apache Kafka takes it for a log")
    assert len(found.notes) == 3


def test_files_of_the_directory_that_make_no_sense_are_told(data: Path) -> None:
    (data / "meta.properties").write_text("version=1\n")
    garble(data / RECOVERY_POINT_CHECKPOINT)
    found = verdict(data)
    assert found.says("meta.properties", "cluster.id is missing", "refuses to start")
    assert found.says(RECOVERY_POINT_CHECKPOINT, "version 7", "treated as empty")
    (data / "meta.properties").unlink()
    assert verdict(data).says("meta.properties", "missing, though there are logs")


def test_directories_must_be_of_one_node(data: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    shutil.copytree(data, other)
    found = verdict(data, other)
    assert found.says("meta.properties", "directory.id", "the same as in")
    assert found.says("orders-0", "the same log is also in")
    write_meta_properties(Files(), other, MetaProperties(CLUSTER, 2, bytes(range(2, 18))))
    assert verdict(data, other).says("meta.properties", "node.id is 2; in ")


def test_a_log_that_moves_between_directories_in_use_is_not_there_twice(
    data: Path, tmp_path: Path
) -> None:
    other = Path(shutil.copytree(data, tmp_path / "other"))
    write_meta_properties(Files(), other, MetaProperties(CLUSTER, 1, bytes(range(2, 18))))
    with contextlib.ExitStack() as locks:
        for directory in (data, other):
            locks.callback(Files().lock(directory / LOCK).release)
        found = verdict(data, other)
    assert found.code == 0, found
    assert found.notes_that("orders-0", "the same log is also in", "it was moved")


@pytest.mark.parametrize("name", ["partition.metadata", "leader-epoch-checkpoint"])
def test_a_file_that_is_not_synced_may_be_zeros(data: Path, name: str) -> None:
    path = data / "orders-0" / name
    path.write_bytes(bytes(30))
    found = verdict(data)
    assert found.code == 0, found
    assert found.notes_that(name, "it is zeros", "Apache Kafka: the log directory goes offline")
    path.write_bytes(b"nonsense\n")
    assert verdict(data).says(name, "odradek: it is ", "Apache Kafka: the log directory goes")


def test_logs_are_held_against_the_metadata_log(data: Path) -> None:
    (data / "__cluster_metadata-0").mkdir()
    metadata = data / "__cluster_metadata-0" / f"{0:020}.log"
    metadata.write_bytes(_metadata_of("orders"))
    (data / "orders-0" / "partition.metadata").write_text(f"version: 0\ntopic_id: {CLUSTER}")
    assert verdict(data).says("partition.metadata", "it belongs to topic id", "stray")
    metadata.write_bytes(_metadata_of("others"))
    found = verdict(data)
    assert found.says("orders-0", "no topic of the metadata log owns it", "stray")
    assert found.says("others-0", "missing, though the metadata log places it here")
    killed(data)  # perhaps while it created the topic
    assert verdict(data).notes_that("others-0", "missing, though", "an empty log is created")


def test_a_log_that_is_still_moving_to_its_new_place_is_not_missing(data: Path) -> None:
    (data / "__cluster_metadata-0").mkdir()
    (data / "__cluster_metadata-0" / f"{0:020}.log").write_bytes(_metadata_of("others"))
    (data / f"others-0.{'0' * 32}-future").mkdir()
    assert not verdict(data).says("others-0", "missing")


def test_the_metadata_log_begins_where_its_oldest_snapshot_ends(data: Path) -> None:
    log = data / "__cluster_metadata-0"
    shutil.copytree(GOLDEN / "dynamic" / "__cluster_metadata-0", log)
    [snapshot] = log.glob("*.checkpoint")
    snapshot.rename(log / f"{1:020}-{1:010}.checkpoint")
    epochs = log / "leader-epoch-checkpoint"
    epochs.write_text("0\n1\n1 1\n")  # its segment still has the batches before
    assert not verdict(data).says(epochs.name, "the file says none")


def test_the_owner_of_a_log_is_checked_wherever_its_name_sorts(data: Path) -> None:
    (data / "__cluster_metadata-0").mkdir()
    (data / "__cluster_metadata-0" / f"{0:020}.log").write_bytes(_metadata_of("others"))
    (data / "orders-0").rename(data / "Orders-0")  # capitals sort before an underscore
    assert verdict(data).says("Orders-0", "no topic of the metadata log owns it", "stray")


def test_records_of_internal_logs_must_decode(data: Path) -> None:
    for path, _ in write_internal_logs(data):
        path.with_suffix(".index").touch()
        path.with_suffix(".timeindex").touch()
    found = verdict(data)
    assert found.says(f"{0:020}.log", "Error at offset")
    assert found.notes_that(f"{0:020}.log", "nknown")


def test_a_snapshot_of_the_metadata_log_must_be_whole(data: Path) -> None:
    shutil.copytree(GOLDEN / "dynamic" / "__cluster_metadata-0", data / "__cluster_metadata-0")
    snapshot = next((data / "__cluster_metadata-0").glob("*.checkpoint"))
    assert not verdict(data).says(snapshot.name)
    whole = snapshot.read_bytes()
    flip(snapshot, 80)
    assert verdict(data).says(snapshot.name, "stored CRC")
    snapshot.write_bytes(whole[:-3])
    assert verdict(data).says(snapshot.name, "is cut short")
    first = read_header(whole).size_bytes
    snapshot.write_bytes(whole[first:])
    assert verdict(data).says(snapshot.name, "header is missing")
    # Records before the damage are checked.
    snapshot.write_bytes(whole[:first] + batch_of(b"\1\2\0") + whole[first:-1])
    found = verdict(data)
    assert found.says(snapshot.name, "is cut short")
    assert found.says(snapshot.name, "Error at 0")


# --- the command


def test_a_table_of_topics_comes_first_then_the_findings_then_a_verdict(data: Path) -> None:
    flip(segments(data)[0], 65)
    result = CliRunner().invoke(app, ["verify", str(data)])
    assert result.exit_code == 1
    title, header, orders, first, last = result.stdout.splitlines()
    assert title.startswith("verified in ")
    assert header.split()[:3] == ["topic", "logs", "segments"]
    assert orders.split()[:3] == ["orders", "1", str(len(segments(data)))]
    assert first.startswith(f"problem (checksum): {segments(data)[0]}: byte 0, offset 0: the check")
    assert ". At start: after a clean stop" in first
    assert last == "1 problem, 0 notes"


def test_only_the_chosen_topics_are_checked(data: Path) -> None:
    flip(segments(data)[0], 65)
    result = CliRunner().invoke(app, ["verify", str(data), "--topics", "o.*"])
    assert (result.exit_code, "problem (checksum)" in result.stdout) == (1, True)
    result = CliRunner().invoke(app, ["verify", str(data), "--topic", "x"])
    assert (result.exit_code, "no topic x" in result.stderr) == (1, True)


def test_a_pattern_chooses_internal_topics_too(data: Path) -> None:
    shutil.copytree(data / "orders-0", data / "__consumer_offsets-0")
    flip(data / "__consumer_offsets-0" / segments(data)[0].name, 65)
    result = CliRunner().invoke(app, ["verify", str(data), "--topics", "__.*"])
    assert (result.exit_code, "problem (checksum)" in result.stdout) == (1, True)


@pytest.mark.parametrize("pattern", ["x.*", ""])
def test_a_pattern_that_matches_no_topic_does_not_find_the_directory_sound(
    data: Path, pattern: str
) -> None:
    for options in ([], ["--dry-run"]):
        result = CliRunner().invoke(app, ["verify", str(data), "--topics", pattern, *options])
        assert (result.exit_code, result.stdout) == (1, "")
        assert f"no topic matches {pattern!r} in {data}" in result.stderr


def test_a_dry_run_says_what_would_be_checked(data: Path) -> None:
    flip(segments(data)[0], 65)
    result = CliRunner().invoke(app, ["verify", str(data), "--dry-run"])
    assert (result.exit_code, "orders" in result.stdout) == (0, True)
    result = CliRunner().invoke(app, ["verify", str(data), "--dry-run", "--json"])
    [topic] = json.loads(result.stdout)["topics"]
    assert topic["partitions"] == 1
    assert topic["logBytes"] > 1000


def test_verify_needs_no_package_of_an_extra(tmp_path: Path, data: Path) -> None:
    extras = ("numpy", "pyarrow", "pyspark", "confluent_kafka")
    for name in extras:
        (tmp_path / f"{name}.py").write_text(f"raise ModuleNotFoundError(name={name!r})")
    program = "from odradek.tools.cli import main; main()"
    arguments = ["verify", "--deep", "--processes", "2", str(data)]
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments],
        capture_output=True,
        text=True,
        env=os.environ
        | {"PYTHONPATH": f"{tmp_path}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"},
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.endswith("sound, 0 notes\n")


def test_a_directory_that_is_not_there_is_usage(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["verify", str(tmp_path / "gone")])
    assert result.exit_code == 2
    assert "directory" in result.stderr


def test_batches_of_every_kind_are_sound(data: Path) -> None:
    shutil.rmtree(data / "orders-0")
    box = LogBox(data)
    box.directory.mkdir()
    box.path(0, ".log").write_bytes(v2_batches())
    found = verdict(data, deep=True)
    missing = {line["what"] for line in found.problems}
    assert "the index is missing" in missing
