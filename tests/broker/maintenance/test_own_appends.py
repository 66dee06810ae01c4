"""Batches that the broker appends itself."""

from pathlib import Path

import pytest

from odradek.coordinator.metadata.topic_creation import NewTopic
from odradek.protocol.errors import ApiError, ErrorCode
from tests.support.broker_in_loop import broker_in_loop
from tests.support.faulty_files import FaultyFiles, below
from tests.support.log_box import batch_of


async def test_a_sync_that_fails_has_the_error_that_a_client_would_get(tmp_path: Path) -> None:
    files = FaultyFiles()
    directories = [tmp_path / "a", tmp_path / "b"]  # the metadata log is in the first
    async with broker_in_loop(directories, files, log_flush_interval_messages="1") as served:
        await served.broker.admin.topics.create([NewTopic(name="t", partition_count=2)])
        logs = served.broker.log_manager.logs()
        (log,) = [log for log in logs if log.directory.parent == directories[1]]
        append = served.broker.own_appends.append
        assert await append("t", log.partition, bytearray(batch_of(b"first"))) == 0
        files.fail(below(directories[1], "fsync"))
        with pytest.raises(ApiError) as failed:
            await append("t", log.partition, bytearray(batch_of(b"second")))
        assert failed.value.code is ErrorCode.KAFKA_STORAGE_ERROR
        files.heal()
