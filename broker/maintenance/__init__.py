"""What the broker does in the background, without being asked by a client.

Reading order: housekeeping and periodic_tasks; cleaning/ (log compaction); log_recovery, log_mover,
metadata_snapshots; workers/ (the processes that walk records for the broker).
"""
