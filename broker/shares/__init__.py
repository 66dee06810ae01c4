"""Delivery of records to share groups (KIP-932): the leader's side.

Reading order:

    led_partition      a share-partition with its log: where it begins, what is stored
    sessions           the partitions that a member fetches, on its connection
    archiving          records that go to dead-letter queues: written, then archived
    dead_letter_queues what is written, and when it is given up
    refusals           log lines about records that a queue does not get
    queue_topics       the topics of the queues: checked, and created
    originals          the keys and values of the records, read again
    shares             all share-partitions that are led here: locks that end, what ends them
    share_read         one ShareFetch: read, acquire
    waiting            a ShareFetch that waits for records, or whose refusal is delayed

The state machine of a share-partition is in coordinator/share_partitions/.
"""
