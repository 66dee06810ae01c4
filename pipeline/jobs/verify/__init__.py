"""Is every byte of thousands of segments what was written? Segments are looked at side by side.

    plan            lists the directories; groups segments into tasks of about equal bytes
    segment_check   one segment, in a task: what is wrong in it, and its state at both edges
    segment_walk    its batches as tables, however damaged it is
    order, index_check, producers, transactions     what is looked at, batch table after batch table
    partition_join  joins the segments of one partition at their edges
    job             all of it; looks twice at whatever seems wrong

A finding is a problem where no broker leaves such a thing behind, not even one that was killed, and
a note otherwise. A broker may be at work: segments are rolled, deleted and replaced while they are
read. So a finding counts when a second look, from a new listing on, finds it again.

Topics' settings do not lie in the directory. What offsets may be missing is told from what is seen:
the cleaner notes how far it came, and leaves batches behind that span more offsets than they have
records. Behind the last place where it is seen to have been, no offset may be missing.
"""
