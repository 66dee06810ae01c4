"""Log compaction as a service: which log is cleaned when, by which process, and with what result.

Reading order: log_cleaner, cleaning_choice, cleaning_round, cleaner_pool, cleaner_worker,
cleaner_state, cleaner_status.
"""
