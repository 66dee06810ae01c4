"""Kafka's keys for tiered storage, which odradek does not have.

key_table.py explains the form of the table.
"""

TABLE = """\
remote.log.storage.system.enable BOOLEAN false
    Whether segments are copied to remote storage.
remote.log.storage.manager.class.name STRING null not-empty
    Java class that accesses the remote storage.
remote.log.storage.manager.class.path STRING null
    Class path of that class.
remote.log.storage.manager.impl.prefix STRING rsm.config. not-empty
    Prefix of the keys that are passed to that class.
remote.log.metadata.manager.class.name STRING \
    org.apache.kafka.server.log.remote.metadata.storage.TopicBasedRemoteLogMetadataManager \
    not-empty
    Java class that stores which segments were copied.
remote.log.metadata.manager.class.path STRING null
    Class path of that class.
remote.log.metadata.manager.impl.prefix STRING rlmm.config. not-empty
    Prefix of the keys that are passed to that class.
remote.log.metadata.manager.listener.name STRING null not-empty
    Listener that this class connects to.
remote.log.metadata.custom.metadata.max.bytes INT 128 0..
    Maximum bytes of custom metadata per segment.
remote.log.index.file.cache.total.size.bytes LONG 1073741824 1..
    Disk space for indexes fetched from remote storage.
remote.log.index.file.cache.ttl.ms LONG 900000 -1.. internal
    How long an unused fetched index is kept.
remote.log.manager.thread.pool.size INT 2 1..
    Threads for remote storage; replaced by the pools below.
remote.log.manager.copier.thread.pool.size INT 10 1..
    Threads that copy segments.
remote.log.manager.expiration.thread.pool.size INT 10 1..
    Threads that expire remote segments.
remote.log.manager.follower.thread.pool.size INT 2 1..
    Threads for the remote storage tasks of follower partitions.
remote.log.manager.task.interval.ms LONG 30000 1..
    Interval between two runs of copying and expiring.
remote.log.manager.task.retry.backoff.ms LONG 500 1.. internal
    Initial delay after a failed run.
remote.log.manager.task.retry.backoff.max.ms LONG 30000 1.. internal
    Maximum delay after failed runs.
remote.log.manager.task.retry.jitter DOUBLE 0.2 0..0.5 internal
    Random share of that delay.
remote.log.reader.threads INT 10 1..
    Threads that read from remote storage.
remote.log.reader.max.pending.tasks INT 100 1..
    Maximum number of waiting remote reads.
remote.log.manager.copy.max.bytes.per.second LONG 9223372036854775807 1..
    Maximum bytes per second copied to remote storage.
remote.log.manager.copy.quota.window.num INT 11 1..
    Number of samples for the copy quota.
remote.log.manager.copy.quota.window.size.seconds INT 1 1..
    Length of a sample of the copy quota.
remote.log.manager.fetch.max.bytes.per.second LONG 9223372036854775807 1..
    Maximum bytes per second fetched from remote storage.
remote.log.manager.fetch.quota.window.num INT 11 1..
    Number of samples for the fetch quota.
remote.log.manager.fetch.quota.window.size.seconds INT 1 1..
    Length of a sample of the fetch quota.
remote.fetch.max.wait.ms INT 500 1..
    How long a Fetch waits for remote storage.
remote.list.offsets.request.timeout.ms LONG 30000 1..
    How long ListOffsets waits for remote storage.
"""
