"""A structured-streaming job from one YAML file: topics -> SQL -> a topic.

    job_file         the file, checked: what there can be in it, and what each thing means
      yaml_text      its text, with the line of each key
      environment    ${NAME} in it
    client_options   the options of its sources and its sink, checked as reading and writing will
    source_view      a source as a view: keys and values decoded, what is bad set apart
      decoding       binary, text, JSON
    statements       the SQL, and errors in it
    sink_rows        what it yields as records
    plan             all of that as one query, analysed and not started
    checkpoint_note  which job a checkpoint belongs to
    progress         what Spark tells about batches
    job              runs it until it has caught up, is told to stop, or fails
    failures         Spark's errors in a line
    delivery         what was promised for the records of a run

One query. A batch of a query is what a checkpoint counts and what the sink writes once, so all that
a batch leads to is written by one query: dead letters are rows beside those of the SQL, told apart
by their column `topic` only. The sink's transaction of a task holds both. With a query for each of
the two, a crash could leave a batch in one checkpoint and not in the other; with `foreachBatch` the
sink would not know that a batch is being repeated, and SQL could keep no state.

    source -> decoded -> counted -+-> good -> view -> SQL -> records -+-> sink
                                  +-> bad  ----------> dead letters --+

The price: Spark reads the source for each of the two branches (of the same range of offsets, for it
is one source of the query), so a job with dead letters decodes twice. A job without has the lower
branch as well, with a filter that nothing passes and that Spark takes out before it reads. So both
have the same sources in their checkpoints, and `on_bad_record` may be changed between two runs.

Nothing is lost silently. Whatever does not fit is counted before the SQL sees it, in a place that
no filter of the SQL can be pushed below (CollectMetrics), and `fail` fails there. JSON is parsed in
a list around it: Spark's from_json would take `{"a": 1} {"a": 2}` for its first half.

How often a record arrives is what the sink promises: exactly once where its broker has
transactions, at least once where it has none (a batch that was interrupted is written again).
"""
