"""Writes rows to topics. A task writes its rows and a mark of their batch in one transaction.

Spark runs a task again when it fails. With speculation it runs a second attempt beside a slow one.
It runs a whole batch of a stream again when it does not know whether the batch was completed. So a
task writes under a name that is the same for all its attempts: `odradek-<query>-<task>`. This is

    its transactional id    An attempt that takes it over fences earlier attempts, so no two
                            attempts write at the same time.
    a consumer group        Its committed offset is the mark: the id of the next batch, and a hash
                            of the rows (written_batches, rows_digest). It is committed in the
                            transaction that holds the rows, so either both exist or neither.

An attempt reads the mark, takes over, and reads the mark again, which is final then. If its batch
is written already, nothing is left to do. The first look is needed because an attempt of an earlier
batch may be late: it must not fence the attempts of the next one. If it does so after all, because
the batch was completed between its look and its takeover, the second look stops it. If an attempt
has died between mark and commit, the mark cannot be read before the attempt's transaction ends. So
if the coordinator answers, but not about the mark for some seconds, the next attempt takes over,
which ends the transaction, and then looks.

An attempt that is fenced waits for the mark, because the other attempt writes the same rows. If the
mark does not come, the other may have died, and the attempt takes over again (turns).

This requires that a batch is divided into the same tasks when it runs again, and that these have
the same rows. If an earlier run has written some tasks of a batch, no other task of it writes
before these have come again with the same rows (division). Otherwise the query fails, and nothing
more of the batch is written.

A batch query has no checkpoint. Its name is the user's (`txnAppId` and `txnVersion`), and then the
same holds as for a batch of a stream. Otherwise its name contains a random id: a retried task
writes nothing twice, and if the query fails, rows of tasks that were completed stay. The groups are
deleted when such a query ends (ended_queries).

A broker without transactions is an error unless `delivery=at-least-once` is given.
"""
