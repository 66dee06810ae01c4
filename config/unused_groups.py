"""Kafka's keys for share groups, and others of coordinators that odradek does not use.

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
group.share.session.timeout.ms INT 45000 1..
    Session timeout of a share group's member.
group.share.min.session.timeout.ms INT 45000 1..
    Lower bound of a share group's session timeout.
group.share.max.session.timeout.ms INT 60000 1..
    Upper bound of a share group's session timeout.
group.share.heartbeat.interval.ms INT 5000 1..
    Heartbeat interval of a share group's member.
group.share.min.heartbeat.interval.ms INT 5000 1..
    Lower bound of a share group's heartbeat interval.
group.share.max.heartbeat.interval.ms INT 15000 1..
    Upper bound of a share group's heartbeat interval.
group.share.max.size INT 200 1..1000
    Maximum number of members of one share group.
group.share.assignors LIST simple not-empty
    The share groups' assignor.
group.share.assignment.interval.ms INT 1000 0..
    Minimum time between two assignments of a share group.
group.share.min.assignment.interval.ms INT 0 0..
    Lower bound of a share group's assignment interval.
group.share.max.assignment.interval.ms INT 15000 0..
    Upper bound of a share group's assignment interval.
group.share.initialize.retry.interval.ms INT 30000 1.. internal
    Delay before the initialization of a share partition is retried.
group.share.delivery.count.limit INT 5 2..10
    How often a record is delivered before it is archived.
group.share.min.delivery.count.limit INT 2 2..5
    Lower bound of the delivery count limit.
group.share.max.delivery.count.limit INT 10 5..25
    Upper bound of the delivery count limit.
group.share.record.lock.duration.ms INT 30000 1000..3600000
    How long a delivered record stays locked.
group.share.min.record.lock.duration.ms INT 15000 1000..30000
    Lower bound of the lock duration.
group.share.max.record.lock.duration.ms INT 60000 30000..3600000
    Upper bound of the lock duration.
group.share.partition.max.record.locks INT 2000 100..10000
    Maximum number of locked records in a share partition.
group.share.min.partition.max.record.locks INT 100 100..2000
    Lower bound of the number of locked records.
group.share.max.partition.max.record.locks INT 4000 2000..10000
    Upper bound of the number of locked records.
group.share.max.share.sessions INT 2000 1..
    Maximum number of share sessions.
group.share.persister.class.name STRING \
    org.apache.kafka.server.share.persister.DefaultStatePersister internal
    Java class that stores the share groups' state.
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
share.coordinator.snapshot.update.records.per.snapshot INT 500 0..500
    Number of updates between two snapshots of a share partition.
share.coordinator.cold.partition.snapshot.interval.ms INT 300000 1.. internal
    How often a snapshot of an inactive share partition is written.
share.coordinator.state.topic.num.partitions INT 50 1..
    Number of partitions of __share_group_state.
share.coordinator.state.topic.replication.factor SHORT 3 1..
    Number of replicas of __share_group_state (on one node: 1).
share.coordinator.state.topic.min.isr SHORT 2 1..
    min.insync.replicas of __share_group_state (on one node: 1).
share.coordinator.state.topic.segment.bytes INT 104857600 1..
    segment.bytes of __share_group_state.
share.coordinator.state.topic.compression.codec INT 0
    Codec of __share_group_state, as a number.
share.coordinator.state.topic.prune.interval.ms INT 300000 1.. internal
    How often __share_group_state is pruned.
transaction.state.log.load.buffer.size INT 5242880 1..
    Bytes of one read when __transaction_state is loaded.
"""
