"""Other processes of the broker: how they are started and watched, and what is said to them.

frames, channel                 how messages are written, and the broker's end of the socket
signals                         those that all processes get
child_process                   the broker's end: start, kill, wait
process_pipe                    the end of a process that does one task at a time
messages                        what both sides of it say
cleaner_process, recovery_process, walk_process     these tasks, run with `python -m`
record_walks                    the service that gives large batches to walk_process
"""
