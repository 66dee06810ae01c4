"""Background work of the broker on its logs.

Reading order: retention_check; cleaning/ (log compaction); log_recovery, log_mover,
log_maintenance; metadata_snapshots, metadata_log; own_appends (records of the broker itself).
periodic_tasks.py beside this room says when they run.
"""
