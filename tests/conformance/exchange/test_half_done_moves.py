"""A move between log directories in which one broker was killed goes on with the other one.

The moves are held back by their rate, which is a setting of the cluster: whoever comes next keeps
to it too, until the test takes it away.
"""

from pathlib import Path
from typing import Any

import pytest

from odradek.protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopic,
)
from odradek.protocol.messages.describe_log_dirs import (
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
)
from odradek.protocol.messages.incremental_alter_configs import (
    IncrementalAlterConfigsResponse,
)
from odradek.protocol.record import Record
from odradek.protocol.record_batch import build_batch
from tests.conformance.exchange.seen import seen
from tests.conformance.exchange.shared_directory import SharedDirectory
from tests.support.broker_process import BrokerProcess, against_apache_kafka
from tests.support.bystander import produce
from tests.support.config_requests import alter_configs_request
from tests.support.java_tools import why_no_java
from tests.support.lengths import only_long
from tests.support.topics import create_topic
from tests.support.waiting import wait_until
from tests.support.wire import WireClient

pytestmark = [
    pytest.mark.java,
    pytest.mark.slow,
    pytest.mark.skipif(why_no_java() is not None, reason=str(why_no_java())),
    pytest.mark.skipif(against_apache_kafka(), reason="compares the two"),
    only_long("other directories are exchanged in test_exchange.py"),
]

RATE = "replica.alter.log.dirs.io.max.bytes.per.second"
BROKER = 4
# Kafka averages over eleven seconds: after two fetches of a mebibyte it waits for that long.
RATE_OF_SOME_SECONDS = "150000"
VALUE = bytes(400_000)
BATCHES = 8  # of 1 MiB segments, three


def logs(broker: BrokerProcess) -> dict[str, tuple[int, bool]]:
    """The size of `t-0` in each directory that has it, and whether it is on its way there."""
    with WireClient(broker.port) as client:
        told = client.ask(DescribeLogDirsRequest(topics=None), DescribeLogDirsResponse, 4)
    return {
        Path(one.log_dir).name: (partition.partition_size, partition.is_future_key)
        for one in told.results
        for topic in one.topics
        if topic.name == "t"
        for partition in topic.partitions
    }


def limit(broker: BrokerProcess, rate: str | None) -> None:
    request = alter_configs_request(BROKER, "", {RATE: rate})
    with WireClient(broker.port) as client:
        [told] = client.ask(request, IncrementalAlterConfigsResponse, 1).responses
    assert told.error_code == 0, told


def begin_to_move(broker: BrokerProcess, shared: SharedDirectory) -> str:
    """Returns the directory where it goes; a part of it is there."""
    [source] = logs(broker)
    target = "other" if source == "data" else "data"
    limit(broker, RATE_OF_SOME_SECONDS)
    topics = [AlterReplicaLogDirTopic(name="t", partitions=[0])]
    wanted = AlterReplicaLogDir(path=str(shared.directory / target), topics=topics)

    def is_taken() -> bool:
        with WireClient(broker.port) as client:
            request = AlterReplicaLogDirsRequest(dirs=[wanted])
            told = client.ask(request, AlterReplicaLogDirsResponse, 2)
        return bool(told.results[0].partitions[0].error_code == 0)

    wait_until(is_taken)  # Kafka listens before it leads
    wait_until(lambda: logs(broker).get(target, (0, False))[0] > 0)
    size, is_future = logs(broker)[target]
    assert is_future
    assert size < logs(broker)[source][0]
    return target


def let_it_end(broker: BrokerProcess, target: str) -> None:
    limit(broker, None)
    wait_until(lambda: list(logs(broker)) == [target] and not logs(broker)[target][1])


def write(broker: BrokerProcess) -> None:
    batch = build_batch([Record(None, VALUE, 1_700_000_000_000)])
    with WireClient(broker.port) as client:
        produce(client, "t", batch)


def seen_log(broker: BrokerProcess) -> Any:
    """Its offsets, records and producers."""
    return seen(broker.port, [], [])["topics"]["t"]["logs"]


def test_a_move_goes_on_with_the_other_broker(tmp_path: Path) -> None:
    shared = SharedDirectory(tmp_path, **{"log.dirs": f"{tmp_path / 'data'},{tmp_path / 'other'}"})
    with shared.served_by("odradek", killed=False) as broker:
        create_topic(broker.bootstrap, "t", config={"segment.bytes": "1048576"})
        for _ in range(BATCHES):
            write(broker)
        left = seen_log(broker)
    for first, second in (("kafka", "odradek"), ("odradek", "kafka")):
        with shared.served_by(first, killed=True) as broker:
            target = begin_to_move(broker, shared)
        assert list((tmp_path / target).glob("t-0.*-future"))
        with shared.served_by(second, killed=False) as broker:
            assert seen_log(broker) == left
            let_it_end(broker, target)
            assert seen_log(broker) == left
            write(broker)
            left = seen_log(broker)
        assert (tmp_path / target / "t-0").is_dir()
        assert not list(tmp_path.glob("*/t-0.*-future"))
