"""Transactions: their states, and the decisions about them, as functions of one transaction.

A transaction is a value. A request is decided on by a function that returns the next value, or
raises ApiError; the coordinator (transaction_coordinator) writes it to `__transaction_state`, and
replay puts it in the table. The end of a transaction has two steps: it is prepared (decided), then
its markers are written, then it is completed.

Reading order: states, transaction, codec (its stored form), table (the transactions of one
partition, by replay); starting, partitions, ending (the decisions); marker_writer, completion (how
an end is carried out); transaction_coordinator (serves requests, and aborts transactions that take
too long); settings.
"""
