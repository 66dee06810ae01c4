"""The stored state of share groups: what each has delivered of each partition (KIP-932).

The share coordinator keeps it for the leaders of the partitions. A record of
`__share_group_state` is a snapshot, with the whole state of one share-partition, or an update, with
what has changed since. After a number of updates a snapshot follows. The log is not compacted:
everything before the oldest snapshot that counts is deleted from time to time (pruning).

Reading order:

    batches    ranges of offsets with their delivery state, and how they are combined
    state      the state of one share-partition; from records, and to records
    table      the share-partitions of one partition of the log: decisions and replay
    settings   the configuration
    share_coordinator   connects these parts to the shards and the clock, and serves requests

Kafka: the package coordinator.share.
"""
