"""`odradek pipeline verify` without Spark: every damage is found, and nothing else."""

import shutil
import struct
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from odradek.pipeline.jobs.topic_choice import TopicChoice
from odradek.pipeline.jobs.verify.findings import Finding, Kind, Severity
from odradek.pipeline.jobs.verify.job import VerifyReport, VerifySettings, plan_verify, run_verify
from odradek.pipeline.jobs.verify.plan import divide_into_tasks
from odradek.protocol.batch_header import read_header, stamp_crc
from odradek.protocol.compression import CompressionType
from odradek.protocol.record import Record
from odradek.protocol.record_batch import build_batch
from odradek.storage.checkpoints import write_clean_shutdown, write_offsets
from odradek.storage.filenames import CLEANER_OFFSET_CHECKPOINT, LOCK
from odradek.storage.files import Files
from odradek.storage.retention import delete_old_segments
from tests.support.archives import InThisProcess
from tests.support.dirty_logs import Writer, clean
from tests.support.log_box import NOW_MS, LogBox, batch_of, put
from tests.support.log_files import end_transaction, used_log, v2_batches
from tests.support.old_logs import aged_entries, lay_down

GOLDEN = Path(__file__).resolve().parents[2] / "golden"


@pytest.fixture(scope="module")
def used(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A log directory that was stopped cleanly: codecs, transactions, sequences, two epochs."""
    root = tmp_path_factory.mktemp("data")
    used_log(root)
    write_clean_shutdown(Files(), root, 7)
    return root


@pytest.fixture
def data(used: Path, tmp_path: Path) -> Path:
    """A copy of it, to be damaged."""
    return Path(shutil.copytree(used, tmp_path / "data"))


def verified(*roots: Path, deep: bool = False, topics: TopicChoice | None = None) -> VerifyReport:
    settings = VerifySettings(log_directories=roots, deep=deep, topics=topics)
    return run_verify(InThisProcess(), settings)


def problems(report: VerifyReport) -> list[Finding]:
    return [each for each in report.findings if each.severity is Severity.PROBLEM]


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
    [verdict] = report.partitions
    assert verdict.segments == len(segments(used)) > 3
    assert verdict.batches == sum(len(batches(path)) for path in segments(used))
    assert verdict.log_bytes == sum(path.stat().st_size for path in segments(used))
    assert verdict.producers == 1
    assert verdict.cleaned_gaps == 0


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
    assert [each for each in report.findings if not each.path.endswith(".deleted")] == []
    [verdict] = report.partitions
    assert verdict.cleaned_to >= noted
    assert verdict.cleaned_gaps > 0
    assert verdict.cleaned_offsets >= verdict.cleaned_gaps


def test_old_message_formats_are_checked(tmp_path: Path) -> None:
    entries = aged_entries()
    directory = tmp_path / "orders-0"
    lay_down(directory, entries)
    path = next(directory.glob("*.log"))
    report = verified(tmp_path, deep=True)
    assert problems(report) == []
    assert report.partitions[0].batches == len(entries)
    flip(path, 20)
    assert kinds(verified(tmp_path)) == {Kind.CHECKSUM}


def test_batches_of_every_kind_have_only_the_findings_that_were_planted(tmp_path: Path) -> None:
    box = LogBox(tmp_path)
    box.directory.mkdir()
    box.path(0, ".log").write_bytes(v2_batches())
    report = verified(tmp_path, deep=True)
    # Each of the five transactional batches has the same sequence, and no .txnindex lies there.
    found = Counter((each.kind, each.severity) for each in report.findings)
    assert found == {
        (Kind.SEQUENCE, Severity.PROBLEM): 4,
        (Kind.TRANSACTION, Severity.PROBLEM): 1,
    }
    assert report.partitions[0].batches == len(batches(box.path(0, ".log")))


@pytest.mark.parametrize("form", ["dynamic", "static", "formatted"])
def test_the_metadata_log_of_apache_kafka_lacks_only_its_indexes(form: str) -> None:
    report = verified(GOLDEN / "metadata" / form, deep=True)
    found = {(each.kind, Path(each.path).suffix, each.what) for each in problems(report)}
    missing = {(Kind.INDEX, suffix, "the index is missing") for suffix in (".index", ".timeindex")}
    # The golden files leave out the indexes; what was only formatted has no segment.
    assert found == (set() if form == "formatted" else missing)


def test_a_consumer_offsets_log_of_apache_kafka_has_no_findings(tmp_path: Path) -> None:
    directory = tmp_path / "__consumer_offsets-0"
    directory.mkdir()
    shutil.copy(GOLDEN / "groups" / f"{0:020}.log", directory)
    report = verified(tmp_path, deep=True)
    assert report.findings == []
    assert report.partitions[0].records > 10


def test_a_segment_in_use_may_end_in_a_torn_batch_in_zeros_and_without_indexes(data: Path) -> None:
    (data / ".kafka_cleanshutdown").unlink()
    last = segments(data)[-1]
    whole = last.read_bytes()
    last.with_suffix(".index").unlink()
    last.with_suffix(".timeindex").unlink()
    for tail in (batch_of(b"torn")[:50], bytes(3000), b"\0" * 7):
        last.write_bytes(whole + tail)
        assert verified(data).findings == []
    write_clean_shutdown(Files(), data, 7)
    assert kinds(verified(data)) == {Kind.STRUCTURE, Kind.INDEX}


def test_the_unused_part_of_an_active_index_is_ignored(data: Path) -> None:
    (data / ".kafka_cleanshutdown").unlink()
    for suffix in (".index", ".timeindex"):
        with segments(data)[-1].with_suffix(suffix).open("ab") as file:
            file.write(bytes(1200))
    assert verified(data).findings == []


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


def _cut_entry(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-3])


DAMAGES: dict[str, tuple[Damage, set[Kind], str]] = {
    "a flipped bit": (lambda data: flip(_first(data), 64), {Kind.CHECKSUM}, "not what was"),
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
        {Kind.ORDER},
        "leader epoch 0 follows 3",
    ),
    "a lost segment": (
        lambda data: [path.unlink() for path in (data / "orders-0").glob(f"{_first(data).stem}.*")],
        {Kind.GAP},
        "are missing",
    ),
    "a lost index": (
        lambda data: _first(data).with_suffix(".index").unlink(),
        {Kind.INDEX},
        "missing",
    ),
    "a wrong entry of an offset index": (
        lambda data: flip(_first(data).with_suffix(".index"), 7),
        {Kind.INDEX},
        "no batch begins at this position",
    ),
    "a wrong offset in an offset index": (
        lambda data: flip(_first(data).with_suffix(".index"), 3),
        {Kind.INDEX},
        "the batch ends at offset",
    ),
    "a wrong entry of a time index": (
        lambda data: flip(_first(data).with_suffix(".timeindex"), 7),
        {Kind.INDEX},
        "the largest timestamp up to this offset is",
    ),
    "entries that are not ascending": (
        lambda data: append(_first(data).with_suffix(".index"), bytes(8)),
        {Kind.INDEX},
        "are not ascending",
    ),
    "an index that ends after the log": (
        lambda data: append(_first(data).with_suffix(".index"), struct.pack(">ii", 900, 99_000)),
        {Kind.INDEX},
        "after the end of the log",
    ),
    "a cut index": (
        lambda data: _cut_entry(_first(data).with_suffix(".timeindex")),
        {Kind.INDEX},
        "not a multiple",
    ),
    "a lost transaction index": (
        lambda data: segments(data, ".txnindex")[0].unlink(),
        {Kind.TRANSACTION},
        "was aborted and is not in the index",
    ),
    "a transaction index that begins too late": (
        lambda data: flip(segments(data, ".txnindex")[0], 2 + 8 + 6, 0),
        {Kind.TRANSACTION},
        "",
    ),
    "a garbled snapshot": (
        lambda data: flip(segments(data, ".snapshot")[0], 20),
        {Kind.SNAPSHOT},
        "cannot be read",
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
        if not verified(tmp_path).problems:
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
    assert (found.path, found.position, found.offset) == (str(path), at, offset)


def test_of_many_findings_of_a_kind_the_first_are_listed_and_all_are_counted(data: Path) -> None:
    path = max(segments(data), key=lambda each: len(batches(each)))
    found = batches(path)
    rewrite(path, [patch(each, len(each) - 1, b"\x55", stamped=False) for each in found])
    report = verified(data)
    listed = [each for each in problems(report) if each.kind is Kind.CHECKSUM]
    assert len(listed) == 5 < len(found)
    assert sum(1 + each.more for each in listed) == len(found) == report.problems


def test_records_are_checked_if_deep(tmp_path: Path) -> None:
    box = LogBox(tmp_path)
    log = box.open()
    put(log, b"v" * 30, b"w" * 30)
    put(log, b"x")
    log.close(NOW_MS)
    first, second = batches(box.path(0, ".log"))
    rewrite(box.path(0, ".log"), [patch(first, 61, b"\x03"), second])
    assert verified(tmp_path).findings == []
    [found] = problems(verified(tmp_path, deep=True))
    assert (found.kind, found.position, found.offset) == (Kind.RECORDS, 0, 0)


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
    assert report.findings == []
    assert (report.partitions[0].cleaned_gaps, report.partitions[0].cleaned_offsets) == (1, 1)


def test_a_gap_is_the_cleaners_where_a_batch_has_fewer_records_than_offsets(tmp_path: Path) -> None:
    box = _with_a_gap(tmp_path)
    all_ = batches(box.path(0, ".log"))
    sparse = patch(batch_of(b"v", base_offset=6), 23, struct.pack(">i", 2))
    rewrite(box.path(0, ".log"), [*all_, sparse])
    report = verified(tmp_path)
    assert report.findings == []
    assert report.partitions[0].cleaned_to == 9


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
    assert all(words is not None and words in each.what for each in report.findings)


def test_a_producer_that_was_silent_for_a_day_may_have_been_forgotten(tmp_path: Path) -> None:
    _producers_log(tmp_path, [(0, 5), (0, 99)], [NOW_MS, NOW_MS + 86_400_000])
    assert verified(tmp_path).findings == []


def test_sequences_may_skip_where_the_cleaner_was_and_never_go_back(tmp_path: Path) -> None:
    _producers_log(tmp_path, [(0, 5), (0, 9)], [NOW_MS, NOW_MS])
    write_offsets(Files(), tmp_path / CLEANER_OFFSET_CHECKPOINT, {("orders", 0): 2})
    assert verified(tmp_path).findings == []
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
    assert report.findings == []
    assert report.partitions[0].open_transactions == 1
    [index] = segments(tmp_path, ".txnindex")
    index.write_bytes(index.read_bytes()[:10] + struct.pack(">q", 3) + index.read_bytes()[18:])
    [found] = problems(verified(tmp_path))
    assert (found.kind, found.path) == (Kind.TRANSACTION, str(index))
    assert "from offset 0 to 5" in found.what


def test_an_index_entry_of_a_committed_transaction_is_a_problem(tmp_path: Path) -> None:
    box = LogBox(tmp_path)
    log = box.open()
    batch = batch_of(b"t", producer=(9, 0, 0), is_transactional=True)
    log.append(batch, now_ms=NOW_MS, transaction_verified=True)
    end_transaction(log, 9, aborts=False)
    log.close(NOW_MS)
    box.path(0, ".txnindex").write_bytes(struct.pack(">hqqqq", 0, 9, 0, 1, 1))
    [found] = problems(verified(tmp_path))
    assert "was committed" in found.what


def test_an_unreadable_marker_is_a_problem(tmp_path: Path) -> None:
    box = LogBox(tmp_path)
    box.directory.mkdir()
    marker = build_batch([Record(b"\0", b"", NOW_MS)], producer_id=9, is_control=True)
    unknown = Record(struct.pack(">hh", 0, 99), b"", NOW_MS)
    later = build_batch([unknown], base_offset=1, producer_id=9, is_control=True)
    box.path(0, ".log").write_bytes(bytes(marker + later))
    first, second = verified(tmp_path).findings
    assert (first.severity, first.kind) == (Severity.PROBLEM, Kind.TRANSACTION)
    assert (second.severity, second.what) == (Severity.NOTE, "a marker of unknown kind")


# --- files


def test_unknown_files_are_noted(data: Path) -> None:
    names = (
        f"{96:020}.index",
        f"{99:020}.log.deleted",
        f"{98:020}.log.cleaned",
        f"{3:020}.snapshot",
        "surprise",
    )
    snapshot = segments(data, ".snapshot")[0].read_bytes()
    for name in names:
        (data / "orders-0" / name).write_bytes(snapshot if "snapshot" in name else b"")
    report = verified(data)
    assert report.problems == 0
    assert {Path(each.path).name for each in report.findings} == set(names)
    lock = Files().lock(data / LOCK)
    report = verified(data)
    assert report.is_running
    assert {Path(each.path).name for each in report.findings} == {names[0], *names[3:]}
    lock.release()


def test_segments_are_shared_out_by_bytes(used: Path) -> None:
    [listing] = plan_verify(VerifySettings(log_directories=[used]))
    tasks = divide_into_tasks(listing.segments, 2)
    assert sum(map(len, tasks)) == len(segments(used))
    assert len(tasks) == 1, "a few kilobytes are no work for two"
    assert divide_into_tasks([], 2) == []


# --- a log that is being written


class Meddling(InThisProcess):
    """Something is done to the directory in front of each task, for the first so many tasks."""

    def __init__(self, meddle: Callable[[int], object], times: int) -> None:
        super().__init__()
        self._meddle, self._times, self._done = meddle, times, 0

    def run(self, work, items, description):  # type: ignore[no-untyped-def]  # as above
        singles = [[each] for item in items for each in item]
        for index, item in enumerate(singles):
            if self._done < self._times:
                self._meddle(self._done)
                self._done += 1
            yield index, list(work(item))


def test_a_broker_that_appends_rolls_and_deletes_meanwhile_raises_no_alarm(tmp_path: Path) -> None:
    box = LogBox(tmp_path, segment_bytes=2000, index_interval_bytes=100, retention_bytes=12_000)
    log = box.open()
    writer = Writer(3, codecs=tuple(CompressionType))
    writer.write(log, 100)

    def meddle(number: int) -> None:
        writer.write(log, 12)
        if number % 3 == 0:
            delete_old_segments(log, NOW_MS)

    report = run_verify(Meddling(meddle, 40), VerifySettings(log_directories=[tmp_path]))
    assert problems(report) == []
    assert report.partitions[0].segments > 2


def test_a_cleaner_that_replaces_segments_meanwhile_raises_no_alarm(tmp_path: Path) -> None:
    box = LogBox(
        tmp_path, segment_bytes=1500, index_interval_bytes=200, cleanup_policy=("compact",)
    )
    log = box.open()
    writer = Writer(5, null_keys=False)
    writer.write(log, 150)

    def meddle(number: int) -> None:
        if number % 4 == 2:
            writer.write(log, 30)
            end = clean(log, NOW_MS + number).end_offset
            write_offsets(Files(), tmp_path / CLEANER_OFFSET_CHECKPOINT, {("orders", 0): end})

    settings = VerifySettings(log_directories=[tmp_path])
    report = run_verify(Meddling(meddle, 12), settings)
    assert problems(report) == []
    assert report.unsettled == []


def test_a_topic_that_is_deleted_meanwhile_raises_no_alarm(data: Path) -> None:
    unique = "0" * 32

    def meddle(number: int) -> None:
        if number == 2:
            (data / "orders-0").rename(data / f"orders-0.{unique}-delete")

    report = run_verify(Meddling(meddle, 3), VerifySettings(log_directories=[data]))
    assert problems(report) == []


def test_a_finding_of_only_one_pass_is_not_reported(data: Path) -> None:
    path = _first(data)
    sound = path.read_bytes()
    flip(path, 80)

    class Healing(InThisProcess):
        def run(self, work, items, description):  # type: ignore[no-untyped-def]  # as above
            yield from super().run(work, items, description)
            path.write_bytes(sound)

    report = run_verify(Healing(), VerifySettings(log_directories=[data]))
    assert problems(report) == []


def test_where_each_look_finds_something_else_nothing_is_sure(data: Path) -> None:
    path = _first(data)
    sound = path.read_bytes()

    class Restless(InThisProcess):
        looks = 0

        def run(self, work, items, description):  # type: ignore[no-untyped-def]  # as above
            at = sum(len(batch) for batch in batches(path)[: self.looks]) + 64
            path.write_bytes(sound[:at] + bytes([sound[at] ^ 1]) + sound[at + 1 :])
            self.looks += 1
            yield from super().run(work, items, description)

    report = run_verify(Restless(), VerifySettings(log_directories=[data]))
    assert report.findings == []
    assert report.unsettled == [("orders", 0)]


def test_files_of_no_broker_in_the_log_directory_are_reported(data: Path) -> None:
    (data / "surprise").touch()
    (data / "no log").mkdir()
    (data / "lost+found").mkdir()
    (data / "orders-0.checkpoint.tmp").touch()
    found = {Path(each.path).name: each.severity for each in verified(data).findings}
    assert found == {"surprise": Severity.NOTE, "no log": Severity.PROBLEM}


def test_topics_can_be_chosen(data: Path) -> None:
    shutil.copytree(data / "orders-0", data / "others-0")
    assert len(verified(data).partitions) == 2
    [verdict] = verified(data, topics=TopicChoice(names=["others"])).partitions
    assert verdict.partition == ("others", 0)
