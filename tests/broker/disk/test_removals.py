"""What is deleted is removed from the disk later, and tried again where that fails."""

from pathlib import Path

import pytest

from odradek.coordinator.metadata.topic_creation import NewTopic
from odradek.coordinator.metadata.topic_deletion import TopicRef
from odradek.storage import deletions
from tests.support.broker_in_loop import broker_in_loop, until
from tests.support.faulty_files import FaultyFiles

pytestmark = pytest.mark.usefixtures("both_produce_paths")


def retired(directory: Path) -> list[str]:
    return [path.name.partition(".")[0] for path in directory.glob("*-delete")]


async def test_what_cannot_be_removed_is_named_once_and_tried_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deletions, "RETRY_AFTER_MS", 0, raising=False)
    files = FaultyFiles()
    settings = {"log_segment_delete_delay_ms": "0"}
    async with broker_in_loop([tmp_path], files, **settings) as served:
        for name in ("t", "u"):
            await served.broker.admin.topics.create([NewTopic(name=name)])
        files.fail(lambda kind, path: kind == "remove_tree" and path.name.startswith("t-0"))
        await served.broker.admin.topics.delete([TopicRef(name="t"), TopicRef(name="u")])

        def tries() -> int:
            return sum(kind == "remove_tree" and "t-0" in path.name for kind, path in files.seen)

        await until(lambda: tries() >= 2)
        assert retired(tmp_path) == ["t-0"]
        files.heal()
        await until(lambda: not retired(tmp_path))
    assert len([each for each in caplog.messages if "could not be removed" in each]) == 1
