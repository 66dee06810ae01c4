"""Writes rows to topics. A task writes its rows and the id of their batch in one transaction.

Spark runs a task again when it fails. With speculation it runs a second attempt beside a slow one.
It runs a whole batch of a stream again when it does not know whether the batch was completed. So a
task writes under a name that is the same for all its attempts: `odradek-<query>-<task>`. This is

    its transactional id    An attempt that begins a transaction fences earlier attempts, so no two
                            attempts write at the same time.
    a consumer group        Its committed offset is the id of the next batch. It is committed in the
                            transaction that holds the rows, so either both exist or neither.

An attempt that begins reads the committed offset first. If its batch is written already, nothing is
left to do. An attempt that is fenced waits for the other, which writes the same rows.

This requires that a batch is divided into the same tasks when it runs again. Spark does that for
its sources and shuffles. Our own source divides streams by offsets alone for this reason. The
number of rows that a task wrote is committed beside the batch id, so a different division is
reported as an error and loses nothing.

A batch query has no checkpoint, and its name contains a random id. A retried task writes nothing
twice. If the query fails, rows of tasks that were completed stay. The groups are deleted when the
query ends.

A broker without transactions is an error unless `delivery=at-least-once` is given.
"""
