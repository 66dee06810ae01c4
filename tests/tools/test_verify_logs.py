"""`odradek verify`, log by log: every damage is found, and nothing else."""

import shutil
import struct
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path

import pytest

from odradek.pipeline.jobs.process_tasks import ProcessTasks
from odradek.pipeline.jobs.topic_choice import TopicChoice
from odradek.protocol.batch_header import HEADER_BYTES, read_header, stamp_crc
from odradek.protocol.compression import CompressionType
from odradek.protocol.record import Record
from odradek.protocol.record_batch import build_batch
from odradek.storage.checkpoints import (
    MetaProperties,
    write_clean_shutdown,
    write_meta_properties,
    write_offsets,
)
from odradek.storage.filenames import CLEAN_SHUTDOWN, CLEANER_OFFSET_CHECKPOINT, LOCK
from odradek.storage.files import Files, OpenFile
from odradek.storage.retention import delete_old_segments
from odradek.tools.verify import job, quick_records
from odradek.tools.verify.findings import Finding, Kind, Severity, Totals
from odradek.tools.verify.job import (
    VerifyReport,
    VerifySettings,
    divide_into_tasks,
    run_verify,
)
from odradek.tools.verify.logs import LogItem
from tests.support.archives import InThisProcess
from tests.support.content_limits import scale_down
from tests.support.dirty_logs import Writer, clean
from tests.support.log_box import NOW_MS, LogBox, batch_of, put
from tests.support.log_files import end_transaction, used_log, v2_batches
from tests.support.old_logs import aged_entries, lay_down

META = MetaProperties("c", 1, b"d" * 16)
GOLDEN = Path(__file__).resolve().parents[1] / "golden"


@pytest.fixture(scope="module")
def used(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A log directory that was stopped cleanly: codecs, transactions, sequences, two epochs."""
    root = tmp_path_factory.mktemp("data")
    used_log(root)
    write_meta_properties(Files(), root, META)
    write_clean_shutdown(Files(), root, 7)
    return root


@pytest.fixture
def data(used: Path, tmp_path: Path) -> Path:
    """A copy of it, to be damaged."""
    return Path(shutil.copytree(used, tmp_path / "data"))


def verified(
    root: Path,
    *,
    deep: bool = False,
    topics: TopicChoice | None = None,
    files: Files | None = None,
) -> VerifyReport:
    write_meta_properties(Files(), root, META)
    settings = VerifySettings(log_directories=[root], deep=deep, topics=topics, now_ms=NOW_MS)
    return run_verify(InThisProcess(), settings, files=files)


def findings(report: VerifyReport) -> list[Finding]:
    """Those of logs."""
    return [each for each in report.findings if each.path.parent.name == "orders-0"]


def problems(report: VerifyReport) -> list[Finding]:
    return [each for each in report.findings if each.severity is Severity.PROBLEM]


def orders(report: VerifyReport) -> Totals:
    return report.topics["orders"]


def kinds(report: VerifyReport) -> set[Kind]:
    return {each.kind for each in problems(report)}


def segments(data: Path, suffix: str = ".log") -> list[Path]:
    return sorted((data / "orders-0").glob(f"*{suffix}"))


def batches(path: Path) -> list[bytes]:
    data, found = path.read_bytes(), []
    while data:
        size = read_header(data).size_bytes
        found.append(data[:size])
        data = data[size:]
    return found


def rewrite(path: Path, changed: list[bytes]) -> None:
    path.write_bytes(b"".join(changed))


def flip(path: Path, at: int, bit: int = 0) -> None:
    data = bytearray(path.read_bytes())
    data[at] ^= 1 << bit
    path.write_bytes(data)


def append(path: Path, data: bytes) -> None:
    path.write_bytes(path.read_bytes() + data)


def patch(batch: bytes, at: int, data: bytes, *, stamped: bool = True) -> bytes:
    """The batch with other bytes in its header, and a right checksum."""
    changed = bytearray(batch)
    changed[at : at + len(data)] = data
    if stamped:
        stamp_crc(changed)
    return bytes(changed)


# --- logs without findings


@pytest.mark.parametrize("deep", [False, True])
def test_a_directory_of_a_stopped_broker_has_no_findings(used: Path, deep: bool) -> None:
    report = verified(used, deep=deep)
    assert report.findings == []
    verdict = orders(report)
    assert verdict.segments == len(segments(used)) > 3
    assert verdict.batches == sum(len(batches(path)) for path in segments(used))
    assert verdict.log_bytes == sum(path.stat().st_size for path in segments(used))
    assert verdict.producers == 1
    assert verdict.cleaned_offsets == 0


@pytest.mark.parametrize("seed", range(4))
def test_a_cleaned_log_has_no_findings_and_its_gaps_are_counted(tmp_path: Path, seed: int) -> None:
    box = LogBox(
        tmp_path,
        segment_bytes=1500,
        index_interval_bytes=200,
        cleanup_policy=("compact",),
        delete_retention_ms=0,
    )
    log = box.open()
    writer = Writer(seed, codecs=tuple(CompressionType), null_keys=False)
    writer.write(log, 150)
    for later_ms in (1, 10**6):
        noted = clean(log, NOW_MS + later_ms).end_offset
        writer.write(log, 40)
    log.close(NOW_MS)
    write_offsets(Files(), tmp_path / CLEANER_OFFSET_CHECKPOINT, {("orders", 0): noted})
    report = verified(tmp_path, deep=True)
    assert problems(report) == []
    assert orders(report).cleaned_offsets > 0


def test_old_message_formats_are_checked(tmp_path: Path) -> None:
    entries = aged_entries()
    directory = tmp_path / "orders-0"
    lay_down(directory, entries)
    path = next(directory.glob("*.log"))
    report = verified(tmp_path, deep=True)
    assert problems(report) == []
    assert orders(report).batches == len(entries)
    assert orders(report).records == sum(len(entry.records) for entry in entries)
    flip(path, 20)
    assert kinds(verified(tmp_path)) == {Kind.CHECKSUM}


def test_batches_of_every_kind_have_only_the_findings_that_were_planted(tmp_path: Path) -> None:
    box = LogBox(tmp_path)
    box.directory.mkdir()
    box.path(0, ".log").write_bytes(v2_batches())
    report = verified(tmp_path, deep=True)
    found = {(each.kind, each.severity): 1 + each.more for each in findings(report)}
    # Each of the five transactional batches has the same sequence, and there are no indexes.
    assert found[Kind.SEQUENCE, Severity.PROBLEM] == 4
    assert found[Kind.TRANSACTION, Severity.PROBLEM] == 1
    assert found.keys() <= {
        (Kind.SEQUENCE, Severity.PROBLEM),
        (Kind.TRANSACTION, Severity.PROBLEM),
        (Kind.INDEX, Severity.NOTE),
        (Kind.RECORDS, Severity.NOTE),
    }
    assert orders(report).batches == len(batches(box.path(0, ".log")))


def test_a_consumer_offsets_log_of_apache_kafka_has_no_problems(tmp_path: Path) -> None:
    directory = tmp_path / "__consumer_offsets-0"
    directory.mkdir()
    shutil.copy(GOLDEN / "groups" / f"{0:020}.log", directory)
    report = verified(tmp_path, deep=True)
    assert problems(report) == []
    assert report.totals.records > 10


def test_a_segment_in_use_may_end_in_a_torn_batch_in_zeros_and_without_indexes(data: Path) -> None:
    (data / ".kafka_cleanshutdown").unlink()
    last = segments(data)[-1]
    whole = last.read_bytes()
    last.with_suffix(".index").unlink()
    last.with_suffix(".timeindex").unlink()
    for tail in (batch_of(b"torn")[:50], bytes(3000), b"\0" * 7):
        last.write_bytes(whole + tail)
        assert problems(verified(data)) == []
    write_clean_shutdown(Files(), data, 7)
    assert kinds(verified(data)) == {Kind.STRUCTURE, Kind.INDEX}


def test_the_unused_part_of_an_active_index_is_ignored(data: Path) -> None:
    (data / ".kafka_cleanshutdown").unlink()
    for suffix in (".index", ".timeindex"):
        with segments(data)[-1].with_suffix(suffix).open("ab") as file:
            file.write(bytes(1200))
    assert problems(verified(data)) == []


def test_a_log_without_records_may_have_indexes_that_were_not_cut(tmp_path: Path) -> None:
    """A power cut loses that a clean stop cut them. The first append empties them."""
    write_clean_shutdown(Files(), tmp_path, 7)
    directory = tmp_path / "orders-0"
    directory.mkdir()
    (directory / f"{0:020}.log").write_bytes(b"")
    for suffix in (".index", ".timeindex"):
        (directory / f"{0:020}{suffix}").write_bytes(bytes(240))
    assert problems(verified(tmp_path)) == []


# --- what is damaged


Damage = Callable[[Path], object]


def _first(data: Path) -> Path:
    return segments(data)[1]


def _changed(change: Callable[[list[bytes]], list[bytes]]) -> Damage:
    def damage(data: Path) -> None:
        path = _first(data)
        rewrite(path, change(batches(path)))

    return damage


def _with_epoch(path: Path, epoch: int) -> None:
    first, *others = batches(path)
    rewrite(path, [patch(first, 12, struct.pack(">i", epoch), stamped=False), *others])


DAMAGES: dict[str, tuple[Damage, set[Kind], str]] = {
    "a flipped bit": (
        lambda data: flip(_first(data), 64),
        {Kind.CHECKSUM},
        "do not match the stored CRC",
    ),
    "an impossible size": (
        _changed(lambda all_: [all_[0], patch(all_[1], 8, b"\0\0\0\5"), *all_[2:]]),
        {Kind.STRUCTURE},
        "too small",
    ),
    "an unknown magic": (
        _changed(lambda all_: [all_[0], patch(all_[1], 16, b"\7"), *all_[2:]]),
        {Kind.STRUCTURE},
        "no batch has magic 7",
    ),
    "offsets below zero": (
        _changed(lambda all_: [all_[0], patch(all_[1], 23, b"\xff\xff\xff\xff"), *all_[2:]]),
        {Kind.STRUCTURE},
        "its offsets are",
    ),
    "an unknown codec": (
        _changed(lambda all_: [all_[0], patch(all_[1], 21, b"\0\6"), *all_[2:]]),
        {Kind.STRUCTURE},
        "compression id 6",
    ),
    "too many records": (
        _changed(lambda all_: [patch(all_[0], 57, b"\0\0\0\x63"), *all_[1:]]),
        {Kind.STRUCTURE},
        "99 records in",
    ),
    "a batch that is missing": (
        _changed(lambda all_: [all_[0], *all_[2:]]),
        {Kind.GAP, Kind.INDEX},
        "are missing",
    ),
    "batches that changed places": (
        _changed(lambda all_: [all_[1], all_[0], *all_[2:]]),
        {Kind.ORDER, Kind.INDEX, Kind.GAP},
        "expected",
    ),
    "a batch that is there twice": (
        _changed(lambda all_: [*all_, all_[-1]]),
        {Kind.ORDER},
        "expected",
    ),
    "a torn end of a closed segment": (
        _changed(lambda all_: [*all_, all_[-1][:40]]),
        {Kind.STRUCTURE},
        "40 bytes after",
    ),
    "an epoch that goes back": (
        lambda data: _with_epoch(segments(data)[-1], 0),
        {Kind.ORDER, Kind.EPOCH},
        "leader epoch 0 follows 3",
    ),
    "a lost segment": (
        lambda data: [path.unlink() for path in (data / "orders-0").glob(f"{_first(data).stem}.*")],
        {Kind.GAP},
        "are missing",
    ),
    "a wrong entry of an offset index": (
        lambda data: flip(_first(data).with_suffix(".index"), 7),
        {Kind.INDEX},
        "no batch begins there",
    ),
    "a wrong offset in an offset index": (
        lambda data: flip(_first(data).with_suffix(".index"), 3),
        {Kind.INDEX},
        "that batch ends at",
    ),
    "a wrong entry of a time index": (
        lambda data: flip(_first(data).with_suffix(".timeindex"), 7),
        {Kind.INDEX},
        "up to there the newest is",
    ),
    "entries that are not ascending": (
        lambda data: append(_first(data).with_suffix(".index"), bytes(8)),
        {Kind.INDEX},
        "do not match the log",
    ),
    "an index that ends after the log": (
        lambda data: append(_first(data).with_suffix(".index"), struct.pack(">ii", 900, 99_000)),
        {Kind.INDEX},
        "after the end of the log",
    ),
    "a transaction index that begins too late": (
        lambda data: flip(segments(data, ".txnindex")[0], 2 + 8 + 6, 0),
        {Kind.TRANSACTION},
        "",
    ),
}


@pytest.mark.parametrize("name", DAMAGES)
def test_damage_is_found(data: Path, name: str) -> None:
    damage, expected, words = DAMAGES[name]
    damage(data)
    report = verified(data)
    assert problems(report), report
    assert kinds(report) <= expected, report.findings
    assert any(words in each.what for each in problems(report)), report.findings


def test_an_index_may_have_one_entry_for_all_batches_of_an_append(tmp_path: Path) -> None:
    """Apache Kafka up to 4.0.0 writes it so: the last offset, and where the first batch begins."""
    box = LogBox(tmp_path)
    _fill(box, 9)
    size = len(batches(box.path(0, ".log"))[0])
    assert _wrong_entries(box, (3, 2 * size), (8, 5 * size)) == []
    [too_early] = _wrong_entries(box, (3, 4 * size))
    assert "that batch ends at 4" in too_early
    [after_the_end] = _wrong_entries(box, (9, 5 * size))
    assert "that batch ends at 5" in after_the_end


@pytest.mark.parametrize("first", [0, 1])
def test_an_index_entry_of_cleaned_batches_may_be_inside_the_last(
    tmp_path: Path, first: int
) -> None:
    """The cleaner of Apache Kafka up to 4.0.0 writes it so, of the records that are left."""
    box = LogBox(tmp_path)
    _fill(box, 5)
    before, *_, after = batches(box.path(0, ".log"))
    cleaned = patch(batch_of(b"v", base_offset=1), 23, struct.pack(">i", 2))
    rewrite(box.path(0, ".log"), [before, cleaned, after])
    position = first * len(before)
    assert _wrong_entries(box, (1, position)) == []
    [before_the_batch] = _wrong_entries(box, (0, len(before)))
    assert "that batch ends at 3" in before_the_batch


def _fill(box: LogBox, count: int) -> None:
    log = box.open()
    for _ in range(count):
        put(log, b"v")
    log.close(NOW_MS)
    write_clean_shutdown(Files(), box.directory.parent, 7)


def _wrong_entries(box: LogBox, *entries: tuple[int, int]) -> list[str]:
    """The problems if the offset index has these entries: offset and position."""
    packed = b"".join(struct.pack(">ii", *entry) for entry in entries)
    box.path(0, ".index").write_bytes(packed)
    return [each.what for each in problems(verified(box.directory.parent))]


def test_what_recovery_does_not_check_is_not_cut(data: Path) -> None:
    _with_epoch(segments(data)[-1], 0)
    (data / CLEAN_SHUTDOWN).unlink()
    (found,) = [each for each in problems(verified(data)) if each.kind is Kind.ORDER]
    assert found.at_start == "recovery does not check this: the data is served as it is"


def test_no_bit_of_a_batch_can_be_flipped_unseen(tmp_path: Path) -> None:
    box = LogBox(tmp_path, index_interval_bytes=1)
    log = box.open()
    log.become_leader(0)
    for number, value in enumerate((b"a", b"b")):
        log.append(batch_of(value, producer=(4, 0, number)), now_ms=NOW_MS)
    log.close(NOW_MS)
    write_clean_shutdown(Files(), tmp_path, 7)
    path = box.path(0, ".log")
    first = len(batches(path)[0])
    unseen = []
    for at in range(first):
        flip(path, at)
        if not findings(verified(tmp_path)):
            unseen.append(at)
        flip(path, at)
    # Neither the offset nor the epoch is under the checksum: what follows tells.
    assert unseen == []


def test_broken_batches_are_reported_with_position_and_the_rest_is_checked(data: Path) -> None:
    path = _first(data)
    sound = batches(path)
    at, offset = len(sound[0]), read_header(sound[1]).base_offset
    flip(path, at + 70)
    [found] = problems(verified(data))
    assert (found.path, found.position, found.offset) == (path, at, offset)


def test_of_many_findings_of_a_kind_the_first_is_listed_and_others_counted(
    data: Path,
) -> None:
    path = max(segments(data), key=lambda each: len(batches(each)))
    found = batches(path)
    rewrite(path, [patch(each, len(each) - 1, b"\x55", stamped=False) for each in found])
    report = verified(data)
    [listed] = [each for each in problems(report) if each.kind is Kind.CHECKSUM]
    assert (listed.position, listed.more) == (0, len(found) - 1)


def test_many_batches_at_once_are_checked_like_one_after_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = LogBox(tmp_path).path(0, ".log")
    path.parent.mkdir()
    header = (("h", b"x"),)
    records = [Record(b"k", bytes([number]), NOW_MS, headers=header) for number in range(3)]
    first = bytes(build_batch(records))
    others = bytes(build_batch(records, base_offset=3, compression=CompressionType.GZIP))
    found = set()
    for at in range(HEADER_BYTES - 4, len(first)):  # from the count of records on
        for change in (1, 0x80):
            broken = patch(first, at, bytes([first[at] ^ change]))
            path.write_bytes(broken + others)
            monkeypatch.setattr(quick_records, "is_installed", lambda: True)
            quick = verified(tmp_path, deep=True)
            monkeypatch.setattr(quick_records, "is_installed", lambda: False)
            assert verified(tmp_path, deep=True) == quick
            found |= {each.what for each in findings(quick) if each.kind is Kind.RECORDS}
    assert len(found) > 10


@pytest.mark.parametrize("is_quick", [False, True])
def test_records_before_the_base_offset_of_their_batch_are_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_quick: bool
) -> None:
    monkeypatch.setattr(quick_records, "is_installed", lambda: is_quick)
    path = LogBox(tmp_path).path(0, ".log")
    path.parent.mkdir()
    first, second = batch_of(b"v"), batch_of(b"w", base_offset=1)
    minus_one = b"\1"  # as the record's offset delta
    path.write_bytes(first + patch(second, HEADER_BYTES + 3, minus_one))
    [found] = problems(verified(tmp_path, deep=True))
    assert found.what == "offset 0 where one from 1 to 1 was expected"


def test_a_batch_that_unpacks_to_very_much_is_a_note(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(quick_records, "is_installed", lambda: False)
    scale_down(monkeypatch)
    path = LogBox(tmp_path).path(0, ".log")
    path.parent.mkdir()
    path.write_bytes(batch_of(b"v" * 1000, compression=CompressionType.GZIP))
    report = verified(tmp_path, deep=True)
    assert problems(report) == []
    [found] = [each for each in findings(report) if each.kind is Kind.RECORDS]
    assert "more than 256 bytes" in found.what


# --- gaps of a cleaner


def _with_a_gap(root: Path) -> LogBox:
    box = LogBox(root)
    log = box.open()
    for _ in range(6):
        put(log, b"v")
    log.close(NOW_MS)
    all_ = batches(box.path(0, ".log"))
    rewrite(box.path(0, ".log"), [*all_[:2], *all_[3:]])
    return box


def test_a_gap_before_the_cleaners_checkpoint_is_no_finding(tmp_path: Path) -> None:
    _with_a_gap(tmp_path)
    assert kinds(verified(tmp_path)) == {Kind.GAP}
    write_offsets(Files(), tmp_path / CLEANER_OFFSET_CHECKPOINT, {("orders", 0): 6})
    report = verified(tmp_path)
    assert problems(report) == []
    assert orders(report).cleaned_offsets == 1


def test_a_gap_is_the_cleaners_where_a_batch_has_fewer_records_than_offsets(tmp_path: Path) -> None:
    box = _with_a_gap(tmp_path)
    all_ = batches(box.path(0, ".log"))
    sparse = patch(batch_of(b"v", base_offset=6), 23, struct.pack(">i", 2))
    rewrite(box.path(0, ".log"), [*all_, sparse])
    report = verified(tmp_path)
    assert problems(report) == []


# --- sequences and transactions


def _producers_log(root: Path, sequences: list[tuple[int, int]], stamps: list[int]) -> None:
    box = LogBox(root)
    box.directory.mkdir(parents=True)
    path = box.path(0, ".log")
    path.write_bytes(
        b"".join(
            batch_of(b"v", timestamps=[stamp], producer=(4, epoch, sequence), base_offset=offset)
            for offset, ((epoch, sequence), stamp) in enumerate(zip(sequences, stamps, strict=True))
        )
    )


@pytest.mark.parametrize(
    ("sequences", "words"),
    [
        ([(0, 7), (0, 8), (0, 9)], None),
        ([(0, 2**31 - 1), (0, 0), (0, 1)], None),
        ([(0, 5), (1, 0), (1, 1)], None),
        ([(0, 5), (0, 7)], "sequence 7 of epoch 0 after the batch at offset 0; expected 6"),
        ([(0, 5), (0, 5)], "sequence 5"),
        ([(0, 5), (0, 4)], "sequence 4"),
        ([(0, 5), (1, 6)], "expected 0"),
        ([(1, 5), (0, 6)], "epoch 0"),
    ],
)
@pytest.mark.parametrize("split", [False, True])
def test_sequences_must_continue(
    tmp_path: Path, sequences: list[tuple[int, int]], words: str | None, split: bool
) -> None:
    _producers_log(tmp_path, sequences, [NOW_MS] * len(sequences))
    if split:
        box = LogBox(tmp_path)
        first, *others = batches(box.path(0, ".log"))
        rewrite(box.path(0, ".log"), [first])
        rewrite(box.path(1, ".log"), others)
        for suffix in (".index", ".timeindex"):
            box.path(0, suffix).touch()
    report = verified(tmp_path)
    assert kinds(report) == (set() if words is None else {Kind.SEQUENCE}), report.findings
    assert all(words is not None and words in each.what for each in problems(report))


def test_a_producer_that_was_silent_for_a_day_may_have_been_forgotten(tmp_path: Path) -> None:
    _producers_log(tmp_path, [(0, 5), (0, 99)], [NOW_MS, NOW_MS + 86_400_000])
    assert problems(verified(tmp_path)) == []


def test_sequences_may_skip_where_the_cleaner_was_and_never_go_back(tmp_path: Path) -> None:
    _producers_log(tmp_path, [(0, 5), (0, 9)], [NOW_MS, NOW_MS])
    write_offsets(Files(), tmp_path / CLEANER_OFFSET_CHECKPOINT, {("orders", 0): 2})
    assert problems(verified(tmp_path)) == []
    _producers_log(tmp_path / "b", [(0, 5), (0, 3)], [NOW_MS, NOW_MS])
    write_offsets(Files(), tmp_path / "b" / CLEANER_OFFSET_CHECKPOINT, {("orders", 0): 2})
    assert kinds(verified(tmp_path / "b")) == {Kind.SEQUENCE}


def test_a_transaction_over_several_segments_must_be_in_the_index_of_its_marker(
    tmp_path: Path,
) -> None:
    box = LogBox(tmp_path, segment_bytes=200)
    log = box.open()
    for number in range(5):
        batch = batch_of(b"t" * 90, producer=(9, 0, number), is_transactional=True)
        log.append(batch, now_ms=NOW_MS, transaction_verified=True)
    end_transaction(log, 9, aborts=True)
    log.append(
        batch_of(b"open", producer=(9, 0, 5), is_transactional=True),
        now_ms=NOW_MS,
        transaction_verified=True,
    )
    log.close(NOW_MS)
    report = verified(tmp_path)
    assert problems(report) == []
    assert orders(report).open_transactions == 1
    [index] = segments(tmp_path, ".txnindex")
    index.write_bytes(index.read_bytes()[:10] + struct.pack(">q", 3) + index.read_bytes()[18:])
    [found] = problems(verified(tmp_path))
    assert (found.kind, found.path) == (Kind.TRANSACTION, index)
    assert "the first offset 3, in the log 0" in found.what


def test_an_index_entry_of_a_committed_transaction_is_a_problem(tmp_path: Path) -> None:
    box = LogBox(tmp_path)
    log = box.open()
    batch = batch_of(b"t", producer=(9, 0, 0), is_transactional=True)
    log.append(batch, now_ms=NOW_MS, transaction_verified=True)
    end_transaction(log, 9, aborts=False)
    log.close(NOW_MS)
    box.path(0, ".txnindex").write_bytes(struct.pack(">hqqqq", 0, 9, 0, 1, 1))
    [found] = problems(verified(tmp_path))
    assert "has no abort marker at 1" in found.what


def test_an_unreadable_marker_is_a_problem(tmp_path: Path) -> None:
    box = LogBox(tmp_path)
    box.directory.mkdir()
    marker = build_batch([Record(b"\0", b"", NOW_MS)], producer_id=9, is_control=True)
    unknown = Record(struct.pack(">hh", 0, 99), b"", NOW_MS)
    later = build_batch([unknown], base_offset=1, producer_id=9, is_control=True)
    box.path(0, ".log").write_bytes(bytes(marker + later))
    found = [each for each in verified(tmp_path).findings if each.kind is Kind.TRANSACTION]
    first, second = found
    assert (first.severity, first.kind) == (Severity.PROBLEM, Kind.TRANSACTION)
    assert (second.severity, second.what) == (Severity.NOTE, "a marker of unknown kind")


def test_logs_are_shared_out_by_bytes() -> None:
    logs = {LogItem(0, ("orders", number)): size << 20 for number, size in enumerate((40, 20, 30))}
    first, second, third = logs
    assert divide_into_tasks(logs, 2) == [[first], [third], [second]]
    small = dict.fromkeys(logs, 1000)
    assert divide_into_tasks(small, 2) == [[first, second, third]], "it is no work for two"
    many = {LogItem(0, ("orders", number)): 40 << 20 for number in range(100)}
    assert [len(task) for task in divide_into_tasks(many, 1)] == [25] * 4
    assert divide_into_tasks({}, 2) == []


def test_processes_find_what_one_finds(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(1, 5):
        shutil.copytree(data / "orders-0", data / f"orders-{number}")
    flip(data / "orders-3" / segments(data)[1].name, 100)
    settings = VerifySettings(log_directories=[data], now_ms=NOW_MS)
    here = run_verify(ProcessTasks(2), settings)
    assert [each.path.parent.name for each in problems(here)] == ["orders-3"]
    monkeypatch.setattr(job, "_SMALLEST_TASK_BYTES", 1)
    assert run_verify(ProcessTasks(2), settings) == here


# --- a log that is being written


class BusyFiles(Files):
    """Something is done in front of each opening of a segment, for the first so many."""

    def __init__(self, meddle: Callable[[int], object], times: int) -> None:
        super().__init__()
        self._meddle, self._numbers = meddle, iter(range(times))

    def open(self, path: Path, *, read_only: bool = False) -> OpenFile:
        if path.suffix == ".log":
            for number in islice(self._numbers, 1):
                self._meddle(number)
        return super().open(path, read_only=read_only)


@pytest.fixture
def locked(tmp_path: Path) -> Iterator[Path]:
    """A directory that a broker has locked."""
    lock = Files().lock(tmp_path / LOCK)
    yield tmp_path
    lock.release()


def test_a_broker_that_appends_rolls_and_deletes_meanwhile_raises_no_alarm(locked: Path) -> None:
    box = LogBox(locked, segment_bytes=2000, index_interval_bytes=100, retention_bytes=12_000)
    log = box.open()
    writer = Writer(3, codecs=tuple(CompressionType))
    writer.write(log, 100)

    def meddle(number: int) -> None:
        writer.write(log, 12)
        if number % 3 == 0:
            delete_old_segments(log, NOW_MS)

    report = verified(locked, files=BusyFiles(meddle, 40))
    assert problems(report) == []
    assert orders(report).segments > 2


def test_a_cleaner_that_replaces_segments_meanwhile_raises_no_alarm(locked: Path) -> None:
    box = LogBox(locked, segment_bytes=1500, index_interval_bytes=200, cleanup_policy=("compact",))
    log = box.open()
    writer = Writer(5, null_keys=False)
    writer.write(log, 150)

    def meddle(number: int) -> None:
        if number % 4 == 2:
            writer.write(log, 30)
            end = clean(log, NOW_MS + number).end_offset
            write_offsets(Files(), locked / CLEANER_OFFSET_CHECKPOINT, {("orders", 0): end})

    assert problems(verified(locked, files=BusyFiles(meddle, 12))) == []


def test_what_only_the_first_look_finds_is_not_reported(data: Path) -> None:
    path = _first(data)
    sound = path.read_bytes()
    flip(path, 80)
    looks = []

    def heal(number: int) -> None:
        looks.append(number)
        if len(looks) > len(segments(data)):  # the second look begins
            path.write_bytes(sound)

    assert problems(verified(data, files=BusyFiles(heal, 100))) == []


def test_topics_can_be_chosen(data: Path) -> None:
    shutil.copytree(data / "orders-0", data / "others-0")
    assert list(verified(data).topics) == ["orders", "others"]
    report = verified(data, topics=TopicChoice(names=["others"]))
    assert [(name, each.partitions) for name, each in report.topics.items()] == [("others", 1)]
