"""Transactions, as partitions see them.

verification        asks the coordinator before a transaction begins in a partition
producer_errors     errors of producers, by version
"""
