"""Kafka's keys of coordinators that odradek does not use.

key_table.py explains the form of the table.
"""

TABLE = """\
group.coordinator.threads INT 4 1..
    Threads of the group coordinator.
group.coordinator.background.threads INT 2 1..
    Threads for the group coordinator's background work.
group.coordinator.append.linger.ms INT -1 -1..
    How long coordinator writes are collected into one append; -1: adaptive.
group.coordinator.cached.buffer.max.bytes INT 1048588 524288..
    Maximum size of a buffer that the group coordinator keeps for reuse.
offsets.load.buffer.size INT 5242880 1..
    Bytes of one read when __consumer_offsets is loaded.
offsets.commit.timeout.ms INT 5000 1..
    How long the write of an offset commit may take.
group.share.persister.class.name STRING \
    org.apache.kafka.server.share.persister.DefaultStatePersister internal
    Java class that stores the share groups' state.
group.consumer.assignor.offload.enable BOOLEAN true internal
    Whether a thread of its own assigns partitions: odradek assigns them on its event loop.
group.share.assignor.offload.enable BOOLEAN true internal
    Whether a thread of its own assigns partitions: odradek assigns them on its event loop.
group.streams.assignor.offload.enable BOOLEAN true internal
    Whether a thread of its own assigns tasks: odradek assigns them on its event loop.
group.streams.topology.description.plugin.class CLASS null
    Java class that stores the descriptions of topologies: descriptions are refused.
share.fetch.purgatory.purge.interval.requests INT 1000
    Number of requests between two purges of waiting share fetches.
share.coordinator.threads INT 1 1..
    Threads of the share coordinator.
share.coordinator.load.buffer.size INT 5242880 1..
    Bytes of one read when __share_group_state is loaded.
share.coordinator.append.linger.ms INT -1 -1..
    How long share coordinator writes are collected into one append; -1: adaptive.
share.coordinator.write.timeout.ms INT 5000 1..
    How long a share state write may take.
share.coordinator.cached.buffer.max.bytes INT 1048588 524288..
    Maximum size of a buffer that the share coordinator keeps for reuse.
transaction.state.log.load.buffer.size INT 5242880 1..
    Bytes of one read when __transaction_state is loaded.
"""
