"""`odradek dump-log` by itself: its options, its exit codes, and its JSON lines."""

import json
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from odradek.config.java_text import double_text, split_list
from odradek.protocol.compression import CompressionType
from odradek.protocol.legacy import build_message_set
from odradek.protocol.record import Record
from odradek.tools.dump.java_text import decode_text, hash_map_order
from tests.support.content_limits import scale_down
from tests.support.dumps import our_dump
from tests.support.log_box import NOW_MS, LogBox, batch_of
from tests.support.log_files import old_messages, used_log, v2_batches, write_internal_logs

NAME = f"{0:020}.log"


@pytest.fixture(scope="module")
def used(tmp_path_factory: pytest.TempPathFactory) -> LogBox:
    return used_log(tmp_path_factory.mktemp("used"))


def json_dump(*arguments: str) -> tuple[int, list[dict[str, object]]]:
    done = our_dump("--json", *arguments)
    return done.code, [json.loads(line) for line in done.out.split("\n")[:-1]]


def test_each_batch_is_a_json_object(used: LogBox) -> None:
    code, lines = json_dump("--files", str(used.path(0, ".log")))
    assert code == 0
    assert {line["type"] for line in lines} == {"batch"}
    assert lines[0]["baseOffset"] == 0
    assert lines[0]["isValid"] is True
    assert lines[1]["position"] == lines[0]["size"]


def test_records_follow_their_batch(tmp_path: Path) -> None:
    path = tmp_path / NAME
    path.write_bytes(batch_of(b"one", b"\xff", timestamps=[NOW_MS, NOW_MS + 1]))
    _, lines = json_dump("--print-data-log", "--files", str(path))
    assert [line["type"] for line in lines] == ["batch", "record", "record"]
    assert [line.get("value") for line in lines[1:]] == ["one", {"base64": "/w=="}]
    assert [line.get("timestamp") for line in lines[1:]] == [NOW_MS, NOW_MS + 1]


def test_records_of_internal_logs_are_objects(tmp_path: Path) -> None:
    for path, decoder in write_internal_logs(tmp_path):
        code, lines = json_dump(decoder, "--files", str(path))
        assert code == 0
        assert any(isinstance(line.get("value"), dict) for line in lines)


@pytest.mark.parametrize("magic", [0, 1])
def test_old_formats_are_json_too(tmp_path: Path, magic: int) -> None:
    path = tmp_path / NAME
    path.write_bytes(old_messages(magic))
    _, lines = json_dump("--deep-iteration", "--files", str(path))
    assert {line["magic"] for line in lines if line["type"] == "batch"} == {magic}
    assert all(line["isValid"] for line in lines)


def test_entries_of_an_index_are_held_against_the_log(used: LogBox, tmp_path: Path) -> None:
    for kind in ("index", "timeindex"):
        _, lines = json_dump("--files", str(used.path(0, f".{kind}")))
        assert lines != []
        assert all(line["isTrue"] for line in lines)
    for suffix in (".log", ".index", ".timeindex"):
        (tmp_path / used.path(0, suffix).name).write_bytes(used.path(0, suffix).read_bytes())
    index = tmp_path / used.path(0, ".index").name
    data = bytearray(index.read_bytes())
    data[3] += 1
    index.write_bytes(data)
    _, lines = json_dump("--verify-index-only", "--files", str(index))
    assert [line["isTrue"] for line in lines] == [False]


@pytest.mark.parametrize("suffix", [".index", ".timeindex"])
def test_an_index_is_checked_like_at_a_start_only_if_asked(
    suffix: str, used: LogBox, tmp_path: Path
) -> None:
    for kind in (".log", ".index", ".timeindex"):
        (tmp_path / used.path(0, kind).name).write_bytes(used.path(0, kind).read_bytes())
    index = tmp_path / used.path(0, suffix).name
    code, lines = json_dump("--files", str(index))
    assert (code, len(lines) > 0) == (0, True)
    # Zeros, as in the preallocated index of an active segment, and an incomplete entry.
    index.write_bytes(index.read_bytes() + bytes(12 * 8 + 3))
    assert json_dump("--files", str(index)) == (0, lines)
    code, lines = json_dump("--index-sanity-check", "--files", str(index))
    assert (code, [line["type"] for line in lines]) == (1, ["problem"])


def test_how_far_to_look_for_the_batch_of_an_entry_is_an_option(used: LogBox) -> None:
    index = str(used.path(0, ".index"))
    _, lines = json_dump("--max-message-size", "61", "--files", index)
    assert {(line["logOffset"], line["isTrue"]) for line in lines} == {(None, False)}


def test_records_without_metadata_have_their_keys_and_values_only(used: LogBox) -> None:
    option = "--skip-record-metadata"
    log = ",".join(str(used.directory / name) for name in used.names(".log"))
    _, lines = json_dump("--print-data-log", "--files", log)
    records = [line for line in lines if line["type"] == "record"]
    assert any("controlType" in record for record in records)
    _, lines = json_dump("--print-data-log", option, "--files", log)
    assert [line for line in lines if line["type"] == "record"] == [
        {name: record[name] for name in ("type", "file", "key", "value")}
        for record in records
        if "controlType" not in record
    ]
    _, lines = json_dump("--deep-iteration", option, "--files", log)
    assert {line["type"] for line in lines} == {"batch"}


def test_producers_and_aborted_transactions_are_json(used: LogBox) -> None:
    snapshot, aborted = used.names(".snapshot")[-1], used.names(".txnindex")[0]
    both = f"{used.directory / snapshot},{used.directory / aborted}"
    _, lines = json_dump("--files", both)
    assert {line["type"] for line in lines} == {"producer", "abortedTransaction"}
    assert {line["producerId"] for line in lines} == {9}


def test_an_aborted_transaction_of_an_older_version_is_printed(tmp_path: Path) -> None:
    path = tmp_path / f"{0:020}.txnindex"
    path.write_bytes(struct.pack(">hqqqq", -1, 9, 0, 1, 1))
    done = our_dump("--files", str(path))
    assert (done.code, "version: -1 producerId: 9" in done.out) == (0, True)
    path.write_bytes(struct.pack(">hqqqq", 1, 9, 0, 1, 1))
    assert our_dump("--files", str(path)).code == 1


@pytest.mark.parametrize("magic", [0, 2])
def test_the_content_of_a_batch_may_have_any_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, magic: int
) -> None:
    scale_down(monkeypatch)
    path, value = tmp_path / NAME, b"v" * 1000
    messages = build_message_set(
        [Record(None, value, NOW_MS)], magic=0, compression=CompressionType.GZIP
    )
    path.write_bytes(messages if magic == 0 else batch_of(value, compression=CompressionType.GZIP))
    done = our_dump("--print-data-log", "--files", str(path))
    assert (done.code, value.decode() in done.out) == (0, True)


def test_a_file_that_cannot_be_followed_ends_with_1_and_says_why(tmp_path: Path) -> None:
    path = tmp_path / NAME
    path.write_bytes(batch_of(b"v") + bytes(40))
    done = our_dump("--files", str(path))
    assert done.code == 1
    assert f"odradek dump-log: {path}: " in done.err
    assert "a batch of 0 bytes is too small" in done.err
    assert done.out.count("baseOffset") == 1
    code, lines = json_dump("--files", str(path))
    assert code == 1
    assert [line["type"] for line in lines] == ["batch", "problem"]


def test_a_missing_index_is_not_made(tmp_path: Path) -> None:
    (tmp_path / NAME).write_bytes(v2_batches())
    for kind in ("index", "timeindex"):
        assert our_dump("--files", str(tmp_path / f"{0:020}.{kind}")).code == 1
    assert [path.name for path in tmp_path.iterdir()] == [NAME]


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ([], "--files"),
        (["--files", "x.log", "--remote-log-metadata-decoder"], "tiered storage"),
        (["--files", "x.log", "--value-decoder-class", "com.example.Mine"], "com.example.Mine"),
        (
            [
                "--files",
                "x.log",
                "--key-decoder-class",
                "org.apache.kafka.tools.api.DefaultDecoder",
            ],
            "is not supported",
        ),
        (["--files", "x.log", "--max-bytes", "many"], "--max-bytes"),
    ],
)
def test_what_cannot_be_done_is_refused_with_2(arguments: list[str], complaint: str) -> None:
    done = our_dump(*arguments)
    assert done.code == 2
    assert complaint in done.err


def test_a_reader_that_has_gone_is_no_error(tmp_path: Path) -> None:
    path = tmp_path / NAME
    path.write_bytes(batch_of(*[b"v" * 100] * 20_000))
    command = [sys.executable, "-c", "from odradek.tools.cli import main; main()", "dump-log"]
    with subprocess.Popen(
        [*command, "--print-data-log", "--files", str(path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.wait(timeout=30) == 0
        assert process.stderr.read() == b""


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0.0, "0.0"),
        (-1.5, "-1.5"),
        (100.0, "100.0"),
        (9999999.5, "9999999.5"),
        (1e7, "1.0E7"),
        (123456789.25, "1.2345678925E8"),
        (0.001, "0.001"),
        (0.00012, "1.2E-4"),
        (1e-300, "1.0E-300"),
        (-1.5e22, "-1.5E22"),
        (float("inf"), "Infinity"),
        (float("nan"), "NaN"),
    ],
)
def test_doubles_look_as_in_java(value: float, shown: str) -> None:
    assert double_text(value) == shown


def test_broken_texts_look_as_in_java() -> None:
    assert decode_text(b"a\xed\xa0\x80b") == "a\ufffdb"
    assert decode_text(b"\xed\xa0") == "\ufffd"
    assert decode_text(b"\xff\xc3") == "\ufffd\ufffd"


def test_lists_are_split_as_in_java() -> None:
    assert [split_list(text) for text in ("", ",", "a,", ",a", "a,,b")] == [
        [""],
        [],
        ["a"],
        ["", "a"],
        ["a", "", "b"],
    ]


def test_a_map_keeps_javas_order() -> None:
    # Of "Aa" and "BB" the hash is the same: the later comes first.
    assert hash_map_order(["Aa", "BB", "b", "a"]) == ["BB", "Aa", "a", "b"]
