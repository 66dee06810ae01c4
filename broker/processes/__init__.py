"""Other processes of the broker: how they are started and watched, and what is said to them.

frames                          how messages are written
process_pipe, child_process     a process that does one task at a time, and the broker's end
messages                        what both sides of it say
cleaner_process, recovery_process, walk_process     these tasks, run with `python -m`
record_walks                    the service that gives large batches to walk_process
channel, worker_messages        to a worker that serves partitions (workers/)
remote_markers, remote_transactions     what such a worker asks for, and is asked
"""
