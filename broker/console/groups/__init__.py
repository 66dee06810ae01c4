"""What the views of groups read from the broker.

finding       finds the group that a request names
described     a group of any type with its members, by the request that describes its type
lags          how far a group has got in the logs
all_lags      the same of all groups, by what positions keeps from one list to the next
offsets       the partitions of one group
holding       the open transactions that hold consumers back
deliveries    the records that a share group has in flight
"""
