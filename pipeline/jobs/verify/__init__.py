"""Verifies the segments of log directories in parallel.

    plan            lists the directories; divides the segments into tasks of about equal bytes
    segment_check   runs in a task: checks one segment, returns its state at both ends
    segment_walk    reads its batches as tables, even if it is damaged
    offset_order, index_check, producers, transactions     the checks, one batch table at a time
    partition_join  checks the segments of one partition against each other
    job             runs all of it, and checks again what seems wrong

A finding is a problem if a correct broker cannot cause it, not even one that was killed. Otherwise
it is a note. A broker may be running: segments are rolled, deleted and replaced while they are
read. So a finding is reported only if a second pass, which lists the directory again, confirms it.

Topic configurations are not stored in the log directory. So whether offsets may be missing is
inferred: the cleaner stores how far it has cleaned, and leaves batches that span more offsets than
they have records. After the last place that the cleaner has reached, no offset may be missing.
"""
