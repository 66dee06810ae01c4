"""Worker processes that serve partitions (odradek.workers).

Reading order: nodes (what clients see); messages, channel (between the processes); in a worker
worker_process, worker_broker, metadata_follower, forwarding; in the broker's own process
worker_pool, progress, forwarding.
"""
