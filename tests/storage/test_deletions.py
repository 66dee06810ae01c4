"""What was renamed for deletion is removed in the order in which it is due."""

from pathlib import Path, PosixPath

from odradek.storage.deletions import Deletions


class SlowPath(PosixPath):
    """A path that fails when it is compared: that takes long for the logs of a large topic."""

    def __lt__(self, other: object) -> bool:
        raise AssertionError("compared")


def test_due_paths_are_taken_in_order_and_not_compared() -> None:
    now_ms = 0
    deletions = Deletions(lambda: now_ms)
    later = [SlowPath(f"later-{number}") for number in range(3)]
    sooner = [SlowPath(f"sooner-{number}") for number in (2, 1, 0)]
    deletions.add(later, 200)
    deletions.add(sooner, 100)
    assert deletions.take_due() == []
    now_ms = 100
    assert deletions.take_due() == sooner
    now_ms = 200
    assert deletions.take_due() == later
    assert deletions.take_due() == []


def test_what_could_not_be_removed_is_due_again_later() -> None:
    now_ms = 0
    deletions = Deletions(lambda: now_ms)
    path = Path("stays")
    deletions.add([path], 0)
    deletions.note(deletions.take_due(), {path: OSError("busy")})
    assert deletions.take_due() == []
    now_ms = 60_000
    assert deletions.take_due() == [path]


def test_thousands_are_taken_in_parts_because_a_stop_waits_for_a_part() -> None:
    deletions = Deletions(lambda: 0)
    paths = [Path(f"path-{number}") for number in range(1_000)]
    deletions.add(paths, 0)
    parts = []
    while part := deletions.take_due():
        parts.append(part)
    assert max(map(len, parts)) <= 100
    assert [path for part in parts for path in part] == paths
