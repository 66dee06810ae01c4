"""Log directories: one broker each, this node's, formatted when empty and never overwritten."""

import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from odradek.storage.data_directory import (
    DirectoryError,
    OpenedDirectories,
    open_directories,
)
from odradek.storage.files import FileLock, Files

META = "cluster.id={}\nnode.id={}\nversion=1\ndirectory.id={}\n"
ID_A, ID_B = "J8aAPcfLQt2bqs1JT_rMgQ", "4L6g3nShT-eMCtK--X86sw"


def open_all(*paths: Path, node_id: int = 0, cluster_id: str | None = None) -> OpenedDirectories:
    return open_directories(Files(), paths, node_id=node_id, cluster_id=cluster_id)


def close(opened: OpenedDirectories) -> None:
    for directory in opened.online:
        directory.unlock()


def write_meta(path: Path, cluster: str = "c1", node: int = 0, directory: str = ID_A) -> None:
    path.mkdir(parents=True, exist_ok=True)
    (path / "meta.properties").write_text(META.format(cluster, node, directory))


def refusal(*paths: Path, node_id: int = 0, cluster_id: str | None = None) -> str:
    before = {p: p.read_bytes() for path in paths for p in path.glob("meta.properties")}
    with pytest.raises(DirectoryError) as caught:
        open_all(*paths, node_id=node_id, cluster_id=cluster_id)
    assert before == {p: p.read_bytes() for path in paths for p in path.glob("meta.properties")}
    return str(caught.value)


def test_empty_directories_become_this_nodes(tmp_path: Path) -> None:
    opened = open_all(tmp_path / "a", tmp_path / "deep" / "b", node_id=3)
    first, second = opened.online
    assert first.cluster_id == second.cluster_id
    assert first.directory_id != second.directory_id
    assert not first.had_clean_shutdown
    close(opened)
    text = (tmp_path / "a" / "meta.properties").read_text()
    assert f"cluster.id={first.cluster_id}\n" in text
    assert "node.id=3\n" in text
    again = open_all(tmp_path / "a", node_id=3)
    assert again.online[0].directory_id == first.directory_id
    assert (tmp_path / "a" / "meta.properties").read_text() == text
    close(again)


def test_only_the_owner_may_enter_a_directory_that_is_made(tmp_path: Path) -> None:
    found = tmp_path / "found"
    found.mkdir()
    found.chmod(0o755)
    made = tmp_path / "parent" / "made"
    close(open_all(found, made))
    assert stat.S_IMODE(made.stat().st_mode) == 0o700
    assert stat.S_IMODE(found.stat().st_mode) == 0o755


def test_a_new_directory_joins_the_cluster_of_the_others(tmp_path: Path) -> None:
    write_meta(tmp_path / "old", cluster="mine")
    opened = open_all(tmp_path / "old", tmp_path / "new")
    assert [directory.cluster_id for directory in opened.online] == ["mine", "mine"]
    close(opened)


def test_another_node_id_names_file_key_and_both_values(tmp_path: Path) -> None:
    write_meta(tmp_path / "a", node=7)
    message = refusal(tmp_path / "a", node_id=1)
    for part in (str(tmp_path / "a" / "meta.properties"), "node.id", "7", "1"):
        assert part in message


def test_another_cluster_id_names_file_key_and_both_values(tmp_path: Path) -> None:
    write_meta(tmp_path / "a", cluster="first")
    write_meta(tmp_path / "b", cluster="second", directory=ID_B)
    message = refusal(tmp_path / "a", tmp_path / "b")
    for part in (str(tmp_path / "b" / "meta.properties"), "cluster.id", "first", "second"):
        assert part in message
    message = refusal(tmp_path / "a", cluster_id="wanted")
    assert "first" in message
    assert "wanted" in message


def test_a_copied_directory_is_noticed(tmp_path: Path) -> None:
    write_meta(tmp_path / "a")
    write_meta(tmp_path / "b")
    assert ID_A in refusal(tmp_path / "a", tmp_path / "b")


def test_an_id_is_added_where_the_directory_has_none(tmp_path: Path) -> None:
    (tmp_path / "meta.properties").write_text("cluster.id=c\nnode.id=0\nversion=1\n")
    opened = open_all(tmp_path)
    assert "directory.id=" in (tmp_path / "meta.properties").read_text()
    assert opened.online[0].cluster_id == "c"
    close(opened)


def test_garbage_in_meta_properties_is_refused(tmp_path: Path) -> None:
    (tmp_path / "meta.properties").write_text("version=1\nnode.id=many\ncluster.id=c\n")
    assert "meta.properties" in refusal(tmp_path)


@pytest.mark.parametrize("name", ["orders-0", f"orders-0.{'a' * 32}-delete"])
def test_logs_without_meta_properties_are_not_taken_over(tmp_path: Path, name: str) -> None:
    (tmp_path / name).mkdir()
    assert name in refusal(tmp_path)
    assert not (tmp_path / "meta.properties").exists()


def test_what_is_no_log_does_not_hinder(tmp_path: Path) -> None:
    for name in ("lost+found", ".snapshots", "notes", "notes-", "orders-x", "orders-0-delete"):
        (tmp_path / name).mkdir()
    (tmp_path / "README-1").write_text("a file")
    close(open_all(tmp_path))


def test_a_second_broker_is_kept_out_in_this_process_and_in_another(tmp_path: Path) -> None:
    opened = open_all(tmp_path)
    assert str(tmp_path) in refusal(tmp_path)
    script = (
        "import sys; from pathlib import Path\n"
        "from odradek.storage.data_directory import *\n"
        "from odradek.storage.files import Files\n"
        "try: open_directories(Files(), [Path(sys.argv[1])], node_id=0)\n"
        "except DirectoryError as error: print(error)\n"
    )
    command = [sys.executable, "-c", script, str(tmp_path)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    assert f"log directory {tmp_path} is in use" in done.stdout
    close(opened)
    close(open_all(tmp_path))


@pytest.mark.parametrize("is_link", [True, False])
def test_a_directory_that_is_named_in_two_ways_is_refused(tmp_path: Path, is_link: bool) -> None:
    first, second = tmp_path / "a", tmp_path / "b" / ".." / "a"
    (tmp_path / "b").mkdir()
    if is_link:
        first.mkdir()
        second = tmp_path / "link"
        second.symlink_to(first)
    assert refusal(first, second) == f"log directories {first} and {second} are the same directory"
    close(open_all(first))


def test_a_refusal_unlocks_what_was_locked_before_it(tmp_path: Path) -> None:
    write_meta(tmp_path / "b", node=9)
    refusal(tmp_path / "a", tmp_path / "b")
    close(open_all(tmp_path / "a"))


def test_the_mark_of_a_clean_shutdown_is_read_once(tmp_path: Path) -> None:
    opened = open_all(tmp_path)
    opened.online[0].mark_clean(42)
    close(opened)
    mark = tmp_path / ".kafka_cleanshutdown"
    assert mark.read_text() == '{"version":0,"brokerEpoch":42}'
    opened = open_all(tmp_path)
    assert (opened.online[0].had_clean_shutdown, opened.online[0].broker_epoch) == (True, 42)
    assert not mark.exists()
    close(opened)
    mark.touch()  # as Kafka before 3.7 left it
    opened = open_all(tmp_path)
    assert (opened.online[0].had_clean_shutdown, opened.online[0].broker_epoch) == (True, None)
    close(opened)


class BrokenDisk(Files):
    """One directory cannot be locked."""

    def __init__(self, broken: Path) -> None:
        self.broken = broken

    def lock(self, path: Path) -> FileLock:
        if path.parent == self.broken:
            raise OSError(5, "Input/output error", str(path))
        return super().lock(path)


def test_a_broken_disk_takes_only_its_directory(tmp_path: Path) -> None:
    good, bad = tmp_path / "good", tmp_path / "bad"
    opened = open_directories(BrokenDisk(bad), [bad, good], node_id=0)
    assert [directory.path for directory in opened.online] == [good]
    assert "Input/output error" in opened.offline[bad]
    close(opened)
    with pytest.raises(DirectoryError, match="no log directory can be used"):
        open_directories(BrokenDisk(bad), [bad], node_id=0)


def test_a_directory_that_has_failed_is_unlocked(tmp_path: Path) -> None:
    path = tmp_path / "a"
    [directory] = open_all(path).online
    shutil.rmtree(path)
    path.touch()
    directory.unlock()
    path.unlink()
    close(open_all(path))
