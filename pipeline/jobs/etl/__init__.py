"""A structured-streaming job from one YAML file: topics -> SQL -> a topic.

    job_model        what is in a job: its sections and the types of their values
    job_file         reads the file, with the line of each error; checks the options
    sources          each source as a view: keys and values decoded, bad records separated
    plan             views, SQL and the records for the sink as one query, analysed and not started
    job              runs the query until it has caught up, is stopped, or fails
    spark_reports    Spark's reports: progress of batches, and errors explained in one line
    checkpoint_owner which job a checkpoint belongs to

A job is one query. Spark's checkpoint and the sink's transactions are per batch of a query, so all
output of a batch is written by one query: dead letters are rows beside those of the SQL, and differ
only in the column `topic`. One transaction of a task holds both. With two queries, a crash could
leave a batch in one checkpoint and not in the other. With `foreachBatch`, the sink would not know
that a batch is repeated, and the SQL could keep no state.

    source -> decoded -> counted -+-> good -> view -> SQL -> records -+-> sink
                                  +-> bad  ----------> dead letters --+

The cost: Spark reads the source for each of the two branches, so a job with dead letters decodes
twice. Both read the same range of offsets, because it is one source of one query. A job without
dead letters has the second branch too, with a filter that is always false; Spark removes it before
it reads. So both kinds of jobs have the same sources in their checkpoints, and `on_bad_record` may
be changed between two runs.

No record is lost silently. Records that do not match are counted before the SQL, at a place that no
filter of the SQL can be pushed below (CollectMetrics), and `fail` fails there. JSON is parsed
inside a list, because Spark's from_json would parse only the first half of `{"a": 1} {"a": 2}`.

Delivery is as the sink guarantees: exactly once, or with `delivery: at-least-once` at least once
(a batch that was interrupted is written again).
"""
