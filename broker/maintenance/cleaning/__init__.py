"""Log compaction in the broker: which log is cleaned when, in which process, with what result.

Reading order: log_cleaner, cleaning_choice, cleaning_round, cleaner_pool, cleaner_state,
cleaner_status. The compaction itself is in storage/cleaning/.
"""
