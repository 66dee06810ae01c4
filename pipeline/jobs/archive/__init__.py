"""Records of closed segments into a directory of Parquet files, each exactly once.

    ARCHIVE/
      topic=orders/date=2026-11-21/             what readers see: any reader of Parquet will do
        0-00000000000000000000-00000000000000004711-1.parquet
      _dead_letters/topic=orders/date=.../      records that do not fit the schema, if one is given
      _odradek/                                 no reader looks into what begins with an underscore
        manifest/00000000000000000001.json      what each commit has added and replaced
        staging/RUN/                            what is written, and not committed yet
        replays/JOB/                            how far replays have got
        lock

**How a record gets there once.** Tasks read ranges of offsets (reader, dated_files) and write what
they find under names that no other attempt has, into the staging directory of their run. The driver
takes the first result of each range and commits (commit): one manifest entry, made at once or not
at all, says which ranges are archived now and which staged file gets which name for good. Then the
files are renamed. Whatever is killed in between is finished by the next run, for the entry tells
how: a rename that was done already is not done again. What is in no entry is garbage of a killed
run or of an attempt that came second, and goes.

What is archived is read from the entries, never from the files' names; what is missing of a
partition is its offsets without those (plan). So a second run has nothing to do, and a range that
could not be read keeps back no other.

**Only one at a time**: a lock of the operating system, which ends with the process that holds it.
Should one get past it (a file system that loses locks), the number of an entry can be taken once
only, and the second to commit finds out.
"""
