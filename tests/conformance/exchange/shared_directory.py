"""The directory, and who serves it now."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from odradek.coordinator.metadata.metadata_snapshot import read_snapshot
from odradek.coordinator.metadata.snapshot_batches import control_records
from odradek.protocol.records.control import ControlRecordType
from odradek.storage.files import Files
from tests.support.broker_process import ApacheKafkaProcess, BrokerProcess
from tests.support.kafka_jars import BROKER_VERSION

# Both brokers are given these. Segments are small, so that every topic has several.
SETTINGS = {
    "offsets.topic.num.partitions": "3",
    "transaction.state.log.num.partitions": "2",
    "share.coordinator.state.topic.num.partitions": "2",
    "log.segment.delete.delay.ms": "0",
    "log.initial.task.delay.ms": "100",
    "log.flush.start.offset.checkpoint.interval.ms": "100",
    "transaction.max.timeout.ms": "900000",
    "transaction.partition.verification.enable": "true",
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
}
ONLY_KAFKA = {
    # A broker that was killed still counts as alive for so long, and none may take its place.
    "broker.session.timeout.ms": "1500",
    "broker.heartbeat.interval.ms": "500",
    # Its coordinator writes a marker again if the answer takes longer; a busy machine may be slow.
    "request.timeout.ms": "300000",
}


# What names the voters of a dynamic quorum, until it is cleaned away.
VOTERS = "00000000000000000000-0000000000.checkpoint"


def names_voters(snapshot: Path) -> bool:
    """Whether the snapshot is there, and has the voters of a dynamic quorum."""
    if not snapshot.exists():
        return False
    kinds = [kind for kind, _ in control_records(read_snapshot(Files(), snapshot))]
    return ControlRecordType.KRAFT_VOTERS in kinds


class SharedDirectory:
    """A directory with a data directory in it; only one broker lives there at a time."""

    def __init__(
        self, directory: Path, *, kafka_version: str = BROKER_VERSION, **settings: str
    ) -> None:
        """`kafka_version` is that of `kafka`; `served_by` may be given another."""
        self.directory = directory
        self._kafka_version = kafka_version
        self._settings = {**SETTINGS, **settings}

    @property
    def data(self) -> Path:
        return self.directory / "data"

    @property
    def metadata(self) -> Path:
        """The directory of the metadata log."""
        return self.data / "__cluster_metadata-0"

    def kafka(self, version: str | None = None) -> BrokerProcess:
        """Apache Kafka, not started yet; its quorum has the form that the directory has."""
        settings = {**self._settings, **ONLY_KAFKA}
        version = version or self._kafka_version
        process = ApacheKafkaProcess(self.directory, settings, version)
        voters = process.settings["controller.quorum.voters"]
        if names_voters(self.metadata / VOTERS):
            del process.settings["controller.quorum.voters"]
            process.settings["controller.quorum.bootstrap.servers"] = voters.partition("@")[2]
        return process

    def odradek(self) -> BrokerProcess:
        """odradek, not started yet; a new directory is formatted for this Kafka."""
        process = BrokerProcess(self.directory, self._settings)
        if not self.data.exists() and self._kafka_version != BROKER_VERSION:
            process.format("--release-version", self._kafka_version)
        return process

    @contextmanager
    def served_by(self, name: str, *, killed: bool) -> Iterator[BrokerProcess]:
        """A life of `kafka`, of a version of it, or of `odradek`; it ends cleanly or by SIGKILL."""
        version = None if name == "kafka" else name
        broker = self.odradek() if name == "odradek" else self.kafka(version)
        try:
            yield broker.start()
            if killed:
                broker.kill()
            else:
                assert broker.terminate() in broker.clean_exit_codes, broker.log_text()[-4000:]
            assert broker.crashes_in_log() == [], broker.log_text()
        finally:
            broker.stop()
