"""Log compaction (`cleanup.policy=compact`): keeps the last record of every key.

    plan                  how dirty a log is, and what a round may clean
    task                  the task of the cleaning process, and its results
    cleaner               one round over one log:
      input               the batches of closed segments
      offset_map          key -> last offset; offset_map_build fills it from the dirty part
      segment_groups      which segments become one; segment_split: one that must become several
      batch_filter        which records are removed; uses record_spans, cleaned_transactions
      cleaned_batch       what is left of a batch
      cleaned_segment     the `.cleaned` files
    segment_swap          replaces the old segments
    cleaner_checkpoints   the offset up to which each log is clean

Nothing here uses processes, threads or clocks: broker/maintenance/cleaning/ does.
"""
