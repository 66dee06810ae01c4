"""Archives the records of closed segments in a Delta table, each exactly once.

    ARCHIVE/                                      a directory, or a URL of an object store
      _delta_log/                                 the table's log: the only authority
      topic=orders/date=2026-11-21/...parquet     files of the table, and files that never were
      _odradek/state-NUMBER.json                  what is archived; the table's log names the number

**Exactly once.** Tasks read ranges of offsets (writing) and write the records to files under names
that no other attempt has (parquet/dated_files). The driver takes the first result of each range and
commits it (table/archive_table): one entry of the table's log adds the files and names a new state
(table/state), which says which offsets are archived. What is missing of a partition is its offsets
without those (planner). So a run that is killed leaves whole commits and files that belong to no
commit. A second run has nothing to do, and a range that could not be read does not stop the others.

**Several runs at once.** The table refuses a commit if the state has changed since it was read.
The commit is then made again on the new state, unless both have archived the same offsets: then the
second run archives what it alone has read, and ends with an error (overtaken). Small files are
merged by commits of the same kind (table/merging): files that another process has replaced in the
meantime are left alone. What other writers change is refused (table/other_writers).

**Logs that change.** A power cut may take records from a log after they were archived. The state
identifies the batches at the ends of its ranges, so that the next run finds this out (batch_marks)
and repairs the table (repair).

**Readers of Iceberg.** If that is wanted, the files of the table are listed in an Iceberg catalog,
too (table/iceberg_copy).

Rooms, of which each knows only those above it:

parquet/     where the files are, and how records are written to them
table/       the state, the rows and the commits of the Delta table
splitting/   the columns that values become

The job itself, in reading order: batch_marks, stable_offsets, planner, writing, repair, overtaken,
summary, job.
"""
