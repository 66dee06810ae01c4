"""min.insync.replicas while eligible leader replicas (KIP-966) are enabled.

The controller must know the value of every broker. So the metadata log has one for the cluster, and
no broker has its own. If the cluster has none, that of the leader's configuration file is written.
Kafka: ConfigurationControlManager.maybeGenerateElrSafetyRecords, ActivationRecordsGenerator.
"""

from odradek.coordinator.runtime.outcome import JournalRecord
from odradek.protocol.records.cluster_metadata import ConfigRecord

from .configs import ConfigResourceType, Configs

MIN_INSYNC_REPLICAS = "min.insync.replicas"
ALL_BROKERS = ""


def elr_safety_records(configs: Configs, written: int) -> list[JournalRecord]:
    """Return the records needed to enable the feature; `written` is the file's value."""
    records = []
    if MIN_INSYNC_REPLICAS not in configs.of(ConfigResourceType.BROKER, ALL_BROKERS):
        records.append(_record(ALL_BROKERS, str(written)))
    records += [
        _record(name, None)
        for name in configs.names(ConfigResourceType.BROKER)
        if name != ALL_BROKERS
        and MIN_INSYNC_REPLICAS in configs.of(ConfigResourceType.BROKER, name)
    ]
    return records


def _record(broker: str, value: str | None) -> JournalRecord:
    return JournalRecord(
        ConfigRecord(
            resource_type=ConfigResourceType.BROKER,
            resource_name=broker,
            name=MIN_INSYNC_REPLICAS,
            value=value,
        )
    )
