"""Kafka's keys for tiered storage, not used here.

The form is explained in key_table.py.
"""

TABLE = """\
remote.log.storage.system.enable BOOLEAN false
    Whether segments are copied to remote storage.
remote.log.storage.manager.class.name STRING null not-empty
    Java class that talks to the remote storage.
remote.log.storage.manager.class.path STRING null
    Class path of that class.
remote.log.storage.manager.impl.prefix STRING rsm.config. not-empty
    Prefix of the keys handed to that class.
remote.log.metadata.manager.class.name STRING \
    org.apache.kafka.server.log.remote.metadata.storage.TopicBasedRemoteLogMetadataManager \
    not-empty
    Java class that remembers what was copied.
remote.log.metadata.manager.class.path STRING null
    Class path of that class.
remote.log.metadata.manager.impl.prefix STRING rlmm.config. not-empty
    Prefix of the keys handed to that class.
remote.log.metadata.manager.listener.name STRING null not-empty
    Listener that class uses.
remote.log.metadata.custom.metadata.max.bytes INT 128 0..
    Most bytes of custom metadata per segment.
remote.log.index.file.cache.total.size.bytes LONG 1073741824 1..
    Disk space for indexes fetched from remote storage.
remote.log.index.file.cache.ttl.ms LONG 900000 -1.. internal
    How long an unused fetched index stays.
remote.log.manager.thread.pool.size INT 2 1..
    Threads that serve remote storage; the newer pools replace it.
remote.log.manager.copier.thread.pool.size INT 10 1..
    Threads that copy segments.
remote.log.manager.expiration.thread.pool.size INT 10 1..
    Threads that expire remote segments.
remote.log.manager.follower.thread.pool.size INT 2 1..
    Threads that serve followers' remote work.
remote.log.manager.task.interval.ms LONG 30000 1..
    Pause between rounds of copying and expiring.
remote.log.manager.task.retry.backoff.ms LONG 500 1.. internal
    First pause after a failed round.
remote.log.manager.task.retry.backoff.max.ms LONG 30000 1.. internal
    Longest pause after failed rounds.
remote.log.manager.task.retry.jitter DOUBLE 0.2 0..0.5 internal
    Randomness of those pauses.
remote.log.reader.threads INT 10 1..
    Threads that read from remote storage.
remote.log.reader.max.pending.tasks INT 100 1..
    Remote reads that may wait.
remote.log.manager.copy.max.bytes.per.second LONG 9223372036854775807 1..
    Most bytes per second copied out.
remote.log.manager.copy.quota.window.num INT 11 1..
    Samples kept for the copy quota.
remote.log.manager.copy.quota.window.size.seconds INT 1 1..
    Length of a sample of the copy quota.
remote.log.manager.fetch.max.bytes.per.second LONG 9223372036854775807 1..
    Most bytes per second fetched back.
remote.log.manager.fetch.quota.window.num INT 11 1..
    Samples kept for the fetch quota.
remote.log.manager.fetch.quota.window.size.seconds INT 1 1..
    Length of a sample of the fetch quota.
remote.fetch.max.wait.ms INT 500 1..
    How long a Fetch waits for remote storage.
remote.list.offsets.request.timeout.ms LONG 30000 1..
    How long ListOffsets waits for remote storage.
"""
