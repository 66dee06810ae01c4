"""The leader's view of a share-partition: which member has which record (KIP-932).

A record that a member acquires is locked for it. It is acknowledged, released or rejected, or its
lock ends. A released record is delivered again, at most as often as the group's delivery limit
says. The start offset follows the records that are done. None of these modules knows a clock, a log
or a socket; the leader in `broker/shares/` connects them.

Reading order:

    in_flight          a record, or a batch of records, in flight; the table of its states
    batches            the batches in flight, by offset
    share_partition    acquire, next offset to fetch, start offset
    acquisition        one acquisition: which of the fetched records a member gets
    dead_letters       records that are given up, for the group's dead-letter queue
    changes            acknowledge, release, expiry of locks: decide, write, apply
    aborted            leaves records of aborted transactions out

Kafka: SharePartition, InFlightBatch, InFlightState, RecordState.
"""
