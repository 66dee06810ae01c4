"""Background work of the broker.

Reading order: periodic_tasks; retention_check; cleaning/ (log compaction); log_recovery, log_mover,
metadata_snapshots; workers/ (the processes that walk records for the broker).
"""
