"""`odradek dump-log` prints what Apache Kafka's DumpLogSegments prints, line for line.

Both run on the same files: whole ones of every kind and format, and damaged ones. What they may
differ in is told in tests/support/dumps.py.
"""

import itertools
import random
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from odradek.coordinator.runtime.outcome import JournalRecord
from odradek.coordinator.runtime.record_codec import CoordinatorRecordCodec
from odradek.protocol.record import Record
from odradek.protocol.record_batch import build_batch
from odradek.protocol.records import consumer_offsets, transaction_state
from odradek.protocol.records.control import (
    QUORUM_RECORDS,
    ControlRecordType,
    control_key,
    end_txn_value,
)
from odradek.storage.filenames import metadata_snapshot_file
from tests.support.dumps import KafkasDumps, difference, our_dump
from tests.support.lengths import SEED, by_length
from tests.support.log_box import NOW_MS, LogBox, batch_of
from tests.support.log_files import (
    old_messages,
    used_log,
    v2_batches,
    write_internal_logs,
)
from tests.support.messages import sample, smallest, versions_of

pytestmark = pytest.mark.java

GOLDEN = Path(__file__).resolve().parents[1] / "golden"
DAMAGED = by_length(100, 10_000)
ALL_LOG_OPTIONS = (
    [],
    ["--deep-iteration"],
    ["--print-data-log"],
    ["--print-data-log", "--skip-record-metadata"],
    ["--deep-iteration", "--skip-record-metadata"],
    ["--max-bytes", "300"],
    ["--max-bytes", "0", "--deep-iteration"],
    ["--value-decoder-class", "org.apache.kafka.tools.api.IntegerDecoder"],
    ["--key-decoder-class", "org.apache.kafka.tools.api.LongDecoder"],
)
LOG_OPTIONS = by_length(ALL_LOG_OPTIONS[1:3], ALL_LOG_OPTIONS)
INDEX_OPTIONS = (
    [],
    ["--index-sanity-check"],
    ["--verify-index-only"],
    ["--max-message-size", "100"],
)


@pytest.fixture(scope="module")
def kafka() -> Iterator[KafkasDumps]:
    with KafkasDumps() as dumps:
        yield dumps


def compare(kafka: KafkasDumps, *arguments: str) -> None:
    theirs = kafka.dump(*arguments)
    if "OutOfMemoryError" in kafka.last_death:
        return  # a garbled size: Java believes it
    found = difference(theirs, our_dump(*arguments))
    assert found is None, f"{' '.join(arguments)}\n{found}\n{kafka.last_death}"


def compare_all(kafka: KafkasDumps, directory: Path, *, decoder: str | None = None) -> int:
    """Every file below it, with options that concern it; returns how many there were."""
    files = [path for path in sorted(directory.rglob("*")) if path.is_file()]
    for path in files:
        for options in INDEX_OPTIONS if path.name.endswith("index") else LOG_OPTIONS:
            compare(kafka, *options, "--files", str(path))
        if decoder is not None:
            compare(kafka, decoder, "--files", str(path))
    return len(files)


@pytest.mark.parametrize("form", by_length(["dynamic"], ["dynamic", "static", "formatted"]))
def test_directories_that_kafka_wrote(kafka: KafkasDumps, form: str) -> None:
    directory = GOLDEN / "metadata" / form
    assert compare_all(kafka, directory, decoder="--cluster-metadata-decoder") > 2


def test_indexes_and_snapshots_that_kafka_wrote(kafka: KafkasDumps, tmp_path: Path) -> None:
    for path in (GOLDEN / "storage").glob("0*"):
        shutil.copy(path, tmp_path)
    (tmp_path / "00000000000000005000.log").touch()
    assert compare_all(kafka, tmp_path) == 4


def test_a_log_of_many_segments(kafka: KafkasDumps, tmp_path: Path) -> None:
    box = used_log(tmp_path)
    assert box.names(".txnindex") != []
    assert compare_all(kafka, box.directory) > 20
    everything = ",".join(str(box.directory / name) for name in box.names())
    compare(kafka, "--print-data-log", "--files", everything)
    compare(kafka, "--verify-index-only", "--files", everything)


def test_a_log_that_is_in_use(kafka: KafkasDumps, tmp_path: Path) -> None:
    box = LogBox(tmp_path, index_interval_bytes=50)
    log = box.open()
    log.become_leader(0)
    log.append(batch_of(b"a"), now_ms=NOW_MS)
    log.append(batch_of(b"b", b"c"), now_ms=NOW_MS)
    box.tear(batch_of(b"torn")[:40])
    assert compare_all(kafka, box.directory) > 3


@pytest.mark.parametrize("magic", [0, 1, 2])
def test_every_message_format(kafka: KafkasDumps, tmp_path: Path, magic: int) -> None:
    data = v2_batches() if magic == 2 else old_messages(magic)
    (tmp_path / f"{0:020}.log").write_bytes(data)
    assert compare_all(kafka, tmp_path) == 1
    (tmp_path / f"{17:020}.log").write_bytes(old_messages(0) + old_messages(1) + v2_batches())
    compare_all(kafka, tmp_path)


@pytest.mark.parametrize("path", sorted((GOLDEN / "message_sets").glob("*.bin")), ids=str)
def test_message_sets_that_kafka_3_9_wrote(kafka: KafkasDumps, tmp_path: Path, path: Path) -> None:
    shutil.copy(path, tmp_path / f"{0:020}.log")
    compare_all(kafka, tmp_path)


def test_every_record_of_every_internal_log(kafka: KafkasDumps, tmp_path: Path) -> None:
    for path, decoder in write_internal_logs(tmp_path):
        compare(kafka, decoder, "--files", str(path))
        compare(kafka, decoder, "--skip-record-metadata", "--files", str(path))


def test_transactions_in_every_state_with_and_without_their_tagged_fields(
    kafka: KafkasDumps, tmp_path: Path
) -> None:
    path = tmp_path / f"{0:020}.log"
    path.write_bytes(batch_of_pairs(stored_transactions()))
    for options in ([], ["--skip-record-metadata"]):
        compare(kafka, "--transaction-log-decoder", *options, "--files", str(path))
    shown = our_dump("--transaction-log-decoder", "--files", str(path)).out
    assert '"transactionStatus":"PrepareEpochFence"' in shown
    assert shown.count('"clientTransactionVersion":2') > 1


def stored_transactions() -> list[tuple[bytes | None, bytes | None]]:
    """In both versions, with numbers that no broker writes, tags that none knows, and damaged."""
    codec = CoordinatorRecordCodec(transaction_state.RECORD_TYPES)
    key = transaction_state.TransactionLogKey(transactional_id="größe \x07")
    topics = [transaction_state.PartitionsSchema(topic="t", partition_ids=[0, 7])]
    pairs: list[tuple[bytes | None, bytes | None]] = []
    for version, state, partitions in itertools.product((0, 1), range(-1, 10), (None, [], topics)):
        value = transaction_state.TransactionLogValue(
            producer_id=1 << 40,
            producer_epoch=32_767,
            transaction_timeout_ms=2**31 - 1,
            transaction_status=state,
            transaction_partitions=partitions,
            transaction_last_update_timestamp_ms=NOW_MS,
            transaction_start_timestamp_ms=-1,
            client_transaction_version=version * (state % 3),
            previous_producer_id=7 if version and state % 2 else -1,
            next_producer_id=8 if version and state > 4 else -1,
            next_producer_epoch=3 if version and state == 5 else -1,
        )
        pairs.append(codec.encode(JournalRecord(value, version, key)))
    some_key, whole = pairs[-1]
    assert whole is not None
    pairs.append((some_key, None))
    # Without tags, the last byte is their number.
    untagged = struct_without_tags()
    tags = (b"\1\x63\2ab", b"\2\2\2\0\2\x63\0", b"\1\2\2\xff\xff", b"\1\2\3\0\2\0", b"\1")
    pairs += [(some_key, untagged[:-1] + each) for each in (b"\0", *tags)]
    pairs += [(some_key, b"\0\2" + whole[2:]), (some_key, b"\xff\xff" + whole[2:])]
    pairs += [(some_key, whole[:-1]), (some_key, whole + b"!!"), (some_key, b"\0"), (some_key, b"")]
    assert some_key is not None
    pairs += [(number + some_key[2:], whole) for number in (b"\0\1", b"\xff\xff", b"\x7f\xff")]
    pairs += [(some_key[:-1], whole), (some_key + b"!", whole), (b"\0", whole), (b"", whole)]
    return pairs


def struct_without_tags() -> bytes:
    value = transaction_state.TransactionLogValue(
        producer_id=1,
        producer_epoch=2,
        transaction_timeout_ms=3,
        transaction_status=4,
        transaction_partitions=None,
        transaction_last_update_timestamp_ms=5,
        transaction_start_timestamp_ms=6,
    )
    return b"\0\1" + value.encode(1)


def batch_of_pairs(pairs: list[tuple[bytes | None, bytes | None]], **fields: Any) -> bytes:
    return bytes(build_batch([Record(key, value, NOW_MS) for key, value in pairs], **fields))


def test_offsets_that_a_transaction_commits_and_its_markers(
    kafka: KafkasDumps, tmp_path: Path
) -> None:
    codec = CoordinatorRecordCodec(consumer_offsets.RECORD_TYPES)
    key = consumer_offsets.OffsetCommitKey(group="g", topic="t", partition=0)
    pairs: list[tuple[bytes | None, bytes | None]] = [
        codec.encode(JournalRecord(make(consumer_offsets.OffsetCommitValue, version), version, key))
        for version in versions_of(consumer_offsets.OffsetCommitValue)
        for make in (sample, smallest)
    ]
    pairs.append(codec.encode(JournalRecord(None, 0, key)))
    producer = {"producer_id": 9, "producer_epoch": 4, "is_transactional": True}
    data = batch_of_pairs(pairs, **producer)
    offset = len(pairs)
    for kind, epoch in ((ControlRecordType.COMMIT, 3), (ControlRecordType.ABORT, -1)):
        marker = [(control_key(kind), end_txn_value(epoch))]
        data += batch_of_pairs(marker, **producer, is_control=True, base_offset=offset)  # type: ignore[arg-type] # pairs
        offset += 1
    path = tmp_path / f"{0:020}.log"
    path.write_bytes(data)
    for options in (["--deep-iteration"], ["--offsets-decoder"], ["--transaction-log-decoder"]):
        compare(kafka, *options, "--files", str(path))
        compare(kafka, *options, "--skip-record-metadata", "--files", str(path))
    shown = our_dump("--offsets-decoder", "--files", str(path)).out
    assert "endTxnMarker: COMMIT coordinatorEpoch: 3" in shown
    assert "endTxnMarker: ABORT coordinatorEpoch: -1" in shown


def test_a_record_without_a_key_ends_a_dump_with_a_decoder(
    kafka: KafkasDumps, tmp_path: Path
) -> None:
    path = tmp_path / f"{0:020}.log"
    path.write_bytes(batch_of(b"v", key=None))
    compare(kafka, "--offsets-decoder", "--files", str(path))
    assert our_dump("--offsets-decoder", "--files", str(path)).code == 1


@pytest.mark.slow
def test_damaged_files(kafka: KafkasDumps, tmp_path: Path) -> None:
    chance = random.Random(SEED)
    box = used_log(tmp_path / "used")
    base = box.names(".txnindex")[0].partition(".")[0]
    whole = {
        (path.suffix, f"{path.parent.name}/{path.name}"): path.read_bytes()
        for path in box.directory.glob(f"{base}.*")
    }
    for magic in (0, 1):
        whole[".log", f"magic {magic}"] = old_messages(magic)
    whole[".log", "magic 2"] = v2_batches()
    decoders = {}
    # The last is of members' subscriptions: where one is damaged, Java's readers take any negative
    # length for a null, and ours leave it as base64.
    for path, decoder in write_internal_logs(tmp_path / "internal")[:-1]:
        name = path.parent.name
        whole[".log", name], decoders[name] = path.read_bytes(), [decoder]
    snapshot = next((GOLDEN / "metadata" / "dynamic").rglob("*-*.checkpoint"))
    whole[".checkpoint", "snapshot"] = snapshot.read_bytes()
    place = tmp_path / "damaged"
    shutil.copytree(box.directory, place)
    damaged_name = {".checkpoint": metadata_snapshot_file(0, 0)}
    kinds = sorted(whole)
    for _ in range(DAMAGED):
        suffix, name = kind = chance.choice(kinds)
        path = place / damaged_name.get(suffix, base + suffix)
        path.write_bytes(damaged(whole[kind], chance))
        options = decoders.get(name, chance.choice([["--print-data-log"], []]))
        compare(kafka, *options, "--files", str(path))
        if suffix in (".index", ".timeindex", ".log"):
            path.write_bytes(whole[suffix, f"{box.directory.name}/{base}{suffix}"])


def damaged(data: bytes, chance: random.Random) -> bytes:
    """A bit flipped, a byte replaced, the end cut off, bytes put in or left out."""
    out = bytearray(data)
    for _ in range(chance.choice((1, 1, 2))):
        at = chance.randrange(len(out)) if out else 0
        match chance.randrange(5):
            case 0 if out:
                out[at] ^= 1 << chance.randrange(8)
            case 1 if out:
                out[at] = chance.choice((0, 1, 2, 0x7F, 0x80, 0xFF))
            case 2:
                del out[at:]
            case 3:
                out[at:at] = bytes(chance.randrange(1, 5))
            case _:
                del out[at : at + chance.randrange(1, 5)]
    return bytes(out)


@pytest.mark.parametrize("kind", [".log", ".index", ".timeindex", ".snapshot", ".txnindex"])
def test_files_that_are_missing_or_empty_or_strangely_named(
    kafka: KafkasDumps, tmp_path: Path, kind: str
) -> None:
    path = tmp_path / f"{5:020}{kind}"
    # Kafka makes an empty index where there is none, and says so only once.
    for index in ("index", "timeindex"):
        path.with_suffix(f".{index}").touch()
    if not path.exists():
        compare(kafka, "--files", str(path))
    path.touch()
    compare(kafka, "--files", str(path))
    path.with_suffix(".log").touch()
    for options in ([], ["--index-sanity-check"], ["--deep-iteration"]):
        compare(kafka, *options, "--files", str(path))
    (tmp_path / f"strange{kind}").touch()
    compare(kafka, "--files", f"{tmp_path}/strange{kind}")


def test_names_are_shown_as_they_were_given(
    kafka: KafkasDumps, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / f"{0:020}.log").write_bytes(v2_batches())
    for given in (
        f"{tmp_path}//{0:020}.log,",
        f"{tmp_path}/./{0:020}.log,{tmp_path}/nodot,{tmp_path}/x.log.deleted",
        f"{tmp_path}/{0:020}.log/",
        f",{tmp_path}/{0:020}.log",
    ):
        compare(kafka, "--deep-iteration", "--files", given)


def test_findings_of_many_files_come_in_javas_order(kafka: KafkasDumps, tmp_path: Path) -> None:
    paths = []
    for n in range(30):
        path = tmp_path / f"{n:020}.log"
        path.write_bytes(batch_of(b"v", base_offset=n + 5))
        paths.append(str(path))
    compare(kafka, "--deep-iteration", "--files", ",".join(paths))


def test_control_records_of_every_kind(kafka: KafkasDumps, tmp_path: Path) -> None:
    path = tmp_path / f"{0:020}.log"
    for (kind, message), make in itertools.product(QUORUM_RECORDS.items(), (sample, smallest)):
        value = make(message, 0).encode(0)
        for stored in (value, b"\0\0" + value[2:], value[:-1], b"", None):
            record = Record(control_key(kind), stored, NOW_MS)
            path.write_bytes(build_batch([record], is_control=True))
            compare(kafka, "--deep-iteration", "--files", str(path))
    for stored in (b"", b"\0\0\0\0\0\7", b"\0\7\0\0\0\7", b"\xff\xff\0\0\0\7", None):
        record = Record(control_key(ControlRecordType.COMMIT), stored, NOW_MS)
        path.write_bytes(build_batch([record], is_control=True))
        compare(kafka, "--deep-iteration", "--files", str(path))
    for key in (b"", b"\0\0\0", b"\0\1\0\1", b"\xff\xff\0\1", b"\0\0\0\x63", None):
        path.write_bytes(build_batch([Record(key, b"\0\0\0\0\0\7", NOW_MS)], is_control=True))
        compare(kafka, "--deep-iteration", "--files", str(path))
