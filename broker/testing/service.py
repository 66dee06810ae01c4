"""Serves the calls of a test, in the process of its broker."""

from __future__ import annotations

import asyncio
import logging
import shutil
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from odradek.broker.admin.log_levels import reset_levels
from odradek.broker.broker import Broker
from odradek.broker.lifecycle.running import RunningBroker, open_broker
from odradek.broker.network.listeners import (
    BoundListener,
    ListenError,
    bind_listeners,
    with_ports,
)
from odradek.broker.startup.preflight import RefusedToStartError
from odradek.broker.testing import calls
from odradek.config.broker_config import BrokerConfig
from odradek.config.errors import ConfigError
from odradek.config.listeners import Listener
from odradek.coordinator.classic_groups.group import ClassicGroup
from odradek.coordinator.consumer_groups.group import ConsumerGroup
from odradek.coordinator.metadata.config_changes import Alteration, ConfigResource
from odradek.coordinator.metadata.feature_updates import FeatureUpdate, UpgradeType
from odradek.coordinator.metadata.features import METADATA_VERSION
from odradek.coordinator.metadata.quota_changes import QuotaAlteration
from odradek.coordinator.metadata.topic_creation import DEFAULT, NewTopic
from odradek.coordinator.metadata.topic_deletion import TopicRef
from odradek.coordinator.share_groups.group import ShareGroup
from odradek.coordinator.streams_groups.group import StreamsGroup
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.protocol.messages.offset_fetch import OffsetFetchRequestGroup
from odradek.protocol.record import Record
from odradek.protocol.record_batch import build_batch
from odradek.storage.data_directory import DirectoryError
from odradek.storage.log import PartitionLog
from odradek.storage.topic_names import is_internal

from .access import add_user, remove_access
from .call import Call
from .clock import AdjustableClock
from .faults import Faults
from .files import DisposableFiles
from .leftover_clients import LeftoverClients
from .snapshots import copy_directory, end_restore, restored_directory
from .visible_records import visible_records

# What `serve` raises if it cannot do what a test asks for.
REFUSALS = (
    ApiError,
    ConfigError,
    ListenError,
    DirectoryError,
    RefusedToStartError,
    OSError,
    msgspec.MsgspecError,
)


class Setup:
    """What the brokers that serve one test after the other share: ports, clock, faults, files."""

    def __init__(
        self,
        config: BrokerConfig,
        faults: Faults,
        leftover_clients: LeftoverClients,
        ports: calls.Ports = calls.Ports(),  # noqa: B008 # it is frozen
    ) -> None:
        """Bind the ports: these, or as configured. Raises ListenError.

        The handlers of `faults` are those of `leftover_clients`.
        """
        self.config = config
        self.is_cluster = config.odradek_nodes > 1
        reserve = _reserve_ports if self.is_cluster else _bind_node
        self.nodes = reserve(config, ports.nodes)
        self.registry = _bind(config.registry_listener, ports.registry)
        self.http = _bind(config.http_listener, ports.http)
        self.clock = AdjustableClock()
        self.faults = faults
        self.leftover_clients = leftover_clients
        self.files = DisposableFiles()

    async def open(self) -> RunningBroker:
        """Start a broker. Raises ConfigError, ListenError, DirectoryError, RefusedToStartError."""
        for directory in self.config.data_directories:
            end_restore(directory.absolute())
        nodes = [[_copy(each) for each in bound] for bound in self.nodes]
        return await open_broker(
            self.config,
            () if self.is_cluster else nodes[0],
            nodes=nodes if self.is_cluster else (),
            http=_copy(self.http) if self.http else None,
            registry=_copy(self.registry) if self.registry else None,
            handlers=self.faults.handlers,
            now_ms=self.clock.wall_ms,
            timer_ms=self.clock.timer_ms,
            files=self.files,
        )


def _bind(listener: Listener | None, port: int) -> BoundListener | None:
    if listener is None:
        return None
    return bind_listeners([listener._replace(port=port or listener.port)])[0]


def _bind_node(config: BrokerConfig, ports: Sequence[Sequence[int]]) -> list[list[BoundListener]]:
    listeners = config.open_listeners
    return [bind_listeners(with_ports(listeners, ports[0]) if ports else listeners)]


def _reserve_ports(
    config: BrokerConfig, ports: Sequence[Sequence[int]]
) -> list[list[BoundListener]]:
    # Imported here, because most brokers play no cluster.
    from odradek.broker.cluster.played_cluster import reserve_ports

    return reserve_ports(config, ports)


def _copy(bound: BoundListener) -> BoundListener:
    return BoundListener(bound.listener, [each.dup() for each in bound.sockets])


class Service:
    """A broker on ports that stay open, also while it is replaced by one with other data."""

    def __init__(self, setup: Setup, running: RunningBroker) -> None:
        self._setup = setup
        self._clock = setup.clock
        self._faults = setup.faults
        self._leftover_clients = setup.leftover_clients
        self._files = setup.files
        self._snapshots = 0
        self._running = running
        self._features = dict(running.broker.metadata.features.in_log)

    @property
    def ports(self) -> calls.Ports:
        """The ports that clients use."""
        registry, http = self._setup.registry, self._setup.http
        return calls.Ports(
            nodes=[[each.port for each in bound] for bound in self._setup.nodes],
            registry=registry.port if registry else 0,
            http=http.port if http else 0,
        )

    @property
    def broker(self) -> Broker:
        """The broker that runs now."""
        return self._running.broker

    @property
    def _data(self) -> Path:
        """The data directory. Raises OSError if there are several."""
        first, *others = self._setup.config.data_directories
        if others:
            raise OSError("a broker with several log.dirs has no snapshots")
        return first

    async def serve(self, call: Call) -> object:
        """Do what the test asks for, and return the result. Raises ApiError, OSError."""
        serve = _SERVED.get(type(call))
        result = self._serve_cluster(call) if serve is None else serve(self, call)
        return await result if isinstance(result, Awaitable) else result

    def _serve_cluster(self, call: Call) -> object:
        # Imported here, because most brokers play no cluster.
        from .cluster_service import ClusterService

        cluster, broker = self._running.cluster, self.broker
        if cluster is None:
            raise ApiError(ErrorCode.INVALID_REQUEST, "the broker has one node: Broker(nodes=3)")
        topics = broker.metadata.topics
        return ClusterService(cluster, broker.coordinators, topics).serve(call)

    async def stop(self) -> None:
        """Stop the broker cleanly. It waits for no request that a fault delays."""
        self._faults.clear()
        await self._running.stop()

    # -- topics and groups ------------------------------------------------------------------------

    async def create_topic(self, call: calls.CreateTopic) -> None:
        """Create a topic."""
        count = DEFAULT if call.partitions is None else call.partitions
        new = NewTopic(name=call.name, partition_count=count, configs=dict(call.configs))
        for result in (await self.broker.admin.topics.create([new])).values():
            if isinstance(result, ApiError):
                raise result

    def add_user(self, call: calls.AddUser) -> None:
        """Let a user log in."""
        add_user(self.broker, call.name, call.password)

    def list_topics(self, _: calls.ListTopics) -> dict[str, int]:
        """Count the partitions of each topic that is not internal."""
        topics = self.broker.metadata.topics
        return {name: len(topics[name].partitions) for name in topics if not is_internal(name)}

    def read_records(self, call: calls.ReadRecords) -> list[calls.StoredRecord]:
        """Read the records of a topic, partition by partition."""
        topic = self.broker.metadata.topics.get(call.topic)
        if topic is None:
            raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic {call.topic}")
        partitions = topic.partitions if call.partition is None else [call.partition]
        return [
            calls.StoredRecord(
                call.topic,
                partition,
                record.offset,
                record.timestamp_ms,
                record.key,
                record.value,
                list(record.headers),
            )
            for partition in partitions
            if (log := self._log(call.topic, partition)) is not None
            for record in visible_records(log, committed=call.committed)
        ]

    async def produce(self, call: calls.Produce) -> int:
        """Append a record to a partition, and return its offset."""
        if call.topic not in self.broker.metadata.topics:
            await self.create_topic(calls.CreateTopic(call.topic, None, {}))
        log = self.broker.log_manager.get(call.topic, call.partition)
        now_ms = self._clock.wall_ms()
        record = Record(call.key, call.value, now_ms, tuple(call.headers))
        return log.append(build_batch([record]), now_ms=now_ms).base_offset

    def _log(self, topic: str, partition: int) -> PartitionLog | None:
        """The log of a partition; None while it is being created."""
        try:
            return self.broker.log_manager.get(topic, partition)
        except ApiError as error:
            exists = partition in self.broker.metadata.topics[topic].partitions
            if exists and error.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                return None
            raise

    def committed_offsets(self, call: calls.CommittedOffsets) -> dict[int, int]:
        """Find the offsets that a group has committed in a topic."""
        groups = self.broker.coordinators.groups
        if not groups.shards.is_open:
            return {}
        wanted = OffsetFetchRequestGroup(group_id=call.group_id, member_epoch=-1, topics=None)
        topics = groups.offsets.fetch(wanted, None)
        return {
            partition.partition_index: partition.committed_offset
            for topic in topics
            if topic.name == call.topic
            for partition in topic.partitions
        }

    async def expire_group(self, call: calls.ExpireGroup) -> None:
        """Remove all members of a group, as if their sessions had expired."""
        groups = self.broker.coordinators.groups
        group = groups.shards.of(call.group_id).state.groups.get(call.group_id)
        if not isinstance(group, (ClassicGroup, ConsumerGroup, ShareGroup, StreamsGroup)):
            raise ApiError(ErrorCode.GROUP_ID_NOT_FOUND, f"there is no group {call.group_id}")
        removal = groups.members.remove_members(call.group_id, list(group.members))
        if removal is not None:
            await removal

    async def reset(self, call: calls.Reset) -> None:
        """Return to an empty broker; connections stay open."""
        self._leftover_clients.begin(call.test, self._running.sessions)
        self._faults.clear()
        await self._fill_disk(is_full=False)
        if self._running.cluster is not None:
            self._running.cluster.heal()
        await asyncio.sleep(0)  # what was delayed is written before the topics are deleted
        self._clock.reset_wall()
        broker = self.broker
        removals = [
            QuotaAlteration(entity=dict(entity), changes=tuple((key, None) for key in of_entity))
            for entity, of_entity in broker.metadata.quotas.by_entity.items()
        ]
        await broker.admin.quotas.alter(removals, validate_only=False)
        refs = [TopicRef(name) for name in broker.metadata.topics]
        await broker.admin.topics.delete(refs)
        broker.admin.topics.recent_deletions.forget()
        await self._reset_features()  # it may set configurations
        overridden = {
            ConfigResource(record.resource_type, record.resource_name)
            for record in broker.metadata.configs.records()
        }
        await broker.admin.configs.alter(
            [Alteration(resource=each, changes=[], replaces=True) for each in overridden],
            check_authorized=lambda *_: None,
            validate_only=False,
        )
        remove_access(broker, kept_user=call.kept_user)
        reset_levels(logging.INFO)

    async def _reset_features(self) -> None:
        """Finalise the levels of the start again.

        That of metadata.version stays: most of its levels cannot be lowered.
        """
        broker, levels = self.broker, self.broker.metadata.features.in_log
        updates = {}
        for name in (levels.keys() | self._features.keys()) - {METADATA_VERSION}:
            level, current = self._features.get(name, 0), levels.get(name, 0)
            kind = UpgradeType.UPGRADE if level > current else UpgradeType.UNSAFE_DOWNGRADE
            if level != current:
                updates[name] = FeatureUpdate(level, kind)
        if updates:
            async with broker.admin.operations.decision_lock:
                now_ms = broker.clock.now_ms()
                broker.controller.update_features(updates, now_ms, validate_only=False)

    def list_leftover_clients(self, _: calls.ListLeftoverClients) -> list[calls.LeftoverClient]:
        """What clients that were connected before the last reset have done since."""
        return self._leftover_clients.found()

    # -- periodic work and time -------------------------------------------------------------------

    async def run_retention(self, _: calls.RunRetention) -> None:
        """Delete what retention may delete now."""
        await self.broker.maintenance.cleaner.retention.run(lambda _: True)

    async def run_compaction(self, _: calls.RunCompaction) -> None:
        """Clean all compacted topics up to their ends."""
        for log in self.broker.log_manager.logs():
            if log.config.compact and log.is_online:
                log.roll(self._clock.wall_ms())
        await self.broker.maintenance.cleaner.clean_now()

    async def set_clock(self, call: calls.SetClock) -> None:
        """Set the wall clock."""
        self._clock.set_wall(call.wall_ms)
        await self._notice_time()

    async def advance_clock(self, call: calls.AdvanceClock) -> None:
        """Move both clocks forward, and do what is due then."""
        self._clock.advance(call.by_ms)
        await self._notice_time()

    async def _notice_time(self) -> None:
        broker = self.broker
        for alarm in (
            broker.coordinators.groups.alarm,
            broker.coordinators.transactions.alarm,
            broker.coordinators.shares.alarm,
            broker.coordinators.share_states.alarm,
        ):
            alarm.cancel()  # its timer was set by the clock as it was
            alarm.expire_due()
        if self._running.cluster is not None:
            self._running.cluster.notice_due()
        await self._running.periodic_tasks.run_now()

    # -- faults -----------------------------------------------------------------------------------

    def inject(self, call: calls.Inject) -> str:
        """Begin a script of faults, and return its id."""
        cluster = self._running.cluster
        nodes = [self.broker.nodes.own_id] if cluster is None else list(cluster.nodes)
        for fault in call.faults:
            if fault.node is not None and fault.node not in nodes:
                text = f"there is no node {fault.node}: the nodes are {nodes}"
                raise ApiError(ErrorCode.INVALID_REQUEST, text)
        return self._faults.inject(call.faults)

    def read_faults(self, call: calls.ReadFaults) -> calls.FaultsSoFar:
        """Return what a script has done."""
        script = self._faults.script(call.id)
        return calls.FaultsSoFar(script.fired, list(script.events) if call.with_events else [])

    def remove_faults(self, call: calls.RemoveFaults) -> None:
        """End a script of faults."""
        self._faults.remove(call.id)

    def pretend(self, call: calls.Pretend) -> None:
        """Serve older versions only."""
        self._faults.pretend(call.max_versions)

    def clear_faults(self, _: calls.ClearFaults) -> None:
        """Remove all faults of requests."""
        self._faults.clear()

    async def fill_disk(self, call: calls.SetDiskFull) -> None:
        """Fill the disk, or free it again."""
        await self._fill_disk(is_full=call.is_full)

    async def _fill_disk(self, *, is_full: bool) -> None:
        if self._files.is_full != is_full:
            self._files.is_full = is_full
            await self.broker.disk_space.check_directories()

    # -- snapshots --------------------------------------------------------------------------------

    def take_snapshot(self, _: calls.TakeSnapshot) -> str:
        """Copy the data directory as it is now."""
        self._snapshots += 1
        while (target := self._snapshot(self._snapshots)).exists():  # of a broker that was killed
            self._snapshots += 1
        self._copy(self._data, target)
        return str(target)

    def _copy(self, source: Path, target: Path) -> None:
        copy_directory(source, target, shares_segments=not self._setup.is_cluster)

    def _snapshot(self, number: int) -> Path:
        return self._data.with_name(f"{self._data.name}.snapshot-{number}")

    def _taken(self, directory: str) -> Path:
        """The directory of a snapshot. Raises INVALID_REQUEST if it is none of this broker's."""
        path = Path(directory)
        number = path.name.rpartition("-")[2]
        if not number.isdecimal() or path != self._snapshot(int(number)) or not path.is_dir():
            text = f"{directory} is no snapshot of this broker"
            raise ApiError(ErrorCode.INVALID_REQUEST, text)
        return path

    async def restore_snapshot(self, call: calls.RestoreSnapshot) -> None:
        """Replace the broker by one on a copy of the snapshot. Connections are closed."""
        snapshot, data = self._taken(call.directory), self._data
        new, old = restored_directory(data), data.with_name(f"{data.name}.snapshot-old")
        for left in (new, old):  # by a restore that failed or was killed
            if left.exists():
                shutil.rmtree(left)
        self._copy(snapshot, new)
        with self._faults.suspended():  # a stop waits for no request that a fault delays
            await self._running.stop()
        self._files.is_full = False
        data.rename(old)
        end_restore(data)
        self._running = await self._setup.open()
        await asyncio.to_thread(shutil.rmtree, old, ignore_errors=True)


_SERVED: Mapping[type[Call], Callable[[Service, Any], object]] = {
    calls.CreateTopic: Service.create_topic,
    calls.AddUser: Service.add_user,
    calls.ListTopics: Service.list_topics,
    calls.ReadRecords: Service.read_records,
    calls.Produce: Service.produce,
    calls.CommittedOffsets: Service.committed_offsets,
    calls.ExpireGroup: Service.expire_group,
    calls.Reset: Service.reset,
    calls.ListLeftoverClients: Service.list_leftover_clients,
    calls.RunRetention: Service.run_retention,
    calls.RunCompaction: Service.run_compaction,
    calls.SetClock: Service.set_clock,
    calls.AdvanceClock: Service.advance_clock,
    calls.Inject: Service.inject,
    calls.ReadFaults: Service.read_faults,
    calls.RemoveFaults: Service.remove_faults,
    calls.Pretend: Service.pretend,
    calls.ClearFaults: Service.clear_faults,
    calls.SetDiskFull: Service.fill_disk,
    calls.TakeSnapshot: Service.take_snapshot,
    calls.RestoreSnapshot: Service.restore_snapshot,
}
