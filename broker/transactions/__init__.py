"""Transactions, as the partitions of a process see them.

verification            asks the coordinator before a transaction begins in a partition
partition_transactions  this, and the markers that end transactions
producer_errors         errors of producers, by version
"""
