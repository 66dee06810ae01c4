"""Kafka's keys for streams groups, and others of coordinators that odradek does not use.

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
group.streams.session.timeout.ms INT 45000 1..
    Session timeout of a streams group's member.
group.streams.min.session.timeout.ms INT 45000 1..
    Lower bound of a streams group's session timeout.
group.streams.max.session.timeout.ms INT 60000 1..
    Upper bound of a streams group's session timeout.
group.streams.heartbeat.interval.ms INT 5000 1..
    Heartbeat interval of a streams group's member.
group.streams.min.heartbeat.interval.ms INT 5000 1..
    Lower bound of a streams group's heartbeat interval.
group.streams.max.heartbeat.interval.ms INT 15000 1..
    Upper bound of a streams group's heartbeat interval.
group.streams.max.size INT 2147483647 1..
    Maximum number of members of one streams group.
group.streams.num.standby.replicas INT 0 0..
    Number of standby replicas of a streams group's tasks.
group.streams.max.standby.replicas INT 2 0..
    Upper bound of a streams group's number of standby replicas.
group.streams.initial.rebalance.delay.ms INT 3000 0..
    How long a new streams group waits for more members.
group.streams.assignment.interval.ms INT 1000 0..
    Minimum time between two assignments of a streams group.
group.streams.min.assignment.interval.ms INT 0 0..
    Lower bound of a streams group's assignment interval.
group.streams.max.assignment.interval.ms INT 15000 0..
    Upper bound of a streams group's assignment interval.
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
transaction.state.log.load.buffer.size INT 5242880 1..
    Bytes of one read when __transaction_state is loaded.
"""
