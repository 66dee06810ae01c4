"""Worker processes that serve partitions (odradek.workers).

The messages between the processes are in processes/, what clients see of workers in common/nodes.
Reading order in a worker: worker_process, starting_files, worker_node, metadata_follower,
forwarding, remote_assignments, remote_verifier. In the broker's own process: worker_pool,
worker_link, heartbeats, forwarding, verification.
"""
