"""Log compaction (`cleanup.policy=compact`): of every key the last record stays.

    plan                  how dirty a log is, and what a round may touch
    task                  what the broker and the process that cleans tell each other
    cleaner               one round over one log:
      input               the batches of closed segments
      offset_map          key -> last offset; offset_map_build fills it from the dirty part
      segment_groups      which segments become one; segment_split: one that must become several
      batch_filter        which records go; record_spans, cleaned_transactions: what it asks
      cleaned_batch       what is left of a batch
      cleaned_segment     the `.cleaned` files
    segment_swap          they take the place of the old segments
    cleaner_checkpoints   up to where each log is clean

Nothing here knows a process, a thread or a clock: broker/maintenance/cleaning/log_cleaner.py does.
"""
