"""Writes the records of an archive to topics: same partitions, order, timestamps, keys and headers.

No record is left out, and records of one partition arrive in order of offset: the producer is
idempotent, and stops at the first record that fails. A job may be killed and started again under
the same id. Each partition's progress is stored once a second (progress_files). Records that were
delivered after that are found at the end of the target's partition and are not sent again
(delivered). So no record arrives twice, with two exceptions: requests that were still on their way
to the broker when the second run read the target, and records that the target has deleted or
compacted between the two runs. Only transactions could exclude the former.

A timestamp of 0 becomes 1, because librdkafka takes 0 for "now". Records without a timestamp keep
none.
"""
