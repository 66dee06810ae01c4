"""Worker processes that serve partitions (odradek.workers).

Reading order: nodes (what clients see), named_leaders; messages, channel (between the processes).
In a worker: worker_process, starting_files, worker_broker, metadata_follower, forwarding,
remote_transactions, remote_assignments.
In the broker's own process: worker_pool, worker_link, heartbeats, progress, forwarding,
verification, remote_markers.
"""
