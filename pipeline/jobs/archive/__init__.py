"""Archives the records of closed segments in a directory of Parquet files, each exactly once.

    ARCHIVE/
      topic=orders/date=2026-11-21/             what readers see: any reader of Parquet will do
        0-00000000000000000000-00000000000000004711-1.parquet
      _dead_letters/topic=orders/date=.../      records that do not match a given schema
      _odradek/                                 readers ignore names that begin with an underscore
        manifest/00000000000000000001.json      what each commit has added and replaced
        staging/RUN/                            files that are written and not yet committed
        replays/JOB/                            the progress of replays
        lock

**Exactly once.** Tasks read ranges of offsets (staging) and write the records to files in the
staging directory of their run, under names that no other attempt has (dated_files). The driver
takes the first result of each range and commits it (commit) by adding one entry to the manifest.
The entry is created atomically. It says which ranges are now archived, and the final name of each
staged file. Then the files are renamed. If a run is killed in between, the next run does the
remaining renames that the entry lists. A staged file that is in no entry was left by a killed run
or a second attempt, and is deleted.

The entries alone say what is archived, not the names of files. What is missing of a partition is
its offsets without those ranges (plan). So a second run has nothing to do, and a range that could
not be read does not stop the others.

**One run at a time.** A run holds a lock of the operating system, which is released when its
process ends. If two runs get past it (a file system that loses locks), the second to commit fails,
because the number of an entry can be used only once.
"""
