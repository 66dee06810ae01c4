"""Groups of the classic protocol: the members elect a protocol, their leader assigns partitions.

Reading order: group (the states), protocols (of a JoinGroup), member, roster (the members of a
group), subscriptions (of consumers), records (a generation as a log record); then what changes a
group: join, rebalance, sync; and deadlines.
"""
