"""The cluster's metadata at one moment, as the records of a snapshot.

Taking an image is quick, for its parts are values or are copied shallow: the broker may go on
changing the metadata while the records are made one by one. They come in Kafka's order: features
(metadata.version first, for it decides how the rest is written), brokers, controllers, topics with
their partitions, configs, quotas, the next producer id, ACLs, SCRAM users, delegation tokens; and
at last what we cannot read. Kafka: MetadataImage.write.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from odradek.coordinator.outcome import JournalRecord
from odradek.protocol.records.cluster_metadata import (
    ConfigRecord,
    FeatureLevelRecord,
    ProducerIdsRecord,
    TopicRecord,
)

from .broker_registration import BrokerRegistration
from .cluster_metadata import ClusterMetadata
from .features import ELR_VERSION, METADATA_VERSION, Features
from .kept_records import KeptRecords
from .topics import Partition

NOBODY = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataImage:
    """All records before `end_offset`; the last of them is of the time `last_contained_ms`."""

    end_offset: int
    last_contained_ms: int
    features: Features
    brokers: tuple[BrokerRegistration, ...]
    topics: tuple[tuple[str, bytes, tuple[Partition, ...]], ...]
    configs: tuple[ConfigRecord, ...]
    next_producer_id: int
    kept: KeptRecords

    @classmethod
    def of(cls, metadata: ClusterMetadata, end_offset: int) -> "MetadataImage":
        """The metadata as it is now; `end_offset` is the end of its log."""
        assert not metadata.in_transaction, "half of a metadata transaction makes no image"
        features = Features()
        features.in_log = metadata.features.in_log.copy()
        return cls(
            end_offset=end_offset,
            last_contained_ms=metadata.last_timestamp_ms,
            features=features,
            brokers=tuple(metadata.brokers.values()),
            topics=tuple(
                (topic.name, topic.id, tuple(topic.partitions.values()))
                for topic in metadata.topics.values()
            ),
            configs=tuple(metadata.configs.records()),
            next_producer_id=metadata.next_producer_id,
            kept=metadata.kept.copy(),
        )

    def records(self) -> Iterator[JournalRecord]:
        """The records that say the same as all those of the log before `end_offset`."""
        yield from self._levels()
        for broker in self.brokers:
            yield self.features.versioned(broker.to_record())
        for controller in self.kept.controllers.values():
            yield JournalRecord(controller)
        yield from self._topics()
        for config in self.configs:
            yield JournalRecord(config)
        yield from self.kept.behind_the_configs()
        if self.next_producer_id:
            yield JournalRecord(
                ProducerIdsRecord(
                    broker_id=NOBODY, broker_epoch=-1, next_producer_id=self.next_producer_id
                )
            )
        yield from self.kept.at_the_end()

    def _levels(self) -> Iterator[JournalRecord]:
        levels = self.features.in_log
        for name in sorted(levels, key=lambda name: name != METADATA_VERSION):
            yield JournalRecord(FeatureLevelRecord(name=name, feature_level=levels[name]))

    def _topics(self) -> Iterator[JournalRecord]:
        has_elr = self.features.level(ELR_VERSION) > 0
        for name, topic_id, partitions in self.topics:
            yield JournalRecord(TopicRecord(name=name, topic_id=topic_id))
            for partition in partitions:
                told = partition
                if not has_elr and (told.eligible_leader_replicas or told.last_known_elr):
                    told = replace(told, eligible_leader_replicas=(), last_known_elr=())
                yield self.features.versioned(told.to_record(topic_id))
