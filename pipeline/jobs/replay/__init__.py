"""Records of an archive into a topic again: the same partitions, order, times, keys and headers.

What is guaranteed. Nothing is left out, and records of one partition arrive in the order of their
offsets: the producer is idempotent, and stops at the first record that is refused. A job may be
killed and started again under the same id: how far each partition has got is noted once a second
(progress), and what was delivered since the last note is found at the end of the target's partition
(delivered) and not sent again. So nothing arrives twice either, with two exceptions: requests that
were still on their way to the broker when the second run looked, and records that the target has
deleted or compacted away between the two runs. Only transactions could exclude the first.

A timestamp of 0 becomes 1, for librdkafka takes 0 for "now". Records without a timestamp stay so.
"""
