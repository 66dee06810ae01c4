"""Writes rows to topics: a task's rows, in a transaction that also says which batch they are of.

Spark runs a task again when it fails, runs a second attempt beside a slow one (speculation), and
runs a whole batch of a stream again when it does not know whether that had ended. So a task writes
under a name that is the same whenever it runs: `odradek-<query>-<task>`. This is

    its transactional id    so whoever begins to write ends what earlier attempts have begun (they
                            are fenced), and no two of them write at once
    a group                 whose committed offset is the next batch to be written; it is committed
                            in the transaction that holds the rows, so the two are there together

Whoever begins looks there first: where the batch is written already, nothing is left to do. An
attempt that is fenced waits for the other to finish: that one will write the same rows.

This counts on a batch being cut into the same tasks when it runs again. Spark does that for its
sources and shuffles; our own source cuts streams by offsets alone for this reason. How many rows a
task wrote is noted beside the batch, so where it is not so, that is an error instead of a loss.

A batch query has no checkpoint; its name holds a random id. Retries of its tasks write nothing
twice, and what a query that fails has written stays (in tasks that were done). The groups are
deleted when it ends.

Where a broker has no transactions, rows are written at least once, and that is said.
"""
