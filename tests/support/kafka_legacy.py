"""Message sets that Apache Kafka itself made, read and converted: its golden files, its classes."""

import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from odradek.protocol.compression import CompressionType
from odradek.protocol.message_set import LegacyRecord
from odradek.protocol.record import Record
from tests.support.kafka_jars import clients_39_jar, kafka_jars, why_no_jars

GOLDEN = Path(__file__).resolve().parents[1] / "golden" / "message_sets"
BASE_OFFSET = 1000
BASE_TIME = 1_700_000_000_000
APPEND_TIME = BASE_TIME + 999_999
LEGACY_CODECS = (
    CompressionType.NONE,
    CompressionType.GZIP,
    CompressionType.SNAPPY,
    CompressionType.LZ4,
)

_PROGRAMS = Path(__file__).parent


def legacy_records(count: int = 20) -> list[Record]:
    """What the golden files hold: nulls, empty values, times that go back, offsets with a gap."""
    return [
        Record(
            key=None if i % 5 == 4 else b"key-%d" % i,
            value=None if i % 7 == 6 else b"value-%d-" % i * (i % 9),
            timestamp_ms=BASE_TIME + 37 * i - i % 4 * 1000,
            offset=BASE_OFFSET + i + (3 if i > 10 else 0),
        )
        for i in range(count)
    ]


def as_read(
    records: Sequence[Record], magic: int, log_append_time_ms: int | None = None
) -> list[LegacyRecord]:
    """What a reader finds when `records` were written with `magic`."""
    stamped = log_append_time_ms is not None and magic > 0
    return [
        LegacyRecord(
            record.key,
            record.value,
            _time(record.timestamp_ms, magic, log_append_time_ms),
            record.offset,
            magic,
            stamped,
        )
        for record in records
    ]


def _time(timestamp_ms: int, magic: int, log_append_time_ms: int | None) -> int:
    if magic == 0:
        return -1
    return timestamp_ms if log_append_time_ms is None else log_append_time_ms


def golden_names() -> dict[str, tuple[int, CompressionType, int | None]]:
    """Each golden file's magic, codec and LogAppendTime."""
    made: dict[str, tuple[int, CompressionType, int | None]] = {
        f"magic-{magic}-{codec.name.lower()}": (magic, codec, None)
        for magic in (0, 1)
        for codec in LEGACY_CODECS
    }
    made["magic-1-append-time"] = (1, CompressionType.NONE, APPEND_TIME)
    made["magic-1-append-time-gzip"] = (1, CompressionType.GZIP, APPEND_TIME)
    return made


def golden_set(name: str) -> bytes:
    return (GOLDEN / f"{name}.bin").read_bytes()


def write_golden_files() -> None:
    """Make the golden files anew."""
    made = golden_names()
    lines = [build_line(legacy_records(), *parameters) for parameters in made.values()]
    for name, answer in zip(made, ask_kafka_39(lines), strict=True):
        (GOLDEN / f"{name}.bin").write_bytes(bytes.fromhex(answer))


def build_line(
    records: Sequence[Record], magic: int, codec: CompressionType, log_append_time_ms: int | None
) -> str:
    """What asks `LegacyMessages` for a set of these records."""
    stamp = "-" if log_append_time_ms is None else str(log_append_time_ms)
    words = [
        f"{record.offset}:{record.timestamp_ms}:{_hex(record.key)}:{_hex(record.value)}"
        for record in records
    ]
    return " ".join(["build", str(magic), codec.name.lower(), stamp, *words])


def read_answer(answer: str) -> list[LegacyRecord]:
    """The records that `LegacyMessages` says it read."""
    records = []
    for word in answer.split():
        magic, kind, offset, timestamp_ms, key, value = word.split(":")
        records.append(
            LegacyRecord(
                _unhex(key), _unhex(value), int(timestamp_ms), int(offset), int(magic), kind == "1"
            )
        )
    return records


def ask_kafka_39(lines: Sequence[str]) -> list[str]:
    """What Kafka 3.9's classes answer: see LegacyMessages.java. Skips where they cannot be had."""
    clients = clients_39_jar()
    if clients is None:
        pytest.skip(why_no_jars())
    return _ask("LegacyMessages.java", f"{clients}:", lines)


def ask_kafka_44(lines: Sequence[str]) -> list[str]:
    """What Kafka 4.4's LogValidator makes of produced sets: see UpConversion.java."""
    return _ask("UpConversion.java", "", lines)


def _ask(program: str, first_on_path: str, lines: Sequence[str]) -> list[str]:
    jars = kafka_jars()
    if jars is None:
        pytest.skip(why_no_jars())
    quick = ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"]
    done = subprocess.run(
        ["java", *quick, "-cp", f"{first_on_path}{jars}/*", str(_PROGRAMS / program)],
        input="\n".join(lines),
        check=True,
        capture_output=True,
        text=True,
    )
    answers = done.stdout.splitlines()
    assert len(answers) == len(lines)
    return answers


def _hex(data: bytes | None) -> str:
    return "-" if data is None else data.hex()


def _unhex(word: str) -> bytes | None:
    return None if word == "-" else bytes.fromhex(word)
