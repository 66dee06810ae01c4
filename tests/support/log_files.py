"""Files of logs with everything in them, for those who look at such files: small, and made here."""

import shutil
from pathlib import Path

from odradek.coordinator.runtime.outcome import JournalRecord
from odradek.coordinator.runtime.record_codec import CoordinatorRecordCodec, MetadataRecordCodec
from odradek.protocol.compression import CompressionType
from odradek.protocol.legacy import build_message_set
from odradek.protocol.record import Record
from odradek.protocol.record_batch import build_batch
from odradek.protocol.records import (
    cluster_metadata,
    consumer_offsets,
    share_group_state,
    transaction_state,
)
from odradek.protocol.records.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
)
from odradek.protocol.records.control import ControlRecordType, control_key, end_txn_value
from odradek.storage.append import EndMarker
from odradek.storage.log import PartitionLog
from tests.support.kafka_legacy import APPEND_TIME, LEGACY_CODECS, legacy_records
from tests.support.log_box import NOW_MS, LogBox, batch_of, put
from tests.support.messages import emptiest, sample, smallest, versions_of

COORDINATOR_TYPES = {
    "__consumer_offsets": consumer_offsets.RECORD_TYPES,
    "__transaction_state": transaction_state.RECORD_TYPES,
    "__share_group_state": share_group_state.RECORD_TYPES,
}
DECODERS = {
    "__consumer_offsets": "--offsets-decoder",
    "__transaction_state": "--transaction-log-decoder",
    "__share_group_state": "--share-group-state-decoder",
    "__cluster_metadata": "--cluster-metadata-decoder",
}
MAKERS = (sample, smallest, emptiest)


def v2_batches() -> bytes:
    """Every codec, headers, nulls, sequences, one transaction with its marker."""
    out = bytearray()
    offset = 0
    for codec in CompressionType:
        for count in (1, 3):
            records = [
                Record(
                    b"key %d" % i if i % 2 else None,
                    None if i == 2 else "größe \x07\n".encode() + bytes([0xED, 0xA0, i]),
                    NOW_MS + i,
                    (("größe", b"x"), ("", None)) if i % 2 else (),
                )
                for i in range(count)
            ]
            is_txn = count == 3
            out += build_batch(
                records,
                base_offset=offset,
                compression=codec,
                producer_id=5 if is_txn else -1,
                producer_epoch=0 if is_txn else -1,
                base_sequence=2**31 - 2 if is_txn else -1,
                is_transactional=is_txn,
                log_append_time_ms=NOW_MS + 99 if codec is CompressionType.LZ4 else None,
            )
            offset += count
    for kind in (ControlRecordType.ABORT, ControlRecordType.COMMIT):
        marker = Record(control_key(kind), end_txn_value(7), NOW_MS)
        out += build_batch([marker], base_offset=offset, producer_id=5, is_control=True)
        offset += 1
    unknown = Record(b"\0\0\0\x63", b"?", NOW_MS)
    return bytes(out + build_batch([unknown], base_offset=offset, is_control=True))


def old_messages(magic: int) -> bytes:
    """Every codec of the time, stamped by producers and, of magic 1, by the broker."""
    return b"".join(
        build_message_set(
            legacy_records(4), magic=magic, compression=codec, log_append_time_ms=stamp
        )
        for codec in LEGACY_CODECS
        for stamp in (None, APPEND_TIME)
    )


def coordinator_log(topic: str) -> bytes:
    """Each type of record in each version: full, with nulls, empty; a tombstone; unknown ones."""
    types = COORDINATOR_TYPES[topic]
    codec = CoordinatorRecordCodec(types)
    pairs: list[tuple[bytes | None, bytes | None]] = []
    for key, value in types.values():
        for version in versions_of(value):
            made = [JournalRecord(make(value, version), version, make(key, 0)) for make in MAKERS]
            pairs += map(codec.encode, made)
        pairs.append(codec.encode(JournalRecord(None, 0, sample(key, 0))))
    some_key = pairs[0][0]
    assert some_key is not None
    pairs += [(b"\x7f\x00??", b"\0\0"), (some_key, b"\x7f\xff"), (b"\x01", None), (some_key, b"\0")]
    return bytes(build_batch([Record(key, value, NOW_MS) for key, value in pairs]))


def metadata_log() -> bytes:
    """The same of the metadata log: also a later version, garbage behind a record, other frames."""
    codec = MetadataRecordCodec.of_cluster()
    values: list[bytes | None] = []
    for message in cluster_metadata.RECORD_TYPES.values():
        for version in versions_of(message):
            made = [JournalRecord(make(message, version), version) for make in MAKERS]
            values += [codec.encode(record)[1] for record in made]
    topic = values[0]
    assert topic is not None
    values += [topic + b"!!", b"\x01\x63\x00", b"\x02\x00\x00", b"\x00\x00\x00", b"\x01", b"", None]
    values += [b"\x01\x80\x80\x04\x00", bytes([1, topic[1], 99]) + topic[3:]]
    return bytes(build_batch([Record(None, value, NOW_MS) for value in values]))


def subscriptions() -> bytes:
    """Members of a classic consumer group, their subscriptions in every version, and broken."""
    codec = CoordinatorRecordCodec(consumer_offsets.RECORD_TYPES)
    said: list[bytes] = [
        b"",
        b"\x00",
        b"\x00\x01\x00",
        b"\x00\x63" + bytes(14),
        b"\xff\xff" + bytes(8),
    ]
    for message in (ConsumerProtocolSubscription, ConsumerProtocolAssignment):
        for version in versions_of(message):
            said += [
                version.to_bytes(2, "big") + make(message, version).encode(version)
                for make in MAKERS
            ]
    records = []
    for protocol_type in ("consumer", "connect"):
        members = [
            consumer_offsets.GroupMemberMetadata(
                member_id=f"m{i}",
                client_id="c",
                client_host="/h",
                session_timeout=1,
                subscription=each,
                assignment=each,
            )
            for i, each in enumerate(said)
        ]
        value = consumer_offsets.GroupMetadataValue(
            protocol_type=protocol_type,
            generation=1,
            protocol='ra"nge\\\x1f\x7f\u2028',
            leader=None,
            members=members,
        )
        key = consumer_offsets.GroupMetadataKey(group=protocol_type)
        encoded = codec.encode(JournalRecord(value, 3, key))
        records.append(Record(*encoded, NOW_MS))
    return bytes(build_batch(records))


def used_log(root: Path) -> LogBox:
    """A log of several segments with all their files, transactions aborted in it; closed."""
    box = LogBox(root, segment_bytes=1500, index_interval_bytes=200)
    log = box.open()
    log.become_leader(0)
    for n in range(60):
        if n == 30:
            log.become_leader(3)
        put(
            log,
            *[b"value %d" % n * (n % 7)] * (1 + n % 3),
            timestamps=[NOW_MS + 50 * n - 700 * (n % 5) + i for i in range(1 + n % 3)],
            compression=CompressionType(n % 5),
        )
        if n % 10 < 3:
            sequence = n // 10 * 3 + n % 10
            batch = batch_of(b"t", producer=(9, 0, sequence), is_transactional=True)
            log.append(batch, now_ms=NOW_MS, transaction_verified=True)
        if n % 10 == 3:
            end_transaction(log, 9, aborts=n % 20 == 3)
    log.close(NOW_MS)
    return box


def end_transaction(log: PartitionLog, producer_id: int, *, aborts: bool) -> None:
    """Append a marker."""
    log.append_marker(EndMarker(producer_id, 0, not aborts, 0, 0), NOW_MS)


def write_internal_logs(root: Path) -> list[tuple[Path, str]]:
    """A segment of each internal log, with the decoder that it needs."""
    contents = {topic: coordinator_log(topic) for topic in COORDINATOR_TYPES}
    contents["__cluster_metadata"] = metadata_log()
    written: list[tuple[Path, str]] = []
    for topic, data in [*contents.items(), ("__consumer_offsets", subscriptions())]:
        directory = root / f"{topic}-{len(written)}"
        directory.mkdir(parents=True)
        path = directory / f"{0:020}.log"
        path.write_bytes(data)
        written.append((path, DECODERS[topic]))
    return written


def copy_of(directory: Path, target: Path) -> Path:
    """The directory once more, to be damaged."""
    return Path(shutil.copytree(directory, target))
