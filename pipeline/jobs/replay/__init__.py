"""Writes the records of an archive to topics: same partitions, order, timestamps, keys and headers.

    archived     what is in the archive, and its records; nothing else here reads it
    selection    which records are replayed
    target       creates the target topics, or checks those that exist
    partition_progress  how far each partition is: marks in a consumer group
    sending      sends one partition
    job          all of it

A partition is sent in parts: each is a range of the source's offsets, and one transaction, which
also commits a mark (sink/marks.py) that says how far the replay has come. So a reader of committed
records sees each record once, however often the job is killed and continued. The marks are offsets
of the group `odradek-replay-<job>`, for the target's partitions. They are the only state of a job,
and expire as other offsets do (`offsets.retention.minutes`). So the marks of all partitions are
committed in one transaction when the job begins, and a job is not continued if one is missing.

Two attempts of a partition fence each other (sink/turns.py).

With `--delivery at-least-once` no transactions are used: the mark is committed after the part, and
a part that was interrupted is sent again.

A timestamp of 0 becomes 1, because librdkafka takes 0 for "now". Records without a timestamp keep
none.
"""
