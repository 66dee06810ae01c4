"""The small text files: as Kafka writes them, and the errors of invalid ones."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from odradek.protocol.primitives import ZERO_UUID, uuid_from_text, uuid_text
from odradek.storage.checkpoints import (
    CheckpointError,
    MetaProperties,
    read_clean_shutdown,
    read_epochs,
    read_meta_properties,
    read_offsets,
    read_topic_id,
    write_clean_shutdown,
    write_epochs,
    write_meta_properties,
    write_offsets,
    write_topic_id,
)
from odradek.storage.files import Files
from tests.support.golden import GOLDEN

FILES = Files()
OFFSETS = {("orders", 0): 1500, ("__consumer_offsets", 49): 0}
EPOCHS = [(0, 0), (3, 1500), (9, 1501)]
TOPIC_ID = uuid_from_text("MkTRaEKlQ9eO8mYRrvUYuA")
META = MetaProperties("4L6g3nShT-eMCtK--X86sw", 1, uuid_from_text("J8aAPcfLQt2bqs1JT_rMgQ"))


def written(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def test_files_that_kafka_wrote_are_read() -> None:
    assert read_offsets(FILES, GOLDEN / "recovery-point-offset-checkpoint") == OFFSETS
    assert read_epochs(FILES, GOLDEN / "leader-epoch-checkpoint") == EPOCHS
    assert read_topic_id(FILES, GOLDEN / "partition.metadata") == TOPIC_ID
    assert read_clean_shutdown(FILES, GOLDEN) == 77
    assert read_meta_properties(FILES, GOLDEN) == META


def test_files_are_written_as_kafka_writes_them(tmp_path: Path) -> None:
    write_offsets(FILES, tmp_path / "recovery-point-offset-checkpoint", OFFSETS)
    write_epochs(FILES, tmp_path / "leader-epoch-checkpoint", EPOCHS)
    write_topic_id(FILES, tmp_path / "partition.metadata", TOPIC_ID)
    write_clean_shutdown(FILES, tmp_path, 77)
    names = [path.name for path in tmp_path.iterdir()]
    assert len(names) == 4
    for name in names:
        assert (tmp_path / name).read_bytes() == (GOLDEN / name).read_bytes(), name


def test_meta_properties_hold_what_kafkas_hold(tmp_path: Path) -> None:
    write_meta_properties(FILES, tmp_path, META)
    ours = (tmp_path / "meta.properties").read_text().splitlines()
    kafkas = (GOLDEN / "meta.properties").read_text().splitlines()
    assert ours == sorted(line for line in kafkas if not line.startswith("#"))


def test_missing_files_say_nothing(tmp_path: Path) -> None:
    assert read_offsets(FILES, tmp_path / "none") == {}
    assert read_epochs(FILES, tmp_path / "none") == []
    assert read_topic_id(FILES, tmp_path / "none") is None
    assert read_clean_shutdown(FILES, tmp_path) is None
    assert read_meta_properties(FILES, tmp_path) is None


@pytest.mark.parametrize("text", ["", "0\n", "0\n0\n"])
def test_empty_checkpoints_say_nothing(tmp_path: Path, text: str) -> None:
    assert read_offsets(FILES, written(tmp_path / "c", text)) == {}
    assert read_epochs(FILES, tmp_path / "c") == []


TOPICS = st.text(st.sampled_from("abcXYZ019._-"), min_size=1, max_size=30)


@settings(deadline=None)
@given(
    st.dictionaries(st.tuples(TOPICS, st.integers(0, 2**31 - 1)), st.integers(-1, 2**63 - 1)),
)
def test_offsets_are_read_as_they_were_written(
    tmp_path_factory: pytest.TempPathFactory, offsets: dict[tuple[str, int], int]
) -> None:
    path = tmp_path_factory.mktemp("checkpoint") / "c"
    write_offsets(FILES, path, offsets)
    assert read_offsets(FILES, path) == offsets


@pytest.mark.parametrize(
    ("text", "line", "why"),
    [
        ("1\n0\n", 1, "version 1 is unknown"),
        ("x\n0\n", 1, "'x' is not a number"),
        ("1\n", 1, "version 1 is unknown"),
        ("0\nmany\n", 2, "'many' is not a number"),
        ("0\n2\na 0 1\n", 2, "2 entries announced, 1 found"),
        ("0\n1\na 0 1\nb 0 1\n", 2, "1 entries announced, 2 found"),
        ("0\n1\na 0\n", 3, "'a 0' is not 'topic partition offset'"),
        ("0\n2\na 0 1\na x 1\n", 4, "'x' is not a number"),
        ("0\n1\na 0 1_0\n", 3, "'1_0' is not a number"),
        ("0\n2\na 0 1\nb 0 1", 4, "'b 0 1' is cut off"),
        ("0\n1\na 0 9223372036854775808\n", 3, "'9223372036854775808' is not a number"),
        pytest.param(f"0\n{'9' * 5000}\n", 2, "is not a number", id="more digits than int() takes"),
    ],
)
def test_a_broken_checkpoint_names_the_file_the_line_and_why(
    tmp_path: Path, text: str, line: int, why: str
) -> None:
    path = written(tmp_path / "c", text)
    with pytest.raises(CheckpointError) as caught:
        read_offsets(FILES, path)
    assert (caught.value.path, caught.value.line_number) == (path, line)
    assert why in caught.value.why
    assert str(caught.value).startswith(f"{path}, line {line}: ")


def test_a_broken_epoch_checkpoint_is_reported_with_its_line(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="line 3: '0 1 2' is not 'epoch offset'"):
        read_epochs(FILES, written(tmp_path / "c", "0\n1\n0 1 2\n"))


def test_an_epoch_whose_start_may_have_lost_digits_in_a_power_cut_is_not_believed(
    tmp_path: Path,
) -> None:
    with pytest.raises(CheckpointError, match="line 4: '1 1' is cut off"):
        read_epochs(FILES, written(tmp_path / "c", "0\n2\n0 0\n1 10\n"[:-2]))


def test_a_checkpoint_that_is_no_text_is_reported_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "c").write_bytes(b"0\n1\n\xff\xfe")
    with pytest.raises(CheckpointError, match="line 3: "):
        read_offsets(FILES, tmp_path / "c")


@pytest.mark.parametrize(
    ("text", "line", "why"),
    [
        ("version: 0\n", 2, "'' is not 'topic_id: ...'"),
        ("version: 0\ntopic: x\n", 2, "is not 'topic_id"),
        ("versions\n", 1, "is not 'version"),
        ("version: -1\ntopic_id: x", 1, "version -1 is unknown"),
        ("version: 0\ntopic_id: c2hvcnRz", 2, "'c2hvcnRz' holds 6 bytes"),
        ("version: 0\ntopic_id: $$$", 2, "is not a base64 id"),
        (f"version: 0\ntopic_id: {uuid_text(ZERO_UUID)}", 2, "is not a topic id"),
    ],
)
def test_a_broken_partition_metadata_is_reported_with_its_line(
    tmp_path: Path, text: str, line: int, why: str
) -> None:
    with pytest.raises(CheckpointError) as caught:
        read_topic_id(FILES, written(tmp_path / "partition.metadata", text))
    assert caught.value.line_number == line
    assert why in caught.value.why


def test_a_later_version_of_partition_metadata_is_read(tmp_path: Path) -> None:
    text = f"version: 1\ntopic_id: {uuid_text(TOPIC_ID)}\nmore: x\n"
    assert read_topic_id(FILES, written(tmp_path / "partition.metadata", text)) == TOPIC_ID


@pytest.mark.parametrize(
    "text",
    [
        *("", "{}", "[]", '{"brokerEpoch":null}', '{"brokerEpoch":"x"}'),
        pytest.param("[" * 100_000, id="nested"),
    ],
)
def test_a_clean_shutdown_file_that_tells_no_epoch(tmp_path: Path, text: str) -> None:
    written(tmp_path / ".kafka_cleanshutdown", text)
    assert read_clean_shutdown(FILES, tmp_path) is None


@pytest.mark.parametrize(
    ("text", "line", "why"),
    [
        ("cluster.id=a\nnode.id=1\n", 1, "version 0 is not that of a KRaft node"),
        ("#\nversion=0\nbroker.id=1\n", 2, "version 0 is not that of a KRaft node"),
        ("version=1\nnode.id=1\n", 2, "cluster.id is missing"),
        ("version=1\ncluster.id=a\n", 2, "node.id is missing"),
        ("version=1\ncluster.id=a\nnode.id=one\n", 3, "'one' is not a number"),
        ("version=1\ncluster.id=a\nnode.id=1\ndirectory.id=x\n", 4, "'x'"),
        ("version=1\ncluster.id=\\u12\n", 1, "hex digits"),
    ],
)
def test_broken_meta_properties_are_reported_with_their_line(
    tmp_path: Path, text: str, line: int, why: str
) -> None:
    written(tmp_path / "meta.properties", text)
    with pytest.raises(CheckpointError) as caught:
        read_meta_properties(FILES, tmp_path)
    assert caught.value.line_number == line
    assert why in caught.value.why


def test_meta_properties_may_lack_the_directory_id(tmp_path: Path) -> None:
    meta = MetaProperties("a cluster", 0, None)
    write_meta_properties(FILES, tmp_path, meta)
    assert read_meta_properties(FILES, tmp_path) == meta
