"""odradek.create.topics: topics that exist when a start is reported."""

import asyncio
import logging
from pathlib import Path

import pytest

from odradek.broker.lifecycle.running import start_broker
from odradek.config.broker_config import BrokerConfig
from odradek.config.errors import ConfigError

Topics = dict[str, tuple[int, dict[str, str]]]


def topics_after_a_start(directory: Path, *entries: str, **settings: str) -> Topics:
    """The partition count and the configs of each topic."""
    texts = {"listeners": "PLAINTEXT://127.0.0.1:0", "log.dirs": str(directory), **settings}
    config = BrokerConfig.from_texts({**texts, "odradek.create.topics": ",".join(entries)})

    async def started() -> Topics:
        running = await start_broker(config)
        metadata = running.broker.metadata
        found = {
            name: (len(topic.partitions), dict(metadata.configs.of_topic(name)))
            for name, topic in metadata.topics.items()
        }
        await running.stop()
        return found

    return asyncio.run(started())


def test_missing_topics_are_created_and_others_stay(tmp_path: Path) -> None:
    first = topics_after_a_start(tmp_path, "a:2:3", "b:1:1:compact", "a:9:1:compact")
    assert first == {"a": (2, {}), "b": (1, {"cleanup.policy": "compact"})}
    again = topics_after_a_start(tmp_path, "a:5:1", " c ", **{"num.partitions": "3"})
    assert again == {**first, "c": (3, {})}


def test_a_topic_that_cannot_be_created_is_logged_and_the_others_are_created(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.ERROR):
        assert set(topics_after_a_start(tmp_path, "no/name:1:1", "d:1:1:shrink", "e")) == {"e"}
    assert [record.args[0] for record in caplog.records] == ["no/name", "d"]


@pytest.mark.parametrize("entry", ["a:x", "a:0", "a:1:-1", "a:1:x:compact"])
def test_numbers_that_are_none_are_refused(entry: str) -> None:
    with pytest.raises(ConfigError, match=r"odradek\.create\.topics"):
        BrokerConfig.from_texts({"odradek.create.topics": entry})
